/*
 * multipart: a body of several parts, as a form with files is sent.
 *
 * The boundary is made of the parts, so the same parts are the same bytes whenever they are sent,
 * and it stands in none of them. Names and types are the caller's own words: they hold no quote,
 * backslash or control character.
 *
 *     multipart_boundary(parts, count, boundary)
 *     multipart_put(&text, boundary, parts, count)
 *
 * Source: RFC 7578, RFC 2046 5.1.
 */
#ifndef DELIVER_MULTIPART_H
#define DELIVER_MULTIPART_H

#include "base/str.h"

struct multipart_part {
    const char *name, *file_name, *mime;
    struct str body;
};

enum { MULTIPART_BOUNDARY_MAX = 32 };

void multipart_boundary(const struct multipart_part *parts, size_t count,
                        char out[static MULTIPART_BOUNDARY_MAX]);

void multipart_put(struct buf *out, const char *boundary, const struct multipart_part *parts,
                   size_t count);

#endif
