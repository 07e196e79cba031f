/* gzip over zlib: a compressor in front of a sink, and a decompressor that gives piece by piece, or into a bounded
 * buffer. Output is the same bytes for the same input. Input is foreign: a stream that is cut, damaged or larger
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

/* ---- Reading ---- */

static bool open_packed(struct gunzip *g, const void *ptr, size_t len, struct err *err)
{
    *g = (struct gunzip){.input = ptr, .len = len, .is_plain = true};
    if (len > INPUT_MAX) {
        return err_set(err, ERR_LIMIT, 0, "compressed input has %zu bytes; at most %d are read", len,
                       INPUT_MAX);
    }
    if (inflateInit2(&g->stream, WINDOW_BITS_GZIP) != Z_OK) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the decompressor");
    }
    g->is_plain = false;
    gunzip_rewind(g);
    return true;
}

bool gunzip_open(struct gunzip *gunzip, const void *ptr, size_t len, struct err *err)
{
    if (gzip_is(ptr, len)) {
        return open_packed(gunzip, ptr, len, err);
    }
    *gunzip = (struct gunzip){.input = ptr, .len = len, .is_plain = true};
    gunzip_rewind(gunzip);
    return true;
}

void gunzip_rewind(struct gunzip *gunzip)
{
    if (!gunzip->is_plain) {
        inflateReset(&gunzip->stream);
        if (gunzip->is_over) { /* the checksums were right, and are a tenth of the time */
            inflateValidate(&gunzip->stream, 0);
        }
    }
    gunzip->stream.next_in = (unsigned char *)gunzip->input;
    gunzip->stream.avail_in = (unsigned)(gunzip->is_plain ? 0 : gunzip->len);
    gunzip->stream.total_in = 0;
    gunzip->is_over = false;
}

void gunzip_release(struct gunzip *gunzip)
{
    if (!gunzip->is_plain) {
        inflateEnd(&gunzip->stream);
    }
    gunzip->is_plain = true;
}

static size_t read_plain(struct gunzip *g, void *to, size_t len)
{
    size_t left = g->len - g->stream.total_in;
    size_t part = left < len ? left : len;
    if (part > 0) {
        memcpy(to, g->input + g->stream.total_in, part);
    }
    g->stream.total_in += part;
    return part;
}

/* What one call of the decompressor gives. At a member's end the next one is begun. */
static bool read_some(struct gunzip *g, struct err *err)
{
    z_stream *z = &g->stream;
    unsigned room = z->avail_out;
    int status = inflate(z, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
        g->is_over = !gzip_is(z->next_in, z->avail_in) || inflateReset(z) != Z_OK;
        return true;
    }
    if (status == Z_BUF_ERROR || (status == Z_OK && z->avail_out == room && z->avail_in == 0)) {
        return err_set(err, ERR_MALFORMED, 0, "the compressed data is truncated");
    }
    if (status != Z_OK) {
        return err_set(err, ERR_MALFORMED, 0, "the compressed data is damaged (%s)",
                       z->msg != NULL ? z->msg : "checksum or format");
    }
    return true;
}

bool gunzip_read(struct gunzip *gunzip, void *to, size_t len, size_t *got, struct err *err)
{
    if (gunzip->is_plain) {
        *got = read_plain(gunzip, to, len);
        return true;
    }
    len = len < INPUT_MAX ? len : INPUT_MAX;
    gunzip->stream.next_out = to;
    gunzip->stream.avail_out = (unsigned)len;
    while (gunzip->stream.avail_out > 0 && !gunzip->is_over) {
        if (!read_some(gunzip, err)) {
            return false;
        }
    }
    *got = len - gunzip->stream.avail_out;
    return true;
}

/* Into the free room of `out`; the first byte too many shows that the limit is passed. */
static bool inflate_all(struct gunzip *g, struct buf *out, struct err *err)
{
    size_t got = 1;
    while (got > 0) {
        size_t left = out->max - out->len;
        size_t part = left < GZIP_CHUNK_BYTES ? left : GZIP_CHUNK_BYTES;
        char probe;
        char *room = part == 0 ? &probe : buf_room(out, part);
        if (room == NULL) {
            return err_set(err, ERR_MEMORY, 0, "no memory for what is decompressed");
        }
        if (!gunzip_read(g, room, part == 0 ? 1 : part, &got, err)) {
            return false;
        }
        if (part == 0 && got > 0) {
            out->failed = true;
            return err_set(err, ERR_LIMIT, 0, "decompresses to more than %zu bytes", out->max);
        }
        out->len += got;
    }
    return true;
}

bool gzip_inflate(const void *ptr, size_t len, struct buf *out, struct err *err)
{
    struct gunzip g;
    bool ok = open_packed(&g, ptr, len, err) && inflate_all(&g, out, err);
    gunzip_release(&g);
    return ok;
}
