/* gzip over zlib: a compressor in front of a sink, and a decompressor into a bounded buffer. Output
 * is the same bytes for the same input. Input is foreign: a stream that is cut, damaged or larger
 * than the buffer may grow is an error. */
#include "base/gzip.h"

enum {
    WINDOW_BITS_GZIP = 15 + 16, /* zlib's way to say "with a gzip header" */
    MEM_LEVEL = 8,
    LEVEL = 6,
    QUICK_LEVEL = 3, /* half the time of 6 for a profile, a fifth more bytes */
    INPUT_MAX = 1 << 30, /* zlib counts its input in unsigned int */
};

static bool open_level(struct gzip *gzip, struct sink *out, int level, struct err *err)
{
    gzip->stream = (z_stream){0};
    gzip->out = out;
    int status = deflateInit2(&gzip->stream, level, Z_DEFLATED, WINDOW_BITS_GZIP, MEM_LEVEL,
                              Z_DEFAULT_STRATEGY);
    if (status != Z_OK) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the compressor");
    }
    return true;
}

bool gzip_open(struct gzip *gzip, struct sink *out, struct err *err)
{
    return open_level(gzip, out, LEVEL, err);
}

bool gzip_open_quick(struct gzip *gzip, struct sink *out, struct err *err)
{
    return open_level(gzip, out, QUICK_LEVEL, err);
}

/* Runs the compressor until it has taken all input (or, when finishing, given all output). */
static bool pump(struct gzip *gzip, int flush, struct err *err)
{
    z_stream *z = &gzip->stream;
    do {
        z->next_out = gzip->chunk;
        z->avail_out = sizeof gzip->chunk;
        if (deflate(z, flush) == Z_STREAM_ERROR) {
            return err_set(err, ERR_IO, 0, "the compressor is not open");
        }
        if (!sink_write(gzip->out, gzip->chunk, sizeof gzip->chunk - z->avail_out, err)) {
            return false;
        }
    } while (z->avail_out == 0);
    return true;
}

static bool write_plain(void *context, const void *ptr, size_t len, struct err *err)
{
    struct gzip *gzip = context;
    const unsigned char *at = ptr;
    while (len > 0) {
        size_t part = len < INPUT_MAX ? len : INPUT_MAX;
        gzip->stream.next_in = (unsigned char *)at;
        gzip->stream.avail_in = (unsigned)part;
        if (!pump(gzip, Z_NO_FLUSH, err)) {
            return false;
        }
        at += part;
        len -= part;
    }
    return true;
}

struct sink gzip_sink(struct gzip *gzip)
{
    return (struct sink){write_plain, gzip};
}

bool gzip_finish(struct gzip *gzip, struct err *err)
{
    gzip->stream.avail_in = 0;
    return pump(gzip, Z_FINISH, err);
}

void gzip_release(struct gzip *gzip)
{
    deflateEnd(&gzip->stream);
}

bool gzip_is(const void *ptr, size_t len)
{
    return len >= 3 && memcmp(ptr, "\x1f\x8b\x08", 3) == 0;
}

/* Unpacks into the free room of `out` until the member or the input ends. */
static int inflate_member(z_stream *z, struct buf *out)
{
    int status = Z_OK;
    while (status == Z_OK) {
        size_t left = out->max - out->len;
        size_t part = left < GZIP_CHUNK_BYTES ? left : GZIP_CHUNK_BYTES;
        unsigned char probe; /* the last byte too many shows that the limit is passed */
        z->next_out = part == 0 ? &probe : (unsigned char *)buf_room(out, part);
        if (z->next_out == NULL) {
            return Z_MEM_ERROR;
        }
        size_t given = part == 0 ? 1 : part;
        z->avail_out = (unsigned)given;
        status = inflate(z, Z_NO_FLUSH);
        size_t made = given - z->avail_out;
        if (part == 0 && made > 0) {
            out->failed = true;
            return Z_OK;
        }
        out->len += made;
        if (status == Z_OK && made == 0 && z->avail_in == 0) {
            return Z_BUF_ERROR;
        }
    }
    return status;
}

static bool inflate_all(z_stream *z, const unsigned char *at, size_t len, struct buf *out,
                        struct err *err)
{
    z->next_in = (unsigned char *)at;
    z->avail_in = (unsigned)len;
    do {
        int status = inflate_member(z, out);
        if (out->failed) {
            return err_set(err, ERR_LIMIT, 0, "decompresses to more than %zu bytes", out->max);
        }
        if (status == Z_BUF_ERROR) {
            return err_set(err, ERR_MALFORMED, 0, "the compressed data is truncated");
        }
        if (status != Z_STREAM_END) {
            return err_set(err, ERR_MALFORMED, 0, "the compressed data is damaged (%s)",
                           z->msg != NULL ? z->msg : "checksum or format");
        }
    } while (gzip_is(z->next_in, z->avail_in) && inflateReset(z) == Z_OK);
    return true;
}

bool gzip_inflate(const void *ptr, size_t len, struct buf *out, struct err *err)
{
    z_stream z = {0};
    if (len > INPUT_MAX) {
        return err_set(err, ERR_LIMIT, 0, "compressed input has %zu bytes; at most %d are read", len,
                       INPUT_MAX);
    }
    if (inflateInit2(&z, WINDOW_BITS_GZIP) != Z_OK) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the decompressor");
    }
    bool ok = inflate_all(&z, ptr, len, out, err);
    inflateEnd(&z);
    return ok;
}
