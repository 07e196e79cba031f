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

enum {
    RESOLVE_MAX = 1024, /* frames and functions of one stack; further ones are shown by their address */
    RESOLVE_TEXTS = 256,
};

/* What was told in answer to a question: `count` of `function` from `from` on, innermost first. */
struct resolved {
    uint32_t question, from, count;
};

/* A text of the profile, by where a runtime had it last. */
struct resolve_text {
    const char *ptr;
    uint32_t id;
};

struct resolve {
    const struct target *target;
    struct profile *profile;
    bool shows_tiers;
    struct resolved at[RESOLVE_MAX];
    size_t count;
    struct frame function[RESOLVE_MAX];
    size_t function_count;
    struct runtime_resolved answer;
    struct resolve_text last[RESOLVE_TEXTS];
};

/* False: no runtime of the process resolves anything, and the unwinder need not ask. `shows_tiers`: names end in what
 * made their code, where the runtime tells. */
bool resolve_begin(struct resolve *r, const struct target *target, struct profile *p, bool shows_tiers);

bool resolve_ask(struct resolve *r, const struct unwind_question *question, struct unwind_answer *out);

/* Null: no runtime told anything in answer to this question. */
const struct resolved *resolve_find(const struct resolve *r, uint32_t question);

#endif
