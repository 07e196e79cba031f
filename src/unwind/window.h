/*
 * window: a part of a file at hand, so that small fields do not cost a read each.
 *
 * A window is moved by asking for bytes outside of it. It reads `ahead` bytes, or as many as are
 * asked for, and never past `limit`, the end of what may be asked for. It holds memory from the first
 * request until window_release.
 */
#ifndef UNWIND_WINDOW_H
#define UNWIND_WINDOW_H

#include "base/iface.h"

enum { WINDOW_BYTES = 64 * 1024 }; /* generated code has FDEs of 20 KiB */

struct window {
    const struct memory_reader *file;
    uint64_t limit;  /* offset in the file */
    size_t ahead;
    uint64_t offset; /* of bytes[0] */
    size_t len;
    unsigned char *bytes;
    size_t room; /* as much as was asked for so far: most never see more than `ahead` */
};

/* Empty, over the file's bytes before `limit`; `ahead` is at most WINDOW_BYTES. */
void window_init(struct window *w, const struct memory_reader *file, uint64_t limit, size_t ahead);
void window_release(struct window *w);

/* `len` bytes at `offset`, valid until the next call; null where they cannot be read or are more
 * than WINDOW_BYTES, or memory ends. */
const unsigned char *window_at(struct window *w, uint64_t offset, size_t len);

/* As many of them as there are before the limit: *have is their number. Null when there are none. */
const unsigned char *window_some(struct window *w, uint64_t offset, size_t len, size_t *have);

#endif
