/*
 * gzip: RFC 1952 streams, written through a sink and read from memory.
 *
 * Writing. gzip_open puts a compressor in front of a sink; gzip_sink is where the plain bytes go;
 * gzip_finish writes the end. gzip_release is called in every case, also after a failure. The result
 * is deterministic: no file name, no time. Memory: about 270 KB plus the struct.
 *
 * Reading. gzip_inflate appends the plain bytes of all members to a buf, whose maximum is the limit:
 * a small file that unpacks to more is refused (ERR_LIMIT), a damaged or cut one is ERR_MALFORMED.
 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include "base/err.h"
#include "base/iface.h"

#include <zlib.h>

enum { GZIP_CHUNK_BYTES = 16 * 1024 };

struct gzip {
    z_stream stream;
    struct sink *out;
    unsigned char chunk[GZIP_CHUNK_BYTES];
};

bool gzip_open(struct gzip *gzip, struct sink *out, struct err *err);
/* For what is sent, not kept. */
bool gzip_open_quick(struct gzip *gzip, struct sink *out, struct err *err);
struct sink gzip_sink(struct gzip *gzip);
bool gzip_finish(struct gzip *gzip, struct err *err);
void gzip_release(struct gzip *gzip);

bool gzip_is(const void *ptr, size_t len);
bool gzip_inflate(const void *ptr, size_t len, struct buf *out, struct err *err);

#endif
