/*
 * catch_plan: what one catcher remembers about the threads it read last.
 *
 * A runtime's plan, and an open descriptor of the thread's stat. As many as a pool made at the start
 * holds; the one not used for longest makes room. A plan belongs to a thread of one attachment: it starts anew
 * with another serial. A thread that ended and whose id another one has got is noticed when its stat
 * cannot be read any more.
 */
#ifndef CAPTURE_CATCH_PLAN_H
#define CAPTURE_CATCH_PLAN_H

#include "capture/catch/catch.h"

struct catch_plan {
    _Alignas(16) unsigned char bytes[RUNTIME_PLAN_MAX]; /* the runtime's */
    int stat;    /* a descriptor, when opened */
    bool opened;
    int policy, nice; /* of the thread, when last asked */
    bool known;       /* they are */
    uint64_t hold_again_ns; /* monotonic: it is not held before */
};

struct catch_plan_key {
    uint64_t serial;
    uint64_t used; /* turn of the latest use; 0: never */
    uint32_t pid, tid;
};

struct catch_plans {
    struct catch_plan_key *keys; /* apart from the plans: they are searched */
    struct catch_plan *plans;
    size_t count;
    uint64_t turn;
};

bool catch_plans_init(struct catch_plans *p, size_t count);
void catch_plans_release(struct catch_plans *p);

/* Never null. */
struct catch_plan *catch_plans_get(struct catch_plans *p, const struct catch_target *target,
                                   uint32_t tid);

/* The thread's state and the CPU it is or was on, at this moment; false when it is gone. */
bool catch_plan_stat(struct catch_plan *plan, uint32_t pid, uint32_t tid, char *state,
                     uint32_t *cpu);

#endif
