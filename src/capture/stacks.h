/*
 * stacks: one decoded sample becomes a path in the profile's call tree.
 *
 * The user half comes from one of two places. Where the sample carries registers and a copy of the
 * stack, it is unwound here (unwind.h); else the kernel followed frame pointers, and its chain is
 * believed as long as it stays in mapped code: what it found beyond is dropped and counted in `cut`.
 * The kernel half always is the kernel's chain.
 *
 * A user address is looked up in the process's mappings and stored relative to its file; a caller's
 * address is stored minus one, so that it lies within the call instruction.
 *
 * A stack that did not reach its thread's first function says so in its first frame, "[truncated]";
 * callers that were found by scanning the stack stand above a frame "[guessed]". Never is such a frame
 * shown as if it were certain.
 */
#ifndef CAPTURE_STACKS_H
#define CAPTURE_STACKS_H

#include "capture/targets.h"
#include "sample/record.h"
#include "unwind/unwind.h"

struct stacks_module { /* what an image is called in the profile of window `window` */
    uint32_t module, window;
};

struct stacks {
    struct targets *targets;
    struct unwinder *unwinder;     /* null: samples carry no stacks */
    struct unwind_result *result;  /* scratch */
    uint64_t registers;            /* mask that was sampled with */
    VEC(struct stacks_module) modules; /* by image */
    uint64_t samples;
    uint64_t cut; /* samples whose chain left mapped code */
    uint64_t ends[STACK_END_COUNT]; /* of this window's unwound stacks */
};

/* `unwinder` is borrowed; null when samples carry chains only. */
bool stacks_init(struct stacks *s, struct targets *targets, struct unwinder *unwinder,
                 uint64_t registers);
void stacks_release(struct stacks *s);

/* Adds the sample to the profile with its period as weight. */
void stacks_add(struct stacks *s, struct profile *p, const struct record *sample);

/* Notes how the window's stacks ended in the profile, and begins a new count. */
void stacks_end_window(struct stacks *s, struct profile *p);

#endif
