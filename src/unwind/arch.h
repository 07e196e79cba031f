/*
 * arch: what differs between processors while walking. x86_64/arch.c and aarch64/arch.c hold it;
 * callers have no #if.
 */
#ifndef UNWIND_ARCH_H
#define UNWIND_ARCH_H

#include "elf/elf.h"
#include "unwind/cfi.h"
#include "unwind/unwind.h"

enum { ARCH_SIGNAL_CODE_BYTES = 16, ARCH_ENTRY_CODE_BYTES = 32 };

extern const enum elf_machine arch_machine;
extern const struct cfi_machine arch_cfi;   /* the registers' DWARF numbers */
extern const uint8_t arch_ip;               /* of struct unwind_registers */
extern const uint8_t arch_kept;             /* what unwind_kept tells: this one and the next */
extern const uint64_t arch_cfa_alignment;   /* bytes, a power of two */
extern const uint64_t arch_code_mask;       /* the bits of a code address that are one */
extern const uint64_t arch_perf_mask;       /* what unwind_perf_mask tells */
extern const uint8_t arch_perf_order[64];   /* PERF_REG_* to DWARF number; 255: not kept */

/* The rule of a frame that was set up with frame pointers. */
extern const struct unwind_rule arch_fp_rule;

/* Whether the CFA of that rule is the caller's SP. On AArch64 the frame record may stand anywhere
 * within the frame, so that it is only below it. */
extern const bool arch_fp_gives_sp;

/* Where the frame pointer of a Go function's caller is, when it has a frame: at or below the CFA. On AArch64 the
 * caller's own is a word below its SP, and it is saved a word below this function's SP, where no copy of the stack
 * reaches. */
extern const enum fp_place arch_go_fp_place;
extern const int16_t arch_go_fp;

/* Where a signal frame keeps each register, bytes from SP; 0: not kept. */
extern const uint16_t arch_signal_offset[UNWIND_REGISTERS];

/* Where such a frame is, when the registers are those that the kernel gives a handler: its three arguments, of which
 * two point into the frame, and SP at it; else 0. */
uint64_t arch_signal_frame(const struct unwind_registers *registers);

/* True when `code` begins with the kernel's signal return sequence. */
bool arch_is_signal_return(const unsigned char *code, size_t len);

/* True when the bytes that end at a return address are a program's or thread's first code, from
 * which nothing returns. */
bool arch_is_entry(const unsigned char *code, size_t len);

/* True when `code` begins with what the first function of a stack made by makecontext returns to. */
bool arch_is_context_start(const unsigned char *code, size_t len);

/* How many bytes at `code` are padding between functions. */
size_t arch_padding(const unsigned char *code, size_t len);

#endif
