/*
 * stack_copy: how much of its stack each process copies with a sample.
 *
 * A copy that is too small cuts stacks whose rest cannot be read from memory; one that is too large takes room in the
 * rings that other samples need. So each process begins with the same size, doubles it while more than 2 % of its
 * stacks end where the copy ends (at once to the maximum when half of them do), and halves it when fewer than 1 % of
 * them need half of it, or more often when the largest one so far is far smaller. What a stack needs ends with its
 * outermost frame. It does not fall below STACK_COPY_CHEAP_BYTES, because programs have phases (openssl ciphers for a
 * while, then signs with larger frames) and little is gained; where it began below, a few cut stacks let it grow.
 *
 * A change is one of the whole inherit group: from then on each of its processes has events of its own.
 *
 * A process whose samples are caught (catch.h) copies the maximum from then on: its rings are emptied after each
 * sample, and the kernel copies no more than there is.
 *
 * A copy that ends early, at a page that was never touched, would not be longer if it were larger: such stacks do not
 * count.
 *
 * At most one change a second, and STACK_COPY_CHANGES_MAX in a process's life.
 *
 * What is read of a thread that a brief stop holds takes its pages' time, so it is fitted likewise, in steps of four
 * times: more as soon as a few were cut, and less, STACK_COPY_HELD_CHANGES times in a life, where a quarter had twice
 * the room that the largest one needed.
 */
#ifndef CAPTURE_FOLLOW_STACK_COPY_H
#define CAPTURE_FOLLOW_STACK_COPY_H

#include "capture/follow/targets.h"
#include "os/perf.h"

enum {
    STACK_COPY_MIN_BYTES = 4 * 1024,
    STACK_COPY_MAX_BYTES = PERF_STACK_MAX,
    STACK_COPY_SEEN_MIN = 50,  /* stacks before a size is thought too small */
    STACK_COPY_SPARE_MIN = 200, /* or too large */
    STACK_COPY_CHEAP_BYTES = 12 * 1024,
    STACK_COPY_CUT_FEW = 3,
    STACK_COPY_CHANGES_MAX = 8,
    STACK_COPY_HELD_MIN = 8 * 1024,
    STACK_COPY_HELD_SEEN = 100, /* stacks that a smaller size is judged by */
    STACK_COPY_HELD_CHANGES = 3,
    STACK_COPY_DEEP_PERIOD = 2000, /* stacks of which none was as deep, or no more than one ended at a gap */
};

/* The size that a process's stacks ask for; its present one when it fits. Pure. */
uint32_t stack_copy_wanted(const struct target *target);

/* The same for what is read of held threads, `now` bytes, `most` at most. Pure. */
uint32_t stack_copy_held_wanted(const struct target *target, uint32_t now, uint32_t most);

/* Do copies of its stacks end at pages that were never touched, a few of them and more than a few of so many, and is
 * nothing done about it so far? Pure. */
bool stack_copy_has_new_gaps(const struct target *target);

/* Changes the one that needs it most. The pid that was changed, 0: none. */
uint32_t stack_copy_adapt(struct perf *perf, struct targets *targets);

#endif
