/*
 * gzip: RFC 1952 streams, written through a sink and read from memory.
 *
 * Writing. gzip_open puts a compressor in front of a sink; gzip_sink is where the plain bytes go;
 * gzip_finish writes the end. gzip_release is called in every case, also after a failure. The result
 * is deterministic: no file name, no time. Memory: about 270 KB plus the struct.
 *
 * Reading at once. gzip_inflate appends the plain bytes of all members to a buf, whose maximum is the limit:
 * a small file that unpacks to more is refused (ERR_LIMIT), a damaged or cut one is ERR_MALFORMED.
 *
 * Reading piece by piece, and again from the start, for what would be too large unpacked. gunzip_open borrows the
 * packed bytes until gunzip_release, which is called in every case; gunzip_read gives the next plain bytes;
 * gunzip_rewind starts anew without new memory. Bytes that are not gzip's are read as they are. Damage is known only
 * when the end was read. Memory: about 40 KB, nothing for plain input. The same errors; the limit is the caller's
 * count.
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

struct gunzip {
    z_stream stream;
    const unsigned char *input;
    size_t len;
    bool is_plain;
    bool is_over; /* the last member has ended */
};

bool gunzip_open(struct gunzip *gunzip, const void *ptr, size_t len, struct err *err);
/* Fills `to` as far as there is something, and sets *got; 0 for a `len` that is not 0: the end. */
bool gunzip_read(struct gunzip *gunzip, void *to, size_t len, size_t *got, struct err *err);
void gunzip_rewind(struct gunzip *gunzip);
void gunzip_release(struct gunzip *gunzip);

#endif
