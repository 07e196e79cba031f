/*
 * plt: the stubs through which a program calls functions of other libraries.
 *
 * Concept. No symbol table names the procedure linkage table, yet samples fall into it. Each stub
 * jumps to where a slot of the global offset table says, and a relocation says whose address the
 * slot gets. So every stub is decoded for its slot, and slots are looked up among the relocations;
 * nothing here depends on how a linker orders stubs and relocations.
 *
 * Known stubs: x86-64 of ld, gold, lld and mold (lazy, non-lazy, with endbr64 or bnd; .plt,
 * .plt.sec, .plt.got, .iplt), AArch64 (with and without BTI and PAC). A lazy stub that only pushes
 * the number of its relocation (.plt beside a .plt.sec) is found by that number. i386 and files
 * without sections have none here.
 *
 * Limits. PLT_SECTION_MAX_BYTES of each section, ELF_RELOCATIONS_MAX of each table of relocations;
 * the search ends when every stub has its symbol, so that .rela.dyn is read for .plt.got only.
 */
#ifndef SYMBOL_PLT_H
#define SYMBOL_PLT_H

#include "elf/elf.h"

enum { PLT_SECTION_MAX_BYTES = 1 << 20 }; /* 65,536 stubs; the largest browsers have 3,000 */

struct plt_stub {
    uint64_t address;
    uint32_t bytes;
    uint32_t symbol;   /* number in .dynsym of the function called; 0: not told */
    uint64_t resolver; /* ELF address of the function that chooses the one called; 0: none does */
};

struct plt {
    VEC(struct plt_stub) stubs; /* by section, rising in each */
};

/* False only when memory ends or the file cannot be read; no stubs are no error. */
bool plt_read(struct plt *plt, struct elf *elf, struct err *err);
void plt_release(struct plt *plt);

#endif
