/* Reading a Go symbol table: blocks of the file kept at hand, bounded by spans. GO_BLOCKS blocks are kept, each in the
 * place that its number hashes to, until another one of that place is read. A read beyond its span, or beyond the end
 * of the file's segments, fails. */
#include "base/cursor.h"
#include "runtime/go/table/private.h"

void go_reader_init(struct go_reader *r, struct elf *elf)
{
    r->elf = elf;
    for (uint32_t i = 0; i < elf->load_count; i++) {
        uint64_t end = elf->loads[i].offset + elf->loads[i].file_bytes;
        r->limit = end > r->limit ? end : r->limit;
    }
}

/* The block that holds this offset, read when it is not at hand; null when it cannot be. */
static const struct go_block *block_of(struct go_reader *r, uint64_t offset)
{
    uint64_t number = offset / GO_BLOCK_BYTES, start = number * GO_BLOCK_BYTES;
    struct go_block *b = &r->blocks[hash_u64(number) % GO_BLOCKS];
    if (b->bytes > 0 && b->number == number) {
        return b;
    }
    b->bytes = 0;
    if (offset >= r->limit) {
        return NULL;
    }
    size_t bytes = r->limit - start < GO_BLOCK_BYTES ? (size_t)(r->limit - start) : GO_BLOCK_BYTES;
    if (!elf_read(r->elf, start, b->data, bytes, NULL)) {
        return NULL;
    }
    b->number = number;
    b->bytes = bytes;
    return b;
}

const unsigned char *go_view(struct go_reader *r, struct go_span span, uint64_t at, size_t *have)
{
    if (at >= span.bytes) {
        return NULL;
    }
    const struct go_block *b = block_of(r, span.offset + at);
    size_t skip = (span.offset + at) % GO_BLOCK_BYTES;
    if (b == NULL || skip >= b->bytes) {
        return NULL;
    }
    size_t left = b->bytes - skip;
    *have = span.bytes - at < left ? (size_t)(span.bytes - at) : left;
    return b->data + skip;
}

bool go_read(struct go_reader *r, struct go_span span, uint64_t at, void *out, size_t len)
{
    for (size_t done = 0, have; done < len; done += have) {
        const unsigned char *bytes = go_view(r, span, at + done, &have);
        if (bytes == NULL) {
            return false;
        }
        have = have < len - done ? have : len - done;
        memcpy((char *)out + done, bytes, have);
    }
    return true;
}

static bool read_number(struct go_reader *r, struct go_span span, uint64_t at, size_t bytes,
                        uint64_t *out)
{
    unsigned char raw[8];
    if (!go_read(r, span, at, raw, bytes)) {
        return false;
    }
    struct cursor c = cursor_of(raw, bytes);
    *out = bytes == 8 ? cursor_u64(&c) : cursor_u32(&c);
    return true;
}

bool go_u32(struct go_reader *r, struct go_span span, uint64_t at, uint32_t *out)
{
    uint64_t value;
    if (!read_number(r, span, at, 4, &value)) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

bool go_word(struct go_reader *r, struct go_span span, uint64_t at, uint64_t *out)
{
    return read_number(r, span, at, go_word_bytes(r->elf), out);
}

bool go_text(struct go_reader *r, struct go_span span, uint64_t at, char out[static GO_NAME_MAX],
             size_t *len)
{
    size_t done = 0, have;
    while (done < GO_NAME_MAX) {
        const unsigned char *bytes = go_view(r, span, at + done, &have);
        if (bytes == NULL) {
            return false;
        }
        have = have < GO_NAME_MAX - done ? have : GO_NAME_MAX - done;
        const unsigned char *end = memchr(bytes, 0, have);
        have = end == NULL ? have : (size_t)(end - bytes);
        memcpy(out + done, bytes, have);
        done += have;
        if (end != NULL) {
            break;
        }
    }
    *len = done;
    return true;
}

bool go_span_of(const struct elf *elf, uint64_t address, struct go_span *out)
{
    for (uint32_t i = 0; i < elf->load_count; i++) {
        const struct elf_load *load = &elf->loads[i];
        if (address >= load->address && address - load->address < load->file_bytes) {
            uint64_t skip = address - load->address;
            *out = (struct go_span){load->offset + skip, load->file_bytes - skip};
            return true;
        }
    }
    return false;
}
