/* Pointers of a position-independent image, before the loader made them. */
#include <elf.h>

#include "base/cursor.h"
#include "runtime/go/table/private.h"

/* DT_RELA with its size. i386 has DT_REL, which leaves every value in the file. */
void go_relocations_find(struct go_reader *r, struct go_relocations *out)
{
    struct go_span dynamic = {r->elf->dynamic.offset, r->elf->dynamic.bytes};
    uint64_t address = 0, bytes = 0;
    *out = (struct go_relocations){0};
    for (uint64_t at = 0; !r->elf->is_32bit && at < dynamic.bytes && at < 4096;
         at += sizeof(Elf64_Dyn)) {
        uint64_t tag, value;
        if (!go_word(r, dynamic, at, &tag) || !go_word(r, dynamic, at + 8, &value) ||
            tag == DT_NULL) {
            break;
        }
        address = tag == DT_RELA ? value : address;
        bytes = tag == DT_RELASZ ? value : bytes;
    }
    if (bytes > 0 && go_span_of(r->elf, address, &out->span)) {
        out->span.bytes = bytes < out->span.bytes ? bytes : out->span.bytes;
        out->count = out->span.bytes / sizeof(Elf64_Rela);
        out->count = out->count < GO_RELOCATIONS_MAX ? out->count : GO_RELOCATIONS_MAX;
    }
}

bool go_relocation(struct go_reader *r, const struct go_relocations *all, uint64_t index,
                   uint64_t *address, uint64_t *value)
{
    unsigned char raw[sizeof(Elf64_Rela)];
    if (index >= all->count || !go_read(r, all->span, index * sizeof raw, raw, sizeof raw)) {
        return false;
    }
    struct cursor c = cursor_of(raw, sizeof raw);
    *address = cursor_u64(&c);
    uint64_t type = cursor_u64(&c);
    *value = cursor_u64(&c);
    if (type != (r->elf->machine == ELF_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE)) {
        *address = UINT64_MAX;
    }
    return true;
}

uint64_t go_relocation_of(struct go_reader *r, const struct go_relocations *all, uint64_t address)
{
    uint64_t low = 0, high = all->count, at = 0, value;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!go_relocation(r, all, middle, &at, &value)) {
            break;
        }
        if (at == address) {
            return middle;
        }
        if (at < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return all->count;
}

bool go_pointer(struct go_reader *r, const struct go_relocations *all, uint64_t address,
                uint64_t *out)
{
    struct go_span span;
    uint64_t value, at;
    if (!go_span_of(r->elf, address, &span) || !go_word(r, span, 0, &value)) {
        return false;
    }
    if (value == 0 && all->count > 0) {
        uint64_t index = go_relocation_of(r, all, address);
        if (index < all->count && !go_relocation(r, all, index, &at, &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}
