/*
 * content: what is in a section, unpacked: plain, compressed with a header of the format's own, or the
 * older .zdebug. Sizes are bounded before memory is asked for; a stream that ends early is an error.
 */
#include <elf.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cursor.h"
#include "elf/private.h"

enum {
    CONTENT_CHUNK_BYTES = 32 * 1024,
    ZDEBUG_HEADER_BYTES = 12, /* "ZLIB" and the length */
};

/* Where the contents begin after a header of their own, and what they unpack to. */
struct content {
    uint64_t offset, bytes;
    uint64_t unpacked;
    bool packed;
};

static bool find_compressed(struct elf *e, const struct elf_section *section, struct content *out,
                            struct err *err)
{
    unsigned char header[sizeof(Elf64_Chdr)];
    size_t header_bytes = e->is_32bit ? sizeof(Elf32_Chdr) : sizeof(Elf64_Chdr);
    if (section->bytes < header_bytes) {
        return err_set(err, ERR_MALFORMED, 0, "compressed section has only %llu bytes",
                       (unsigned long long)section->bytes);
    }
    if (!elf_read(e, section->offset, header, header_bytes, err)) {
        return false;
    }
    struct cursor c = cursor_of(header, header_bytes);
    uint32_t method = cursor_u32(&c);
    cursor_skip(&c, e->is_32bit ? 0 : 4); /* ch_reserved */
    uint64_t unpacked = e->is_32bit ? cursor_u32(&c) : cursor_u64(&c);
    if (method != ELFCOMPRESS_ZLIB) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "section is compressed with method %u; only zlib (1) is supported", method);
    }
    *out = (struct content){section->offset + header_bytes, section->bytes - header_bytes,
                            unpacked, true};
    return true;
}

/* The way of before SHF_COMPRESSED: only the name says that there may be a header. */
static bool find_zdebug(struct elf *e, const struct elf_section *section, struct content *out)
{
    unsigned char header[ZDEBUG_HEADER_BYTES];
    struct str name;
    if (section->bytes < sizeof header || !elf_section_name(e, section, &name) ||
        !str_starts(name, STR(".zdebug_")) ||
        !elf_read(e, section->offset, header, sizeof header, NULL) ||
        memcmp(header, "ZLIB", 4) != 0) {
        return false;
    }
    struct cursor c = cursor_of(header + 4, sizeof header - 4);
    uint64_t high = cursor_u32_be(&c), low = cursor_u32_be(&c);
    *out = (struct content){section->offset + sizeof header, section->bytes - sizeof header,
                            high << 32 | low, true};
    return true;
}

static bool find_content(struct elf *e, const struct elf_section *section, struct content *out,
                         struct err *err)
{
    if (section->type == SHT_NOBITS || section->type == SHT_NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0, "the section has no contents in this file");
    }
    if (section->compressed) {
        return find_compressed(e, section, out, err);
    }
    if (!find_zdebug(e, section, out)) {
        *out = (struct content){section->offset, section->bytes, section->bytes, false};
    }
    return true;
}

bool elf_section_size(struct elf *e, const struct elf_section *section, uint64_t *bytes,
                      struct err *err)
{
    struct content content;
    if (!find_content(e, section, &content, err)) {
        return false;
    }
    *bytes = content.unpacked;
    return true;
}

static bool no_memory(struct err *err)
{
    return err_set(err, ERR_MEMORY, 0, "no memory for a section's contents");
}

/* In pieces: a section that claims more than the file has costs no more than the file. */
static bool copy_content(const struct elf *e, const struct content *content, struct buf *out,
                         struct err *err)
{
    for (uint64_t done = 0; done < content->bytes;) {
        uint64_t left = content->bytes - done;
        size_t part = left < CONTENT_CHUNK_BYTES ? (size_t)left : CONTENT_CHUNK_BYTES;
        char *room = buf_room(out, part);
        if (room == NULL) {
            return no_memory(err);
        }
        if (!elf_read(e, content->offset + done, room, part, err)) {
            return false;
        }
        out->len += part;
        done += part;
    }
    return true;
}

static bool damaged(struct err *err)
{
    return err_set(err, ERR_MALFORMED, 0, "the compressed section is corrupt");
}

/* Unpacks the input at hand to the end of `out`, never beyond `limit` bytes of it. */
static bool inflate_chunk(z_stream *z, struct buf *out, size_t limit, bool *ended, struct err *err)
{
    do {
        size_t left = limit - out->len;
        size_t part = left < CONTENT_CHUNK_BYTES ? left : CONTENT_CHUNK_BYTES;
        unsigned char none[1]; /* zlib reads the checksum at the end also without room to write */
        char *room = part == 0 ? (char *)none : buf_room(out, part);
        if (room == NULL) {
            return no_memory(err);
        }
        z->next_out = (unsigned char *)room;
        z->avail_out = (unsigned)part;
        int status = inflate(z, Z_NO_FLUSH);
        out->len += part - z->avail_out;
        *ended = status == Z_STREAM_END;
        if (status == Z_BUF_ERROR && z->avail_in == 0) {
            return true; /* more input is wanted */
        }
        if (status != Z_OK && !*ended) {
            return damaged(err);
        }
    } while (!*ended && (z->avail_in > 0 || z->avail_out == 0));
    return true;
}

static bool inflate_content(const struct elf *e, const struct content *content, z_stream *z,
                            unsigned char *chunk, struct buf *out, struct err *err)
{
    size_t limit = out->len + (size_t)content->unpacked;
    bool ended = false;
    for (uint64_t done = 0; !ended && done < content->bytes;) {
        uint64_t left = content->bytes - done;
        size_t part = left < CONTENT_CHUNK_BYTES ? (size_t)left : CONTENT_CHUNK_BYTES;
        if (!elf_read(e, content->offset + done, chunk, part, err)) {
            return false;
        }
        z->next_in = chunk;
        z->avail_in = (unsigned)part;
        if (!inflate_chunk(z, out, limit, &ended, err)) {
            return false;
        }
        done += part;
    }
    return (ended && out->len == limit) || damaged(err);
}

static bool unpack_content(const struct elf *e, const struct content *content, struct buf *out,
                           struct err *err)
{
    z_stream z = {0};
    unsigned char *chunk = malloc(CONTENT_CHUNK_BYTES);
    if (chunk == NULL || inflateInit(&z) != Z_OK) {
        free(chunk);
        return no_memory(err);
    }
    bool good = inflate_content(e, content, &z, chunk, out, err);
    inflateEnd(&z);
    free(chunk);
    return good;
}

bool elf_section_read(struct elf *e, const struct elf_section *section, struct buf *out,
                      struct err *err)
{
    struct content content;
    size_t before = out->len;
    if (!find_content(e, section, &content, err)) {
        return false;
    }
    if (content.unpacked > out->max - out->len) {
        return err_set(err, ERR_LIMIT, 0, "section has %llu bytes; at most %zu are read",
                       (unsigned long long)content.unpacked, out->max - out->len);
    }
    bool good = content.packed ? unpack_content(e, &content, out, err)
                               : copy_content(e, &content, out, err);
    if (!good) {
        out->len = before;
        out->failed = false;
    }
    return good;
}
