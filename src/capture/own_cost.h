/*
 * own_cost: how much CPU time the profiler itself has used.
 *
 * Concept. Usually the kernel tells, to the nanosecond. Where it counts CPU time in ticks (gVisor), by who is on at
 * the tick, a thread that a timer wakes is on far too often: naps of a millisecond were charged 0.67 ms each, and a
 * profiler that used less than 2 % of a core was charged 11 %. There the threads that timers wake, the sampler and the
 * catchers, are charged for the time between waking and sleeping; so it is too much, if anything: having to wait for a
 * CPU in between counts. Threads that wake a few times per window and then work or wait for a disk or a network
 * (publisher, uploaders) are charged by the ticks, which are right about these.
 *
 *     own_cost_open            once, by the sampler, which is awake then; takes 20 ms where there are ticks, else µs
 *     own_cost_rests           the sampler goes to sleep …
 *     own_cost_wakes           … and woke up
 *     own_cost_add             by any thread: so long it was awake
 *     own_cost_ns              by any thread
 */
#ifndef CAPTURE_OWN_COST_H
#define CAPTURE_OWN_COST_H

#include <stdbool.h>
#include <stdint.h>

struct own_cost {
    bool by_time;      /* CPU clocks move in ticks; constant once it was opened */
    uint64_t awake_ns; /* atomic: of the sampler and the catchers; unused unless by_time */
    uint64_t woke_ns;  /* the sampler's, monotonic */
};

void own_cost_open(struct own_cost *c);

void own_cost_rests(struct own_cost *c, uint64_t now_ns);
void own_cost_wakes(struct own_cost *c, uint64_t now_ns);
void own_cost_add(struct own_cost *c, uint64_t ns);

/* So far. `others_ns`: the CPU time of our threads and children that are not charged by own_cost_add. */
uint64_t own_cost_ns(const struct own_cost *c, uint64_t others_ns);

/* ---- pure ---- */

struct own_clocks {
    uint64_t (*cpu_ns)(void *context); /* of the calling thread */
    uint64_t (*mono_ns)(void *context);
    void *context;
};

/* Does the CPU clock of a thread that runs move in ticks? Read in a loop until it moves finely, for 20 ms at most. */
bool own_cost_clock_ticks(const struct own_clocks *clocks);

#endif
