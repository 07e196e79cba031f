/* Bounded reads of foreign bytes: integers, LEB128 numbers, texts and slices. A read that passes the
 * end returns zero and sets `short_read`, so a parser checks once for a whole structure instead of
 * after each field. */
#include "base/cursor.h"

#include <endian.h>

const void *cursor_take(struct cursor *c, size_t len)
{
    if (len > c->len) {
        c->ptr = c->len == 0 ? c->ptr : c->ptr + c->len; /* a null pointer is not moved */
        c->len = 0;
        c->short_read = true;
        return NULL;
    }
    const void *taken = c->ptr;
    c->ptr = len == 0 ? c->ptr : c->ptr + len;
    c->len -= len;
    return taken;
}

/* The next bytes, or zeros. By memcpy, which becomes one load: a loop over bytes does not, and every sample is
 * read with these. */
static inline void load(struct cursor *c, void *out, size_t len)
{
    const void *p = cursor_take(c, len);
    if (p != NULL) {
        memcpy(out, p, len);
    }
}

uint8_t cursor_u8(struct cursor *c)
{
    uint8_t value = 0;
    load(c, &value, sizeof value);
    return value;
}

uint16_t cursor_u16(struct cursor *c)
{
    uint16_t value = 0;
    load(c, &value, sizeof value);
    return le16toh(value);
}

uint32_t cursor_u32(struct cursor *c)
{
    uint32_t value = 0;
    load(c, &value, sizeof value);
    return le32toh(value);
}

uint64_t cursor_u64(struct cursor *c)
{
    uint64_t value = 0;
    load(c, &value, sizeof value);
    return le64toh(value);
}

uint32_t cursor_u32_be(struct cursor *c)
{
    return __builtin_bswap32(cursor_u32(c));
}

enum { LEB_MAX_BYTES = 10 };

/* Reads one LEB128; *bits tells how many value bits were stored, for sign extension. */
static uint64_t leb(struct cursor *c, unsigned *bits, bool *negative)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < LEB_MAX_BYTES; i++) {
        const unsigned char *p = cursor_take(c, 1);
        if (p == NULL) {
            return 0;
        }
        value |= (uint64_t)(*p & 0x7f) << (i * 7);
        if ((*p & 0x80) == 0) {
            *bits = (i + 1) * 7;
            *negative = (*p & 0x40) != 0;
            return value;
        }
    }
    c->short_read = true;
    return 0;
}

uint64_t cursor_uleb(struct cursor *c)
{
    unsigned bits = 0;
    bool negative = false;
    return leb(c, &bits, &negative);
}

int64_t cursor_sleb(struct cursor *c)
{
    unsigned bits = 0;
    bool negative = false;
    uint64_t value = leb(c, &bits, &negative);
    if (negative && bits < 64) {
        value |= ~(uint64_t)0 << bits;
    }
    return (int64_t)value;
}

struct str cursor_cstr(struct cursor *c)
{
    const char *start = (const char *)c->ptr;
    const char *end = c->len == 0 ? NULL : memchr(start, 0, c->len);
    size_t len = end == NULL ? c->len : (size_t)(end - start);
    cursor_skip(c, len);
    cursor_skip(c, 1);
    return (struct str){start, len};
}
