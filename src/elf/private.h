/* What the files of elf/ share among themselves. */
#ifndef ELF_PRIVATE_H
#define ELF_PRIVATE_H

#include "elf/elf.h"

enum { ELF_PROT_EXEC = 4 };

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

#endif
