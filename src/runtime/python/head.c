/* The text of a stripped CPython's version, in its writable data. */
#include "runtime/python/find.h"

enum { VERSION_BYTES = 32 };

static bool take_version(void *context, const struct find_piece *piece)
{
    uint32_t *version = context;
    for (size_t at = 0; at + VERSION_BYTES <= piece->len; at++) {
        struct str text = {(const char *)piece->bytes + at, VERSION_BYTES};
        size_t len;
        if (text.ptr[1] != '.' || (at > 0 && text.ptr[-1] != '\0')) {
            continue;
        }
        *version = python_version_of(text, &len);
        if (*version != 0 && str_starts(str_sub(text, len, text.len), STR(" ("))) {
            return true; /* "3.9.18 (main, Jan  2 2024, 03:04:05) \n[GCC 12.2.0]" */
        }
    }
    return false;
}

uint32_t python_find_version(struct python_find *f)
{
    uint32_t version = 0;
    return find_scan(&f->in, VERSION_BYTES, take_version, &version) ? version : 0;
}
