/*
 * accounting_private: what the files of accounting share.
 *
 *     accounting.c           the times of one process, and when they are read
 *     accounting_poll.c      attributing them as they are read, without perf
 *     accounting_children.c  times of waited-for children, without perf
 *     accounting_ended.c     processes that ended
 *     accounting_window.c    the end of a window
 */
#ifndef CAPTURE_ACCOUNT_ACCOUNTING_PRIVATE_H
#define CAPTURE_ACCOUNT_ACCOUNTING_PRIVATE_H

#include "capture/account/accounting.h"

enum {
    WEIGH_MAX_PERCENT = 15, /* that samples may weigh more or less than their periods */
    BURST_SAMPLES_MIN = 20, /* that stand for all that a process did */
    THREADS_AT_ONCE = 250,  /* whose times the kernel adds up at a reading, 0.15 to 0.6 us each */
};

static inline uint64_t beyond(uint64_t value, uint64_t base)
{
    return value > base ? value - base : 0;
}

static inline uint64_t take(uint64_t *from_ns, uint64_t most_ns)
{
    uint64_t taken_ns = *from_ns < most_ns ? *from_ns : most_ns;
    *from_ns -= taken_ns;
    return taken_ns;
}

static inline uint64_t cpu_times_sum(const struct cpu_times *times)
{
    return times->user_ns + times->system_ns;
}

/* That may have run at once. */
static inline uint64_t accounting_threads(const struct target *target)
{
    return target->threads_seen > 1 ? target->threads_seen : 1;
}

/* Its CPU time comes from /proc, not from events. */
static inline bool accounting_is_polled(const struct target *target)
{
    return target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
}

/* Is what a process used beyond its samples no more than these may be off by? One period per thread that was sampled is
 * the noise of sampling; a long window has no more of it. A process that ends leaves the rest of a period unsampled: it
 * did the same then as before. What threads without a sample did is not known: of a pool of a thousand that run for a
 * moment each, none has one for long. */
static inline bool accounting_is_in_step(const struct accounting *a, const struct target *target, uint64_t rest_ns)
{
    uint64_t sampled_ns = target->account.sampled_ns, sampled_threads = target->threads_shown;
    bool is_noise = rest_ns <= sampled_threads * (a->period_ns + a->tick_ns);
    return (is_noise && rest_ns <= sampled_ns) || rest_ns <= sampled_ns / 100 * WEIGH_MAX_PERCENT;
}

/* Its times are not cut to ticks: its clock is asked, too, where that is cheap. */
static inline bool accounting_is_exact(const struct target *target)
{
    return accounting_threads(target) < THREADS_AT_ONCE;
}

struct proc_stat;
/* Of a thread, or of a process (tid 0); its texts are valid until the next reading. */
bool accounting_read_stat(struct accounting *a, uint32_t pid, uint32_t tid, struct proc_stat *out);

/* Reads the present times; notes the end of the process. `comm`, if not null, is its name until the next reading. */
bool accounting_update_times(struct accounting *a, struct target *target, struct str *comm);

/* The same for a target on perf, and that it was read at now_ns: later samples are beyond that reading. */
bool accounting_read(struct accounting *a, struct target *target, uint64_t now_ns);

/* Evaluates the filters once more. */
void accounting_evaluate(struct accounting *a, struct target *target);

/* One that was a zombie when it was adopted: its parent will wait for it. */
void accounting_adopt_zombie(struct accounting *a, const struct target *target);

/* What their parents' times will hold of those that have ended. */
void accounting_leave_all_ended(struct accounting *a, struct profile *p);

/* The same of those on perf. `ask` whether they are gone: no record may have come yet. */
void accounting_leave_all_on_perf(struct accounting *a, bool ask);

/* After all parents were read, and before they are settled. */
void accounting_bury_zombies(struct accounting *a);

/* Tells what the times of waited-for children have beyond those that were seen. */
void accounting_settle_children(struct accounting *a, struct profile *p, struct target *target);

/* Polls all targets without perf. `last`: at the window's end. */
void accounting_poll_all(struct accounting *a, struct profile *p, bool last);

/* A thread's CPU time since it was read last. */
uint64_t accounting_thread_ns(struct accounting *a, const struct target *target, uint32_t tid);

void accounting_add_to_process(struct accounting *a, struct profile *p, struct target *target, uint64_t cpu_ns);

/* What time of a target on perf is that has no sample. */
static inline enum account accounting_rest_kind(const struct target *target)
{
    return target->capture_mode == CAPTURE_PERF_USER ? ACCOUNT_KERNEL_HIDDEN : ACCOUNT_LOST;
}

/* Of a process that ended: what it is known to have used, … */
uint64_t accounting_known_ns(const struct target *target);

/* … and what it may have used beyond. */
struct tail accounting_tail(const struct accounting *a, const struct target *target);

/* Drops what ended and is done with: with a profile those without perf, else those on perf. Sets the rest aside. */
void accounting_tidy(struct accounting *a, struct profile *p, uint64_t now_ns);

#endif
