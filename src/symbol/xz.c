/* .gnu_debugdata: an .xz stream in a section, unpacked by liblzma. */
#include <lzma.h>
#include <stdlib.h>

#include "symbol/private.h"

enum { XZ_CHUNK_BYTES = 32 * 1024 };

static bool stopped(lzma_ret status, struct err *err)
{
    switch (status) {
    case LZMA_MEM_ERROR:
        return err_set(err, ERR_MEMORY, 0, "no memory to unpack with");
    case LZMA_MEMLIMIT_ERROR:
        return err_set(err, ERR_LIMIT, 0, "needs too much memory to be unpacked");
    case LZMA_OPTIONS_ERROR:
        return err_set(err, ERR_UNSUPPORTED, 0, "packed with a filter other than LZMA2");
    default:
        return err_set(err, ERR_MALFORMED, 0, "the packed symbols are damaged");
    }
}

/* Unpacks the input at hand to the end of `out`. */
static bool feed(lzma_stream *xz, struct buf *out, bool *ended, struct err *err)
{
    do {
        size_t left = out->max - out->len;
        size_t part = left < XZ_CHUNK_BYTES ? left : XZ_CHUNK_BYTES;
        if (part == 0) {
            return err_set(err, ERR_LIMIT, 0, "unpacks to more than %zu bytes", out->max);
        }
        xz->next_out = (uint8_t *)buf_room(out, part);
        xz->avail_out = part;
        if (xz->next_out == NULL) {
            return stopped(LZMA_MEM_ERROR, err);
        }
        lzma_ret status = lzma_code(xz, LZMA_RUN);
        out->len += part - xz->avail_out;
        *ended = status == LZMA_STREAM_END;
        if (status == LZMA_BUF_ERROR && xz->avail_in == 0) {
            return true; /* more input is wanted */
        }
        if (status != LZMA_OK && !*ended) {
            return stopped(status, err);
        }
    } while (!*ended && (xz->avail_in > 0 || xz->avail_out == 0));
    return true;
}

static bool feed_all(const struct elf *e, const struct elf_section *section, lzma_stream *xz,
                     unsigned char *chunk, struct buf *out, struct err *err)
{
    bool ended = false;
    for (uint64_t done = 0; !ended && done < section->bytes;) {
        uint64_t left = section->bytes - done;
        size_t part = left < XZ_CHUNK_BYTES ? (size_t)left : XZ_CHUNK_BYTES;
        if (!elf_read(e, section->offset + done, chunk, part, err)) {
            return false;
        }
        xz->next_in = chunk;
        xz->avail_in = part;
        if (!feed(xz, out, &ended, err)) {
            return false;
        }
        done += part;
    }
    return ended || stopped(LZMA_DATA_ERROR, err);
}

bool unpack_xz(const struct elf *e, const struct elf_section *section, size_t memory_max,
               struct buf *out, struct err *err)
{
    lzma_stream xz = LZMA_STREAM_INIT;
    unsigned char *chunk = malloc(XZ_CHUNK_BYTES);
    lzma_ret status = chunk == NULL ? LZMA_MEM_ERROR : lzma_stream_decoder(&xz, memory_max, 0);
    bool good = status == LZMA_OK ? feed_all(e, section, &xz, chunk, out, err)
                                  : stopped(status, err);
    lzma_end(&xz);
    free(chunk);
    return good;
}
