/*
 * The processors libdw knows here: x86_64 and aarch64.
 *
 * libdw asks a backend for one thing, the frame rules that hold before any CFI instruction (abi_cfi). Upstream's
 * initialisers also bring core-file layouts, ptrace register access and a disassembler; none of that is linked.
 * For every other processor the table of eblopenbackend.c needs a name: the answer is "no such backend".
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <libeblP.h>

int x86_64_abi_cfi(Ebl *ebl, Dwarf_CIE *abi_info);
int aarch64_abi_cfi(Ebl *ebl, Dwarf_CIE *abi_info);

enum { x86_64_frame_registers = 17, aarch64_frame_registers = 97 };

Ebl *x86_64_init(Elf *elf, GElf_Half machine, Ebl *ebl);
Ebl *aarch64_init(Elf *elf, GElf_Half machine, Ebl *ebl);

Ebl *x86_64_init(Elf *elf __attribute__((unused)), GElf_Half machine __attribute__((unused)), Ebl *ebl)
{
    ebl->abi_cfi = x86_64_abi_cfi;
    ebl->frame_nregs = x86_64_frame_registers;
    return ebl;
}

Ebl *aarch64_init(Elf *elf __attribute__((unused)), GElf_Half machine __attribute__((unused)), Ebl *ebl)
{
    ebl->abi_cfi = aarch64_abi_cfi;
    ebl->frame_nregs = aarch64_frame_registers;
    return ebl;
}

#define ABSENT(processor)                                                                                             \
    Ebl *processor##_init(Elf *elf, GElf_Half machine, Ebl *ebl);                                                     \
    Ebl *processor##_init(Elf *elf __attribute__((unused)), GElf_Half machine __attribute__((unused)),                \
                          Ebl *ebl __attribute__((unused)))                                                           \
    {                                                                                                                 \
        return NULL;                                                                                                  \
    }

ABSENT(i386)
ABSENT(sh)
ABSENT(ia64)
ABSENT(alpha)
ABSENT(arm)
ABSENT(sparc)
ABSENT(ppc)
ABSENT(ppc64)
ABSENT(s390)
ABSENT(m68k)
ABSENT(bpf)
ABSENT(riscv)
ABSENT(csky)
ABSENT(loongarch)
ABSENT(arc)
ABSENT(mips)
ABSENT(hexagon)
