/*
 * resolve: joins the unwinder with the runtimes of a process, about code that has no rule of its own.
 *
 * Concept. Asked how to go on from such a frame, a process's runtimes (runtime.h, verb resolve) tell its functions as
 * well. They are kept as named frames until the stack is done: such code comes and goes, so nobody can be asked later.
 *
 * Call order. Per stack: resolve_begin; resolve_ask by the unwinder; resolve_find for each of its frames.
 */
#ifndef CAPTURE_STACKS_RESOLVE_H
#define CAPTURE_STACKS_RESOLVE_H

#include "capture/stacks/readers.h"
#include "unwind/unwind.h"

enum { RESOLVE_MAX = 256 }; /* frames of one stack; further ones are shown by their address */

/* Functions at an address: `count` of `function` from `from` on, innermost first. */
struct resolved {
    uint64_t address;
    size_t from, count;
};

struct resolve {
    const struct target *target;
    struct profile *profile;
    const struct memory_reader *memory;
    struct resolved at[RESOLVE_MAX];
    size_t count;
    struct frame function[RESOLVE_MAX];
    size_t function_count;
    struct runtime_resolved answer;
};

/* False: no runtime of the process resolves anything, and the unwinder need not ask. */
bool resolve_begin(struct resolve *r, const struct target *target, struct profile *p,
                   const struct memory_reader *memory);

bool resolve_ask(struct resolve *r, const struct unwind_question *question, struct unwind_answer *out);

/* Null: no runtime told of this address. */
const struct resolved *resolve_find(const struct resolve *r, uint64_t address);

#endif
