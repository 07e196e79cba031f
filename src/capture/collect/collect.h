/*
 * collect: profiles that runtimes make of themselves (runtime.h, verb collect), brought into the window's profile.
 *
 * Concept. A runtime that profiles itself is started once per (process, row), polled while it lasts, and stopped when
 * its process leaves or the run ends. What it hands over is a stack with a value for each of the row's sample types;
 * each type is declared in the profile (profile_event_type), so values of any unit stand beside CPU time and are
 * never added to it.
 *
 * Call order. collect_init; collect_start of a process that is followed and collect_poll, each round or at least once
 * per window; collect_leave when the process ends; collect_release, which stops all.
 *
 * Errors. A row that cannot start now (EAGAIN) is tried again with growing pauses, any other never again for that
 * process. A profile that ends by itself is stopped; what it had handed over stays. `failed` has the latest reason.
 */
#ifndef CAPTURE_COLLECT_H
#define CAPTURE_COLLECT_H

#include "base/vec.h"
#include "runtime/runtime.h"

/* Where a collected sample goes. */
struct collect_into {
    struct profile *profile;
    /* The profile's thread of a process's thread; tid 0: of no thread. */
    uint32_t (*thread)(void *context, struct profile *p, uint32_t pid, uint32_t tid);
    void *context;
};

struct collecting {
    uint32_t pid;
    const struct runtime *runtime;
    void *collection; /* null: not started */
    uint64_t retry_ns, pause_ns; /* monotonic: when to try again; 0: never */
};

struct collect {
    const struct runtime *const *rows;
    uint64_t frequency_hz;
    VEC(struct collecting) all;
    struct err failed; /* the latest one that could not start, or ended */
};

/* `rows` is the registry; it is borrowed. */
void collect_init(struct collect *c, const struct runtime *const *rows, uint64_t frequency_hz);

/* Starts what the rows can start of this process, and has not been started. True: something began. */
bool collect_start(struct collect *c, uint32_t pid, uint64_t now_ns);

/* Takes what came since the last time. */
void collect_poll(struct collect *c, const struct collect_into *into);

/* Stops what runs of this process, and takes what was left. */
void collect_leave(struct collect *c, uint32_t pid, const struct collect_into *into);

/* Stops all, and takes what was left. */
void collect_release(struct collect *c, const struct collect_into *into);

#endif
