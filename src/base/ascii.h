/* ascii: comparing the words of protocols, whose letters' case does not matter. No locale has a say. */
#ifndef BASE_ASCII_H
#define BASE_ASCII_H

#include "base/str.h"

static inline char ascii_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

static inline bool ascii_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static inline bool ascii_is_alnum(char byte)
{
    char lower = ascii_lower(byte);
    return (lower >= 'a' && lower <= 'z') || ascii_is_digit(byte);
}

/* Printable and no blank: what an address may consist of. */
static inline bool ascii_is_visible(char byte)
{
    return byte > ' ' && byte < 0x7f;
}

static inline bool ascii_same(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (ascii_lower(a.ptr[i]) != ascii_lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

static inline bool ascii_starts(struct str text, struct str prefix)
{
    return text.len >= prefix.len && ascii_same(str_sub(text, 0, prefix.len), prefix);
}

static inline bool ascii_ends(struct str text, struct str suffix)
{
    return text.len >= suffix.len &&
           ascii_same(str_sub(text, text.len - suffix.len, suffix.len), suffix);
}

#endif
