#include "deliver/multipart.h"

#include <stdio.h>

static bool stands_in(const struct multipart_part *parts, size_t count, const char *boundary)
{
    for (size_t i = 0; i < count; i++) {
        struct str body = parts[i].body;
        if (body.len > 0 && memmem(body.ptr, body.len, boundary, strlen(boundary)) != NULL) {
            return true;
        }
    }
    return false;
}

/* It ends: parts of n bytes hold fewer than n boundaries. */
void multipart_boundary(const struct multipart_part *parts, size_t count,
                        char out[static MULTIPART_BOUNDARY_MAX])
{
    uint64_t hash = count > 0 ? str_hash(parts[0].body) : 0;
    for (size_t i = 0; i < count; i++) {
        hash = hash_u64(hash ^ parts[i].body.len);
    }
    do {
        snprintf(out, MULTIPART_BOUNDARY_MAX, "pillion-%016llx", (unsigned long long)hash);
        hash = hash_u64(hash + 1);
    } while (stands_in(parts, count, out));
}

void multipart_put(struct buf *out, const char *boundary, const struct multipart_part *parts,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n",
                   boundary, parts[i].name, parts[i].file_name);
        buf_printf(out, "Content-Type: %s\r\n\r\n", parts[i].mime);
        buf_str(out, parts[i].body);
        buf_text(out, "\r\n");
    }
    buf_printf(out, "--%s--\r\n", boundary);
}
