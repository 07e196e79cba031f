/*
 * cursor: bounded reading of foreign bytes.
 *
 * A cursor walks over (pointer, length). A read past the end yields zero, moves to the end and sets
 * the sticky `short_read` flag; a parser reads a whole structure and checks the flag once. Numbers
 * are little-endian unless named _be. Alignment does not matter.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include "base/str.h"

struct cursor {
    const unsigned char *ptr;
    size_t len; /* bytes left */
    bool short_read;
};

static inline struct cursor cursor_of(const void *ptr, size_t len)
{
    return (struct cursor){ptr, len, false};
}

/* The next `len` bytes, or null (and short_read) when fewer are left. */
const void *cursor_take(struct cursor *c, size_t len);
static inline void cursor_skip(struct cursor *c, size_t len)
{
    (void)cursor_take(c, len);
}

uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
uint32_t cursor_u32_be(struct cursor *c);

/* LEB128, at most 10 bytes; an over-long or cut number is a short read. */
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

/* Bytes up to a NUL (which is consumed, not included); all the rest, and short_read, without one. */
struct str cursor_cstr(struct cursor *c);

#endif
