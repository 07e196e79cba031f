/*
 * analyse: unwind rules concluded from machine code, where nobody wrote them down.
 *
 * musl's libc has no unwind tables, nor has much hand-written assembler. A compiler's function
 * moves its stack pointer in few ways, so following the instructions from its first one (where the
 * return address is at SP, or in the link register) tells at each of them how far SP has moved and
 * whether the caller's frame pointer was saved. Branches are followed; where two ways meet that do
 * not agree, and after what cannot be followed (SP computed from an unknown), the rest of that
 * path is RULE_NONE, never a guess.
 *
 * Pure: bytes in, rows out. Three uses:
 *   - analyse_text for a whole range of code without CFI, whose functions begin at symbols, at the
 *     targets of calls and after padding: table.h calls it once per image and keeps the rows;
 *   - analyse_leaf for a single instruction of code whose start is not known (generated code): is
 *     this a prologue or an epilogue, where the frame pointer does not tell the caller yet or any
 *     more? And analyse_caller for a return address there;
 *   - analyse_by_sp for an instruction of a function whose CFI wants the frame pointer, for who does not know it
 *     (a thread that sleeps tells only SP and where it is).
 *
 * How far it can be trusted. A return has to find its frame as the function found it; a function
 * in which one does not is dropped as a whole, since nothing shows where it was misread. What
 * nothing but an indirect jump leads to gets the jump's state, and what nothing leads to at all is
 * taken for a function, only if such returns, or code already known, confirm it. Whether a call
 * comes back is concluded from the callee, from what else reaches the next instruction, and from
 * other calls of the same callee. Not covered: landing pads of C++ exceptions, which only tables
 * lead to; after a call that throws they may take that call's state. (Such code has CFI.)
 *
 * Cost. Some 45 ms per MB of code and 8 bytes of memory per byte while it runs; hostile code may
 * cost 0.7 s per MB. Every loop is bounded by a number of instructions per byte.
 *
 * Addresses are those of the code (ELF addresses, or runtime ones: only differences matter), on
 * AArch64 multiples of 4. x86_64/ and aarch64/ each hold an analyse.c; text.h and explore.h are
 * what they have in common.
 */
#ifndef UNWIND_ANALYSE_H
#define UNWIND_ANALYSE_H

#include "base/vec.h"
#include "unwind/rule.h"

#include <stddef.h>

struct code {
    uint64_t address;           /* of bytes[0] */
    const unsigned char *bytes;
    size_t len;
};

/* The rule holds from `address` to the next row's. */
struct analysed_row {
    uint64_t address;
    struct unwind_rule rule;
};

struct analysed {
    VEC(struct analysed_row) rows; /* by address; consecutive rows differ */
    uint64_t functions, given_up;  /* functions begun; of those, with a part that gave up */
};

/* Analyses all of `code`. `starts` are function starts known from symbols, in any order; a label
 * that is none, or the part of a function that its compiler moved away, does no harm. The targets
 * of direct calls are found besides. At most max_functions. Rows of addresses that no function's
 * analysis reached are RULE_NONE. False when memory ends. */
bool analyse_text(const struct code *code, const uint64_t *starts, size_t start_count,
                  size_t max_functions, struct analysed *out);

/* What the bytes at and before `address` (some 32 on either side are enough; fewer are allowed)
 * say about a leaf frame in code with frame pointers: in the prologue before the frame exists, or
 * in the epilogue after it is gone, the rule that applies there; RULE_NONE where the frame pointer
 * is right, or where nothing is known. */
struct unwind_rule analyse_leaf(const struct code *code, uint64_t address);

/* The same for a caller, whose call returns to `address`: where nothing but a straight way to a return follows and the
 * frame pointer stays as it is, the code keeps no frame pointer (a trampoline), and SP tells its caller. */
struct unwind_rule analyse_caller(const struct code *code, uint64_t address);

/* The rule for the instruction that holds `address`, by nothing but SP. `code` is the whole function, from its first
 * instruction on. RULE_NONE where SP is not known (after alloca), or memory ends. */
struct unwind_rule analyse_by_sp(const struct code *code, uint64_t address);

/* True when the instruction before `address` is a call: what a return address looks like. `code`
 * must hold the 8 bytes before it (x86-64) or 4 (AArch64); fewer give false. */
bool analyse_is_behind_call(const struct code *code, uint64_t address);

#endif
