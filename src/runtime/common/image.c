/* A file's constants and pointers (image.h): its segments shown in overlapping pieces, and the pointers that its data
 * has once it is loaded, those in place and those that relative relocations put there. Bounded: 64 MiB of a file,
 * 2^18 relocations. */
#include "runtime/common/image.h"

#include "base/cursor.h"

#include <elf.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 64 * 1024,
    SCAN_MAX_BYTES = 64 << 20,
    POINTERS_MAX = 1 << 18, /* an interpreter has 20,000 */
    PROT_READ = 1,
};

/* ---- bytes ---- */

typedef bool visit(void *context, const struct image_piece *piece);

static bool scan_load(struct elf *elf, const struct elf_load *load, unsigned char *buffer,
                      uint64_t *left, visit *each, void *context)
{
    for (uint64_t at = 0; at < load->file_bytes && *left >= PIECE_BYTES;
         at += PIECE_BYTES - IMAGE_OVERLAP_BYTES, *left -= PIECE_BYTES) {
        uint64_t rest = load->file_bytes - at;
        size_t len = rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES;
        struct image_piece piece = {buffer, len, load->address + at};
        if (!elf_read(elf, load->offset + at, buffer, len, NULL)) {
            return false;
        }
        if (each(context, &piece)) {
            return true;
        }
    }
    return false;
}

bool image_scan(struct elf *elf, uint8_t prot,
                       bool (*each)(void *context, const struct image_piece *piece), void *context)
{
    unsigned char *buffer = malloc(PIECE_BYTES);
    uint64_t left = SCAN_MAX_BYTES;
    bool found = false;
    for (uint32_t i = 0; buffer != NULL && !found && i < elf->load_count; i++) {
        const struct elf_load *load = &elf->loads[i];
        found = (load->prot & ~PROT_READ) == prot &&
                scan_load(elf, load, buffer, &left, each, context);
    }
    free(buffer);
    return found;
}

/* ---- pointers ---- */

static void take_relocations(struct image_pointers *p, const unsigned char *bytes, size_t count)
{
    uint32_t relative = p->elf->machine == ELF_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
    struct cursor c = cursor_of(bytes, count * sizeof(Elf64_Rela));
    for (size_t i = 0; i < count; i++) {
        struct image_pointer pointer = {.at = cursor_u64(&c)};
        uint32_t type = (uint32_t)cursor_u64(&c);
        pointer.to = cursor_u64(&c);
        if (type == relative) {
            p->relocated[p->count++] = pointer;
        }
    }
}

static int by_place(const void *left, const void *right)
{
    const struct image_pointer *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

void image_pointers_open(struct image_pointers *p, struct elf *elf)
{
    const struct elf_section *s = elf_section(elf, ".rela.dyn");
    uint64_t count = s != NULL && s->type == SHT_RELA ? s->bytes / sizeof(Elf64_Rela) : 0;
    *p = (struct image_pointers){.elf = elf};
    if (count == 0 || count > POINTERS_MAX || elf->is_32bit) {
        return;
    }
    unsigned char *bytes = malloc((size_t)count * sizeof(Elf64_Rela));
    p->relocated = malloc((size_t)count * sizeof *p->relocated);
    if (bytes != NULL && p->relocated != NULL &&
        elf_read(elf, s->offset, bytes, (size_t)count * sizeof(Elf64_Rela), NULL)) {
        take_relocations(p, bytes, (size_t)count);
        qsort(p->relocated, p->count, sizeof *p->relocated, by_place);
    }
    free(bytes);
}

void image_pointers_close(struct image_pointers *p)
{
    free(p->relocated);
    *p = (struct image_pointers){0};
}

static uint64_t in_place(const struct image_pointers *p, uint64_t address)
{
    unsigned char bytes[8];
    uint64_t offset;
    if (!elf_offset_of(p->elf, address, &offset) ||
        !elf_read(p->elf, offset, bytes, sizeof bytes, NULL)) {
        return 0;
    }
    struct cursor c = cursor_of(bytes, sizeof bytes);
    return cursor_u64(&c);
}

uint64_t image_pointer_at(const struct image_pointers *p, uint64_t address)
{
    const struct image_pointer wanted = {.at = address};
    const struct image_pointer *found =
        p->count == 0 ? NULL
                      : bsearch(&wanted, p->relocated, p->count, sizeof wanted, by_place);
    return found != NULL ? found->to : in_place(p, address);
}

struct pointer_search {
    uint64_t to;
    uint64_t *at;
    size_t count, max;
};

static bool find_in_place(void *context, const struct image_piece *piece)
{
    struct pointer_search *s = context;
    size_t end = piece->len < PIECE_BYTES ? piece->len : PIECE_BYTES - IMAGE_OVERLAP_BYTES;
    for (size_t i = (8 - piece->address % 8) % 8; i + 8 <= end && s->count < s->max; i += 8) {
        struct cursor c = cursor_of(piece->bytes + i, 8);
        if (cursor_u64(&c) == s->to) {
            s->at[s->count++] = piece->address + i;
        }
    }
    return s->count == s->max;
}

size_t image_pointers_to(const struct image_pointers *p, uint64_t to, uint64_t *at, size_t max)
{
    struct pointer_search s = {to, at, 0, max};
    for (size_t i = 0; i < p->count && s.count < max; i++) {
        if (p->relocated[i].to == to) {
            at[s.count++] = p->relocated[i].at;
        }
    }
    if (s.count == 0) {
        (void)image_scan(p->elf, IMAGE_WRITE, find_in_place, &s);
    }
    return s.count;
}
