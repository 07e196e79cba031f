/*
 * memory: an ELF file put together from the memory of a process, for code that has no file any more. Its
 * loaded pieces are copied once and answer reads by offset, as the file would.
 */
#include "elf/memory.h"
#include "elf/elf.h"

#include <elf.h>
#include <stdlib.h>

static bool copy_piece(struct elf_memory *m, const struct memory_reader *process, uint64_t address,
                       uint64_t offset, size_t bytes, struct err *err)
{
    struct elf_memory_piece *piece = vec_push(&m->pieces);
    if (piece == NULL || (piece->data = malloc(bytes)) == NULL) {
        m->pieces.len -= piece != NULL;
        return err_set(err, ERR_MEMORY, 0, "no memory for %zu bytes of an image", bytes);
    }
    piece->offset = offset;
    piece->bytes = bytes;
    if (!process->read(process->context, address, piece->data, bytes, err)) {
        free(piece->data);
        m->pieces.len--;
        return false;
    }
    return true;
}

/* Headers count as a piece of their own, so that their reading needs no special case. */
static bool copy_headers(struct elf_memory *m, const struct memory_reader *process, uint64_t base,
                         Elf64_Ehdr *header, struct err *err)
{
    if (!process->read(process->context, base, header, sizeof *header, err)) {
        return false;
    }
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr) ||
        header->e_phnum == 0 || header->e_phnum > ELF_PROGRAM_HEADERS_MAX) {
        return err_set(err, ERR_MALFORMED, 0, "no ELF header at %#llx", (unsigned long long)base);
    }
    uint64_t end = header->e_phoff + (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
    if (header->e_phoff > ELF_WINDOW_BYTES || end > 2 * ELF_WINDOW_BYTES) {
        return err_set(err, ERR_UNSUPPORTED, 0, "the program headers are too far from the ELF header");
    }
    return copy_piece(m, process, base, 0, (size_t)end, err);
}

static bool is_wanted(const Elf64_Phdr *segment, size_t left)
{
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0 || segment->p_filesz == 0 ||
        segment->p_filesz > left) {
        return false;
    }
    return (segment->p_flags & PF_X) == 0 || segment->p_filesz <= ELF_MEMORY_CODE_MAX_BYTES;
}

static bool is_pointer(uint64_t tag)
{
    return tag == DT_HASH || tag == DT_STRTAB || tag == DT_SYMTAB || tag == DT_RELA ||
           tag == DT_JMPREL || tag == DT_GNU_HASH;
}

/* glibc's loader adds the bias to these pointers where they stand; others leave them as in the file. */
static void restore_pointers(struct elf_memory_piece *piece, uint64_t bias)
{
    for (size_t at = 0; at + sizeof(Elf64_Dyn) <= piece->bytes; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        memcpy(&entry, piece->data + at, sizeof entry);
        if (is_pointer((uint64_t)entry.d_tag) && entry.d_un.d_ptr >= bias) {
            entry.d_un.d_ptr -= bias;
            memcpy(piece->data + at, &entry, sizeof entry);
        }
    }
}

/* The dynamic section stands in writable memory, but is not written to once the file is loaded. */
static void copy_dynamic(struct elf_memory *m, const struct memory_reader *process,
                         const Elf64_Phdr *segment, uint64_t bias)
{
    enum { DYNAMIC_MAX_BYTES = 64 * 1024 };
    if (segment->p_filesz > 0 && segment->p_filesz <= DYNAMIC_MAX_BYTES &&
        copy_piece(m, process, bias + segment->p_vaddr, segment->p_offset,
                   (size_t)segment->p_filesz, NULL)) {
        restore_pointers(&m->pieces.at[m->pieces.len - 1], bias);
    }
}

bool elf_memory_copy(struct elf_memory *m, const struct memory_reader *process, uint64_t base,
                     struct err *err)
{
    Elf64_Ehdr header;
    *m = (struct elf_memory){0};
    if (!copy_headers(m, process, base, &header, err)) {
        elf_memory_release(m);
        return false;
    }
    const unsigned char *table = m->pieces.at[0].data + header.e_phoff;
    uint64_t first = UINT64_MAX; /* p_vaddr of what is mapped at `base` */
    size_t left = ELF_MEMORY_MAX_BYTES;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, table + i * sizeof segment, sizeof segment);
        if (segment.p_type == PT_LOAD && first == UINT64_MAX) {
            first = segment.p_vaddr - segment.p_offset;
        }
        if (first != UINT64_MAX && is_wanted(&segment, left) &&
            copy_piece(m, process, base + (segment.p_vaddr - first), segment.p_offset,
                       (size_t)segment.p_filesz, NULL)) {
            left -= (size_t)segment.p_filesz;
        }
        if (segment.p_type == PT_DYNAMIC && first != UINT64_MAX) {
            copy_dynamic(m, process, &segment, base - first);
        }
    }
    return true;
}

static bool read_piece(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    const struct elf_memory *m = context;
    vec_each(&m->pieces, piece)
    {
        if (offset >= piece->offset && offset - piece->offset <= piece->bytes &&
            len <= piece->bytes - (size_t)(offset - piece->offset)) {
            memcpy(out, piece->data + (offset - piece->offset), len);
            return true;
        }
    }
    return err_set(err, ERR_GONE, 0, "the file is gone, and offset %llu was not loaded",
                   (unsigned long long)offset);
}

struct memory_reader elf_memory_reader(struct elf_memory *m)
{
    return (struct memory_reader){read_piece, m};
}

void elf_memory_release(struct elf_memory *m)
{
    vec_each(&m->pieces, piece)
    {
        free(piece->data);
    }
    vec_release(&m->pieces);
}
