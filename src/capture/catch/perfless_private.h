/*
 * perfless_private: what the files of the perf-less sampler share.
 *
 *     perfless.c        the sampler's side: listing, settling
 *     perfless_scan.c   a catcher's side: its loop, checking threads, reading them
 *     perfless_clock.c  CPU time of a thread
 *     perfless_pace.c   how often
 */
#ifndef CAPTURE_PERFLESS_PRIVATE_H
#define CAPTURE_PERFLESS_PRIVATE_H

#include "capture/catch/catch_private.h"
#include "capture/catch/perfless.h"
#include "os/proc.h"

struct perfless_thread {
    struct perfless_process *process;
    struct perfless_thread *next; /* in the one list it is in */
    uint32_t tid;
    bool gone;           /* shared, atomic: it is not in task/ any more */
    bool is_new;         /* it started when the process was followed already */
    /* its owner's, whoever that is */
    bool idle, checked;
    uint8_t hops;
    int file, sched;     /* descriptors; -1: not kept open */
    uint64_t run_ns;     /* CPU time, as read last */
    uint64_t checked_ns;  /* monotonic: when */
    uint64_t could_ns;   /* time that it could have had its CPU, since run_ns was read */
    uint64_t guessed_ns; /* CPU time that was taken to be so since then, … */
    uint8_t guesses;     /* so many times in a row */
    uint8_t steady;      /* checks in a row that found that it had its CPU throughout */
    bool throughout;     /* the last one did */
    uint64_t owed_ns;    /* guessed, handed over, and not used */
    uint64_t ran_ns;     /* monotonic: when it was last seen to have run */
    uint64_t pending_ns; /* shared, atomic: not in a sample yet */
};

struct perfless_queue {
    struct perfless_thread *first, *last;
    size_t count;
};

struct perfless_process {
    uint32_t pid;
    uint64_t serial;
    size_t home;
    /* shared, atomic */
    uint64_t explained_ns; /* what its threads were seen to use */
    uint32_t active;       /* threads */
    uint32_t thread_count;
    bool gone, any_gone;   /* it, or one of its threads */
    bool unlisted;         /* there must be threads that nobody knows */
    /* its home's */
    struct perfless_process *next;
    struct perfless_queue idle;
    size_t sweep;          /* idle threads still to be checked, from the first on */
    bool full, found;      /* the sweep began with all of them; has found one that ran */
    uint64_t swept_ns, sweep_ns; /* monotonic: when all were asked last; not again before */
    bool clocked;
    uint64_t clock_ns, base_ns; /* base: what never was explained */
    uint64_t ran_ns, check_ns;  /* monotonic: when it last ran, when to ask again */
    /* the sampler's */
    VEC(struct perfless_thread *) threads; /* by tid */
    VEC(struct perfless_thread *) left;    /* ended, with time to be settled */
    uint64_t asked_ns, listed_ns, list_ns; /* monotonic: last checked, last listed, not before */
    uint32_t listed_count;
    bool published, returned;
};

struct perfless_cpu { /* a catcher's */
    struct perfless_thread *inbox;          /* shared, atomic */
    struct perfless_process *process_inbox; /* shared, atomic */
    struct perfless_queue active;
    struct perfless_process *processes;     /* whose home it is */
    uint64_t next_ns, seed;
    unsigned probes;                     /* of this round */
    int own_sched;                       /* a descriptor; -1: runnable has to do */
    bool asked;                          /* picked_ns is of this round */
    uint64_t picked_ns;                  /* when we began to run, on the scheduler's clock; 0: unknown */
    uint64_t begun_ns, ended_ns;         /* monotonic: the round before this one; 0: there was none */
};

struct perfless {
    struct catch *owner;
    struct perfless_cpu *cpus;              /* by catcher */
    size_t cpu_count;
    uint64_t period_ns;                  /* shared, atomic */
    uint64_t tick_ns;
    uint32_t files, files_most;          /* shared, atomic; kept open */
    bool by_stat;                        /* constant: there is no schedstat */
    struct perfless_thread *outbox;         /* shared, atomic: to the sampler */
    struct perfless_process *process_outbox;
    /* the sampler's */
    VEC(struct perfless_process *) processes;
    struct pid_list ids;
    size_t next_home;
};

static inline void perfless_put(struct perfless_queue *q, struct perfless_thread *thread)
{
    thread->next = NULL;
    *(q->first == NULL ? &q->first : &q->last->next) = thread;
    q->last = thread;
    q->count++;
}

static inline void perfless_put_first(struct perfless_queue *q, struct perfless_thread *thread)
{
    thread->next = q->first;
    q->last = q->first == NULL ? thread : q->last;
    q->first = thread;
    q->count++;
}

static inline struct perfless_thread *perfless_take(struct perfless_queue *q)
{
    struct perfless_thread *thread = q->first;
    if (thread != NULL) {
        q->first = thread->next;
        q->count--;
    }
    return thread;
}

/* Boxes: many put in, one takes all out at once. */
#define perfless_send(box, item)                                                                      \
    do {                                                                                           \
        (item)->next = __atomic_load_n(box, __ATOMIC_RELAXED);                                     \
    } while (!__atomic_compare_exchange_n(box, &(item)->next, item, true, __ATOMIC_RELEASE,        \
                                          __ATOMIC_RELAXED))
#define perfless_receive(box) __atomic_exchange_n(box, NULL, __ATOMIC_ACQUIRE)

static inline uint64_t perfless_period_ns(const struct perfless *t)
{
    return __atomic_load_n(&t->period_ns, __ATOMIC_RELAXED);
}

/* CPU time from the text of schedstat, or of stat (by_stat); false when it is neither. */
bool perfless_parse_run(const struct perfless *t, struct str text, uint64_t *run_ns);

/* ---- CPU time of a thread (perfless_clock.c), for the catcher that owns it ---- */

void perfless_close_files(struct perfless *t, struct perfless_thread *thread);
uint64_t perfless_last_ran_ns(int fd);
uint64_t perfless_thread_ran_ns(struct perfless *t, struct perfless_thread *thread);
bool perfless_check(struct catcher *k, struct perfless_thread *thread, bool *ran);

/* The loop of a catcher (catch_start). */
void perfless_run(struct catcher *k);

#endif
