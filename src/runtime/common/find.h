/*
 * find: one process while a runtime's structures are looked for in it: bounded reads, and what an address is.
 *
 * A runtime embeds struct find in its own. Everything read is hostile; what is refused leaves no trace but
 * `unread`, the reason why memory could not be read at all.
 */
#ifndef RUNTIME_COMMON_FIND_H
#define RUNTIME_COMMON_FIND_H

#include "base/str.h"
#include "runtime/runtime.h"

#include <string.h>

enum {
    FIND_READS_MAX = 32768, /* of one attach: 8192 threads checked three times, some 30 ms */
};

struct find {
    const struct runtime_process *process;
    unsigned reads;
    struct err *unread;
};

/* Exactly `len` bytes of the process; false when they are not all there, or too much was read. */
bool find_read(struct find *f, uint64_t address, void *out, size_t len);
bool find_word(struct find *f, uint64_t address, uint64_t *out);

/* A number of at most 8 bytes, little-endian, in bytes that were read. */
uint64_t find_number(const unsigned char *bytes, uint32_t at, size_t width);

/* Does the NUL-terminated text at `address` equal `text` (at most 30 bytes)? */
bool find_is_text(struct find *f, uint64_t address, const char *text);

/* Is the aligned address in memory that can be read and written? */
bool find_is_data(const struct find *f, uint64_t address);

/* Is it a thread of the process, as its own PID namespace numbers them? */
bool find_is_tid(const struct find *f, uint64_t tid);

/* scan.c: calls `each` with pieces of the file's writable data in this process, at multiples of 8,
 * until it returns true; false when it never does. Pieces overlap by `overlap` bytes. */
struct find_piece {
    const unsigned char *bytes;
    size_t len;
    uint64_t address;
};
bool find_scan(struct find *f, size_t overlap,
               bool (*each)(void *context, const struct find_piece *piece), void *context);

/* ring.c: shows `accept` where in that data pointers stand that lead, by the word at `forth` of what they point to, to
 * something whose word at `back` is the same pointer again, until it returns true. */
bool find_ring(struct find *f, uint32_t forth, uint32_t back, bool (*accept)(void *context, uint64_t at),
               void *context);

/* pthread.c: at which offset libc's thread structure holds the thread's number, learnt from some of the
 * process's threads, by their pthread_self. */
bool find_tid_in_pthread(struct find *f, const uint64_t *pthreads, size_t count, uint32_t *offset);

#endif
