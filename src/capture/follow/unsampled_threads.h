/*
 * unsampled_threads: threads that have no events for want of descriptors, checked until they run.
 *
 * Concept. When the threads of a process need more descriptors than there are, those that used most CPU time until then
 * are followed (os/perf.h); what the others use is in the process's accounting, and shown as "[lost]". Which threads
 * are hot changes. So once a second some unsampled ones are checked, and one that used more than a hundredth of a CPU
 * since its last check gets events: in the place of a thread that used less than a thousandth for some seconds, when
 * there is no descriptor to spare. What such a thread had started loses its events as well, which is why a process's
 * first thread always keeps them.
 *
 * Where all descriptors are taken by other processes, `make_room` is called to give the coolest of them up.
 * Processes of which no thread is followed are unsampled.c's.
 *
 * Cost: UNSAMPLED_CHECKS_MAX threads per second, some 5 us each.
 *
 * Call order. unsampled_add after perf_follow_process has said ERR_LIMIT; unsampled_check each round;
 * unsampled_release. Used by the sampler alone.
 */
#ifndef CAPTURE_FOLLOW_UNSAMPLED_THREADS_H
#define CAPTURE_FOLLOW_UNSAMPLED_THREADS_H

#include "capture/follow/targets.h"
#include "os/perf.h"

enum {
    UNSAMPLED_CHECKS_MAX = 200, /* per second */
    UNSAMPLED_MARK_MS = 5000,   /* so long a thread must have done next to nothing to be given up */
};

struct unsampled_thread {
    uint32_t pid, tid;
    uint64_t cpu_ns, asked_ns; /* 0: not checked yet */
};

struct unsampled_threads {
    /* Null, or has descriptors of another process closed for a thread that uses rate_ns per second. */
    bool (*make_room)(void *context, uint32_t pid, uint64_t rate_ns);
    void *context;
    VEC(struct unsampled_thread) threads;
    size_t next;               /* to be checked */
    uint64_t check_ns, mark_ns; /* monotonic: not before */
};

void unsampled_add(struct unsampled_threads *l, uint32_t pid, const struct pid_list *tids);

/* Returns how many threads got events. */
size_t unsampled_check(struct unsampled_threads *l, struct perf *perf, struct targets *targets,
                     uint64_t now_ns);

void unsampled_release(struct unsampled_threads *l);

/* Pure: CPU time per second. */
uint64_t unsampled_rate_ns(uint64_t cpu_ns, uint64_t passed_ns);

/* Pure: whether it ran for more than a hundredth of the time. */
bool unsampled_is_hot(const struct unsampled_thread *thread, uint64_t cpu_ns, uint64_t now_ns);

#endif
