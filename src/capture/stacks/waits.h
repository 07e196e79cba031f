/*
 * waits: where threads of interpreters wait, for views of wall time (--wall).
 *
 * Concept. Ten times a second each thread of a process with a runtime is looked at. One that did not
 * run since the last look has spent that time where it stands; its stack is read once per wait, not once
 * per look. Above the stack's leaf stands what it waits for: the interpreter's lock, or, as far as the
 * kernel tells, the system call it is in. Time on a CPU is not seen here: that is what samples are for.
 *
 * A thread that sleeps cannot change its stack, so a read is believed when the thread had not run
 * again after it; else it is tried at the next look.
 *
 * Cost: some 3 µs per thread and look, 20 more when it waits anew. With more than WAITS_THREADS threads looks
 * become rarer, so that the cost stays.
 *
 * Used by the sampler alone. Call order: waits_init; waits_look when waits_due; waits_release.
 */
#ifndef CAPTURE_STACKS_WAITS_H
#define CAPTURE_STACKS_WAITS_H

#include "capture/stacks/stacks.h"
#include "os/proc.h"

enum { WAITS_MS = 100, WAITS_THREADS = 500 };

struct waiter;

struct waits {
    struct stacks *stacks;
    struct readers *readers;
    struct targets *targets;
    VEC(struct waiter *) all;
    struct map by_tid;
    uint64_t next_ns;      /* monotonic: of the next look */
    uint64_t every_ns;     /* between two looks */
    uint64_t round;
    struct runtime_stack *stack; /* scratch */
    struct caught *caught;       /* scratch */
    struct buf text;             /* scratch */
    struct pid_list tids;        /* scratch */
};

bool waits_init(struct waits *w, struct stacks *stacks, struct readers *readers,
                struct targets *targets, struct err *err);
void waits_release(struct waits *w);

static inline bool waits_due(const struct waits *w, uint64_t now_ns)
{
    return now_ns >= w->next_ns;
}

void waits_look(struct waits *w, struct profile *p, uint64_t now_ns);

/* The node of a thread of an interpreter that sleeps now, for others who watch when; 0 when it does not sleep, or
 * runs nothing of the runtime. */
uint32_t waits_node(struct waits *w, struct profile *p, struct reader *reader, uint32_t tid);

#endif
