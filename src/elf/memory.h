/*
 * memory: an ELF file read back from the memory of a process that has it mapped.
 *
 * Concept. A library may be deleted or replaced while it runs, and then no path leads to it. But its
 * headers, dynamic symbols, unwind tables and build id are in loaded segments: copying the read-only
 * ones gives a file with holes, enough for elf_open and everything that needs no section table. What was
 * never loaded (.symtab, debug information) is gone.
 *
 * Call order. elf_memory_copy while the process lives; elf_memory_reader as often as wanted;
 * elf_memory_release.
 *
 * Limits. ELF_MEMORY_MAX_BYTES per image. Executable segments are copied only up to
 * ELF_MEMORY_CODE_MAX_BYTES: code is read only where nothing else tells how to unwind it.
 *
 * Errors. ERR_MALFORMED when there is no ELF header at `base`; the reader's errors.
 */
#ifndef ELF_MEMORY_H
#define ELF_MEMORY_H

#include "base/iface.h"
#include "base/vec.h"

enum {
    ELF_MEMORY_MAX_BYTES = 32 << 20,
    ELF_MEMORY_CODE_MAX_BYTES = 1 << 20,
};

struct elf_memory_piece {
    uint64_t offset; /* in the file */
    size_t bytes;
    unsigned char *data;
};

struct elf_memory {
    VEC(struct elf_memory_piece) pieces;
};

/* `base` is where the file's offset 0 is mapped. */
bool elf_memory_copy(struct elf_memory *m, const struct memory_reader *process, uint64_t base,
                     struct err *err);

/* Reads at offsets in the file; `m` is borrowed. */
struct memory_reader elf_memory_reader(struct elf_memory *m);
void elf_memory_release(struct elf_memory *m);

#endif
