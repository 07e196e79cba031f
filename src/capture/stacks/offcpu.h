/*
 * offcpu: where threads are while they do not run, for views of wall time (--off-cpu).
 *
 * Concept. How long: the kernel tells of each switch (PERF_RECORD_SWITCH), so that the time between
 * leaving a CPU, but for preemption, and coming back is exact. One that is out when the window ends
 * counts up to then; one that slept already when it was first followed is known by its state.
 * Where: ten times a second threads that are out are looked at, and the stack of one that still
 * sleeps is read (sleeping.h), or, of an interpreter, by its runtime's reader. A stack
 * that was read while the thread was out stands for the whole of that wait. A wait that was over
 * before it could be looked at is "[off-CPU]"; where looks found the thread in short waits a few
 * times, the stacks found stand below that frame, and share its time in proportion: an estimate,
 * as samples are.
 *
 * Proof. A record says when the thread came back: a stack whose reading had begun after it left,
 * and ended before it came back, is of this wait.
 *
 * Limits. OFFCPU_READS stacks a second are unwound. Kernels before 4.17 do not tell preemption apart: there,
 * waiting for a CPU counts as well. When records are lost, waits that were going on are not
 * counted.
 *
 * Used by the sampler alone. Call order: offcpu_init; in the order of time offcpu_switch,
 * offcpu_exit, offcpu_lost; offcpu_look each OFFCPU_MS; offcpu_end_window; offcpu_release.
 */
#ifndef CAPTURE_STACKS_OFFCPU_H
#define CAPTURE_STACKS_OFFCPU_H

#include "capture/stacks/sleeping.h"
#include "capture/stacks/waits.h"

enum { OFFCPU_MS = 100, OFFCPU_READS = 50 };

struct sleeper;

struct offcpu {
    struct targets *targets;
    struct sleeping sleeping;
    bool reads_runtimes;
    struct waits waits;          /* for its reading of interpreters' threads */
    VEC(struct sleeper *) all;
    struct map by_tid;
    struct map listed;           /* pids whose threads that slept before are known */
    uint64_t first_ns;           /* monotonic: when the first were followed */
    uint64_t next_ns;            /* of the next look */
    bool listed_all;             /* those that ran before us */
    bool denied;                 /* some thread's place may not be read */
    size_t cursor;               /* where the next look goes on */
    struct buf text;             /* scratch */
    struct pid_list tids;        /* scratch */
};

/* `readers` is null when no runtime is read. */
bool offcpu_init(struct offcpu *o, struct stacks *stacks, struct readers *readers,
                 struct targets *targets, uint64_t now_ns, struct err *err);
void offcpu_release(struct offcpu *o);

void offcpu_switch(struct offcpu *o, struct profile *p, const struct record *record);

/* The thread has ended. */
void offcpu_exit(struct offcpu *o, struct profile *p, uint32_t pid, uint32_t tid);

/* Switches may have been missed. */
void offcpu_lost(struct offcpu *o, struct profile *p);

static inline bool offcpu_due(const struct offcpu *o, uint64_t now_ns)
{
    return now_ns >= o->next_ns;
}

void offcpu_look(struct offcpu *o, struct profile *p, uint64_t now_ns);

/* Puts the time of waits that nobody saw, so far, into the profile. */
void offcpu_settle(struct offcpu *o, struct profile *p);

/* Counts the waits that go on, up to now, and settles. Before targets_end_window. */
void offcpu_end_window(struct offcpu *o, struct profile *p, uint64_t now_ns);

#endif
