/*
 * waits: where threads wait, for views of wall time (--wall), and of time off the CPU where no records of context
 * switches can be had (--off-cpu without perf).
 *
 * Concept. Ten times a second, at moments drawn by lot, each thread of each followed process is looked at. How long it
 * was off its CPU since the last look is what the clock says, less the time that it ran and the time that it was
 * runnable and waited for a CPU: both by its schedstat, so that the sum over all looks is exact. Where: a thread that
 * sleeps at the look stands for all of that time, the more so if it did not run since the last one. Of one that runs
 * at the look the time is kept for the look that finds it asleep next. What nobody sees asleep until the window ends is
 * "[off-CPU]".
 *
 * Its stack is read once per wait, not once per look: by its runtime's reader, if it runs one, and natively
 * (sleeping.h), the two woven into one. Above the leaf stands what it waits for: the interpreter's lock, or, as far as
 * the kernel tells, the system call it is in (reasons.h). Nobody is stopped and no system call is interrupted.
 *
 * A thread that sleeps cannot change its stack, so a read is believed when the thread had not run again after it; else
 * it is tried at the next look.
 *
 * Limits. The first and the last tenth of a second of a thread are not seen; one that lives shorter is not seen at all.
 * Waits shorter than the time between two looks are a sample: right in the sum, coarse in their places.
 *
 * Cost: some 3 µs per thread and look; where it waits anew, 20 more, and 50 where its stack is not one it had before.
 * With more than WAITS_THREADS threads looks become rarer, so that the cost stays. WAITS_PLACES places and WAITS_READS
 * stacks are read per second: where there is more to read, chance chooses, and time is kept as above.
 *
 * Where a thread's files are refused or not there, `refusal` says so: the time is "[off-CPU]", or, without schedstat,
 * not known.
 *
 * Used by the sampler alone. Call order: waits_init; waits_look when waits_due; waits_end_window; waits_release.
 */
#ifndef CAPTURE_STACKS_WAITS_H
#define CAPTURE_STACKS_WAITS_H

#include "capture/stacks/sleeping.h"
#include "os/proc.h"

enum { WAITS_PLACE_MAX = 192 /* of a syscall file */, WAITS_LOCKS = 8 };

enum { WAITS_MS = 100, WAITS_THREADS = 500, WAITS_PLACES = 1000, WAITS_READS = 400, WAITERS_MAX = 8192 };

struct waiter;

/* What was met last that keeps waits from being seen. The one who tells of it takes it off. */
struct waits_refusal {
    enum err_kind kind; /* ERR_NONE: nothing; ERR_DENIED: a right is missing; ERR_UNSUPPORTED: it is not there here */
    uint32_t pid;
    const char *file;   /* below /proc/PID/task/TID */
};

struct waits {
    struct readers *readers; /* null: runtimes are not read */
    struct targets *targets;
    struct sleeping sleeping;
    VEC(struct waiter *) all;
    struct map by_tid;
    uint64_t next_ns;      /* monotonic: of the next look */
    uint64_t every_ns;     /* between two looks, on average */
    uint64_t stretch;      /* they are so many times as far apart; whoever keeps the budget sets it */
    uint64_t seed;
    uint64_t round;
    unsigned places;       /* that may be read at this look */
    bool any_stack;        /* one was read so far */
    bool is_full;          /* there were more than WAITERS_MAX threads */
    struct waits_refusal refusal;
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

/* A last look, and the time that has no place. Before targets_end_window. */
void waits_end_window(struct waits *w, struct profile *p, uint64_t now_ns);

/* The node of a thread of an interpreter that sleeps now, for others who watch when; 0 when it does not sleep, or
 * runs nothing of the runtime. */
uint32_t waits_node(struct waits *w, struct profile *p, struct reader *reader, uint32_t tid);

/* Where a thread stands that does not run now, whether it sleeps or is stopped, for who asks once. */
struct waits_found {
    char state;              /* as in stat; 0: it has ended */
    uint32_t node, thread;   /* in the profile; node 0: it runs, or ran on meanwhile, or may not be read (refusal) */
    uint64_t locks[WAITS_LOCKS]; /* futexes of locks that it holds or waits for (runtime.h); 0: no more */
    char place[WAITS_PLACE_MAX]; /* its syscall file; "" */
};
void waits_find(struct waits *w, struct profile *p, struct target *target, uint32_t tid, struct waits_found *out);

#endif
