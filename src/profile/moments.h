/*
 * moments: when samples were taken, in steps of 10 ms.
 *
 * Concept. The profile sums samples of one stack of one thread; a moment tells, for one of these samples, in which
 * step after the profile's beginning it was taken. Its weight is what the sample stood for at that time, and only says
 * how the sum is shared out among the moments of one sum: whatever scales the sum scales them with it. Sums without a
 * moment (what is accounted, what files without times bring) are known of the whole profile only.
 *
 *     moments_begin(&m, origin_ns, most);
 *     moments_add(&m, sample, time_ns, weight_ns);     any clock: the origin's
 *     moments_sort(&m);                                 once nothing is added any more
 *     parts = moments_parts_of(&m, sample, sum_ns);     for who writes them
 *     while (moments_part(&parts, &step, &part_ns)) …
 *
 * Limits. At most `most` are kept. When there are as many, steps become twice as long and moments of one sum that are
 * then in one step become one, until a quarter is free: a long run is known from end to end, less finely. A moment
 * before the beginning counts to the first step. 12 bytes each.
 *
 * Errors: what finds no memory is left out: the picture in time lacks it, the profile does not.
 */
#ifndef PROFILE_MOMENTS_H
#define PROFILE_MOMENTS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define MOMENTS_STEP_NS UINT64_C(10000000)

struct moment {
    uint32_t sample; /* its place in profile.samples */
    uint32_t step;
    uint32_t weight; /* microseconds */
};

struct moments {
    VEC(struct moment) list;
    size_t most;        /* 0: none are kept */
    uint64_t origin_ns; /* when step 0 begins, on the clock of who adds */
    uint64_t step_ns;   /* MOMENTS_STEP_NS, or that times a power of two */
};

/* Forgets all of them. */
void moments_begin(struct moments *m, uint64_t origin_ns, size_t most);

void moments_add(struct moments *m, uint32_t sample, uint64_t time_ns, uint64_t weight_ns);

/* Has the profile begin so much earlier: all of them are so much later in it. */
void moments_shift(struct moments *m, uint64_t ns);

/* By sample, then step, one of each. Adding afterwards is allowed, and undoes it. */
void moments_sort(struct moments *m);

/* A sum in parts, one for each of its moments, in their order. All parts are the sum. */
struct moments_parts {
    const struct moment *next, *end;
    double weight, given_weight;
    uint64_t sum_ns, given_ns;
};
struct moments_parts moments_parts_of(const struct moments *m, uint32_t sample, uint64_t sum_ns);

/* False: there is none any more. */
bool moments_part(struct moments_parts *parts, uint32_t *step, uint64_t *part_ns);

#endif
