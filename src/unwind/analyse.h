/*
 * analyse: unwind rules concluded from machine code, where nobody wrote them down.
 *
 * musl's libc has no unwind tables, nor has much hand-written assembler. A compiler's function moves
 * its stack pointer in few ways, so following the instructions from its first one (where the return
 * address is at SP, or in the link register) tells at each of them how far SP has moved and whether
 * the caller's frame pointer was saved. Branches are followed; where two ways meet that do not agree,
 * and after what cannot be followed (SP computed from an unknown), the rest of that path is RULE_NONE,
 * never a guess.
 *
 * Pure: bytes in, rows out. Three uses:
 *   - analyse_text for a whole range of code without CFI, whose functions begin at symbols, at the
 *     targets of calls and behind padding: table.h calls it once per image and keeps the rows;
 *   - analyse_function for one function whose start is known;
 *   - analyse_leaf for a single instruction of code whose start is not known (generated code): is
 *     this a prologue or an epilogue, where the frame pointer does not tell the caller yet or any more?
 *
 * Addresses are those of the code (ELF addresses, or runtime ones: only differences matter).
 * x86_64/ and aarch64/ each hold an analyse.c.
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

/* Analyses the function that begins at `start`, not beyond `limit`, and appends its rows; the last
 * one is RULE_NONE at the end of what was reached. False when memory ends. */
bool analyse_function(const struct code *code, uint64_t start, uint64_t limit,
                      struct analysed *out);

/* Analyses all of `code`. `starts` are function starts known from symbols, sorted; the targets of
 * direct calls are found besides. At most max_functions. Rows of addresses that no function's
 * analysis reached are RULE_NONE. False when memory ends. */
bool analyse_text(const struct code *code, const uint64_t *starts, size_t start_count,
                  size_t max_functions, struct analysed *out);

/* What the bytes at and before `address` (some 32 on either side are enough; fewer are allowed) say
 * about a leaf frame in code with frame pointers: in the prologue before the frame exists, or in the
 * epilogue after it is gone, the rule that applies there; RULE_NONE where the frame pointer is right,
 * or where nothing can be said. */
struct unwind_rule analyse_leaf(const struct code *code, uint64_t address);

/* True when the instruction before `address` is a call: what a return address looks like. `code` must
 * hold the 8 bytes before it (x86-64) or 4 (AArch64); fewer give false. */
bool analyse_is_behind_call(const struct code *code, uint64_t address);

#endif
