/*
 * rule: how to step from one frame to its caller, as data.
 *
 * A rule holds for a range of instructions. It says how to compute the canonical frame address
 * (CFA: the stack pointer before the call), and from it where the caller's three registers are:
 * return address, stack pointer (always the CFA), frame pointer. Nothing else is followed. A rule
 * that needs another register is sure where all are known, at the leaf and in the frame that a
 * signal interrupted; elsewhere the walker has to find its value (recover.c).
 *
 * Rules come from three sources, all of the same form: CFI (cfi.h), the instructions themselves
 * (analyse.h), and the fallback of frame pointers. Real files have at most some 700 different ones.
 *
 * Source: DWARF 5 chapter 6.4; System V psABI for x86-64 and AArch64.
 */
#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* RULE_DEREF by SP, where the word is not in the copied stack at a place that is known: it is
 * below SP (any negative cfa), or a register counts its place. */
#define RULE_CFA_SOMEWHERE INT32_MIN

enum rule_kind {
    RULE_NONE,   /* nothing is known about this address */
    RULE_CFA,    /* CFA = register + cfa */
    RULE_DEREF,  /* CFA = *(register + cfa) + addend (realigned stacks; hand-written assembler) */
    RULE_PLT,    /* x86-64: CFA = SP + 8 + ((ip & 15) >= cfa ? 8 : 0); RA at CFA - 8, FP the same */
    RULE_SIGNAL, /* the signal trampoline: all registers are in the frame at SP */
    RULE_END,    /* the outermost frame: the return address is undefined */
    RULE_START,  /* the same, of code that nobody called: a stack was laid out to return to it (makecontext) */
};

/* Where the return address is. */
enum ra_place {
    RA_AT_CFA,   /* *(CFA + ra) */
    RA_REGISTER, /* in register number `ra` (AArch64's link register; __vfork): leaf only */
    RA_AT_BASE,  /* RULE_CFA: *(register + ra): at the lower end of a frame of more than 32 KiB */
};

/* Where the caller's frame pointer is. */
enum fp_place {
    FP_SAME,    /* this function has not changed it */
    FP_AT_CFA,  /* *(CFA + fp) */
    FP_AT_FP,   /* *(this frame's FP + fp): realigned stacks */
    FP_UNKNOWN, /* lost; a later rule that needs it ends the stack */
    FP_AT_BASE, /* RULE_CFA: *(register + fp), as RA_AT_BASE */
    FP_IS_CFA,  /* CFA + fp itself: Go's callers on AArch64 */
};

struct unwind_rule {
    uint8_t kind;     /* enum rule_kind */
    uint8_t cfa_reg;  /* DWARF register number */
    uint8_t ra_place; /* enum ra_place */
    uint8_t fp_place; /* enum fp_place */
    int32_t cfa;      /* bytes */
    int16_t ra;       /* bytes from the CFA, or a register */
    int16_t fp;       /* bytes */
    int32_t addend;   /* RULE_DEREF */
};

#endif
