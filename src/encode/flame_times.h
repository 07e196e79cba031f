/*
 * flame_times: when the time of a fold's nodes was spent, for the flame graph's page (flame.h, "times").
 *
 *     t = flame_times_of(p, &fold, unit_ns);         no steps: nothing of it is known
 *     flame_times_at(&t, node)                       … t.here, t.rest
 *     flame_times_release(&t);
 *
 * A node's own time is that of samples, each known in parts (profile/moments.h). Parts of one step are one here.
 * Weights are in 1/16 of a sampling unit, 1 at least: what lies between is not told apart, and parts of equal samples
 * are exact.
 *
 * Ownership: borrows the profile, whose moments it sorts, and the fold (by process); both must stay. Memory: the parts
 * of one node.
 */
#ifndef ENCODE_FLAME_TIMES_H
#define ENCODE_FLAME_TIMES_H

#include "profile/fold.h"

struct flame_time {
    uint32_t step;
    uint64_t weight; /* nanoseconds while they are summed */
};

struct flame_times {
    const struct profile *p;
    const struct fold *fold;
    uint64_t step_ns, quantum_ns;
    uint32_t steps;
    unsigned shift;              /* a step is so many doublings of the profile's */
    VEC(struct flame_time) here; /* of the node asked for, by step */
    uint64_t rest;               /* its time without a step, as a weight */
};

struct flame_times flame_times_of(struct profile *p, const struct fold *fold, uint64_t unit_ns);
void flame_times_release(struct flame_times *t);

/* False when memory ends. */
bool flame_times_at(struct flame_times *t, uint32_t node);

#endif
