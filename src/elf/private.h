/* What the files of elf/ share among themselves. */
#ifndef ELF_PRIVATE_H
#define ELF_PRIVATE_H

#include "base/cursor.h"
#include "elf/elf.h"

enum {
    ELF_PROT_EXEC = 4,
    ELF_NEEDED_MAX = 256, /* libraries; the largest programs name 200, the C library last */
};

/* note.c: looks for the build id in `bytes` of notes at `offset`; keeps the first. */
void elf_take_note(struct elf *e, uint64_t offset, uint64_t bytes);
void elf_take_note_sections(struct elf *e);

/* table.c: fills e->tables from the sections, or from PT_DYNAMIC. */
void elf_find_tables(struct elf *e);

/* dynamic.c: .dynsym of a file without section headers. */
void elf_find_dynamic_table(struct elf *e, struct elf_symbol_table *out);

/* table.c: the NUL-terminated text at `offset` within `bytes` of texts that start at `base`,
 * borrowed from the window; false when it cannot be read. */
bool elf_text(struct elf *e, uint64_t base, uint64_t bytes, uint64_t offset, struct str *out);

/* dynamic.c: how many relocations at the start of the section are known to be RELATIVE, which name
 * no symbol: most of them in large programs. */
uint64_t elf_relative_count(const struct elf *e, const struct elf_section *section);

/* dynamic.c: what PT_DYNAMIC tells; zeros where it is silent. */
struct elf_dynamic {
    uint64_t symbols, names, names_bytes, hash, gnu_hash; /* addresses, 0: absent */
    uint64_t relocations, relative_count;
    uint64_t needed[ELF_NEEDED_MAX]; /* offsets in the names */
    uint32_t needed_count;
};
void elf_read_dynamic(const struct elf *e, struct elf_dynamic *d);

/* table.c: an entry of a symbol table. */
struct elf_raw_symbol {
    uint32_t name;
    uint8_t info;
    uint16_t section;
    uint64_t value, size;
};
size_t elf_symbol_bytes(const struct elf *e);
struct elf_raw_symbol elf_take_symbol(struct cursor *c, bool is_32bit);
enum elf_binding elf_binding_of(uint8_t info);

#endif
