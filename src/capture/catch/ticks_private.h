/*
 * ticks_private: what the files of ticks share.
 *
 *     ticks.c        the sampler's side: listing, settling
 *     ticks_look.c   a catcher's side: its loop, looking at threads, reading them
 *     ticks_pace.c   how often
 */
#ifndef CAPTURE_TICKS_PRIVATE_H
#define CAPTURE_TICKS_PRIVATE_H

#include "capture/catch/catch_private.h"
#include "capture/catch/ticks.h"
#include "os/proc.h"

struct ticks_thread {
    struct ticks_process *process;
    struct ticks_thread *next; /* in the one list it is in */
    uint32_t tid;
    bool gone;           /* shared, atomic: it is not in task/ any more */
    bool is_new;         /* it started when the process was followed already */
    /* its owner's, whoever that is */
    bool idle, looked;
    uint8_t hops;
    int file, sched;     /* descriptors; -1: not kept open */
    uint64_t run_ns;     /* CPU time, as read last */
    uint64_t looked_ns;  /* monotonic: when */
    uint64_t could_ns;   /* time that it could have had its CPU, since run_ns was read */
    uint64_t guessed_ns; /* CPU time that was taken to be so since then, … */
    uint8_t guesses;     /* so many times in a row */
    uint8_t steady;      /* looks in a row that found that it had its CPU throughout */
    bool throughout;     /* the last one did */
    uint64_t owed_ns;    /* guessed, handed over, and not used */
    uint64_t ran_ns;     /* monotonic: when it was last seen to have run */
    uint64_t pending_ns; /* shared, atomic: not in a sample yet */
};

struct ticks_queue {
    struct ticks_thread *first, *last;
    size_t count;
};

struct ticks_process {
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
    struct ticks_process *next;
    struct ticks_queue idle;
    size_t sweep;          /* idle threads to be looked at still, from the first on */
    bool full, found;      /* the sweep began with all of them; has found one that ran */
    uint64_t swept_ns, sweep_ns; /* monotonic: when all were asked last; not again before */
    bool clocked;
    uint64_t clock_ns, base_ns; /* base: what never was explained */
    uint64_t ran_ns, check_ns;  /* monotonic: when it last ran, when to ask again */
    /* the sampler's */
    VEC(struct ticks_thread *) threads; /* by tid */
    VEC(struct ticks_thread *) left;    /* ended, with time to be settled */
    uint64_t asked_ns, listed_ns, list_ns; /* monotonic: last looked, last listed, not before */
    uint32_t listed_count;
    bool published, returned;
};

struct ticks_cpu { /* a catcher's */
    struct ticks_thread *inbox;          /* shared, atomic */
    struct ticks_process *process_inbox; /* shared, atomic */
    struct ticks_queue active;
    struct ticks_process *processes;     /* whose home it is */
    uint64_t next_ns, seed;
    unsigned probes;                     /* of this round */
    int own_sched;                       /* a descriptor; -1: runnable has to do */
    bool asked;                          /* picked_ns is of this round */
    uint64_t picked_ns;                  /* when we began to run, on the scheduler's clock; 0: unknown */
    uint64_t begun_ns, ended_ns;         /* monotonic: the round before this one; 0: there was none */
};

struct ticks {
    struct catch *owner;
    struct ticks_cpu *cpus;              /* by catcher */
    size_t cpu_count;
    uint64_t period_ns;                  /* shared, atomic */
    uint64_t tick_ns;
    uint32_t files, files_most;          /* shared, atomic; kept open */
    bool by_stat;                        /* constant: there is no schedstat */
    struct ticks_thread *outbox;         /* shared, atomic: to the sampler */
    struct ticks_process *process_outbox;
    /* the sampler's */
    VEC(struct ticks_process *) processes;
    struct pid_list ids;
    size_t next_home;
};

static inline void ticks_put(struct ticks_queue *q, struct ticks_thread *thread)
{
    thread->next = NULL;
    *(q->first == NULL ? &q->first : &q->last->next) = thread;
    q->last = thread;
    q->count++;
}

static inline void ticks_put_first(struct ticks_queue *q, struct ticks_thread *thread)
{
    thread->next = q->first;
    q->last = q->first == NULL ? thread : q->last;
    q->first = thread;
    q->count++;
}

static inline struct ticks_thread *ticks_take(struct ticks_queue *q)
{
    struct ticks_thread *thread = q->first;
    if (thread != NULL) {
        q->first = thread->next;
        q->count--;
    }
    return thread;
}

/* Boxes: many put in, one takes all out at once. */
#define ticks_send(box, item)                                                                      \
    do {                                                                                           \
        (item)->next = __atomic_load_n(box, __ATOMIC_RELAXED);                                     \
    } while (!__atomic_compare_exchange_n(box, &(item)->next, item, true, __ATOMIC_RELEASE,        \
                                          __ATOMIC_RELAXED))
#define ticks_receive(box) __atomic_exchange_n(box, NULL, __ATOMIC_ACQUIRE)

static inline uint64_t ticks_period_ns(const struct ticks *t)
{
    return __atomic_load_n(&t->period_ns, __ATOMIC_RELAXED);
}

/* CPU time from the text of schedstat, or of stat (by_stat); false when it is neither. */
bool ticks_parse_run(const struct ticks *t, struct str text, uint64_t *run_ns);

/* The loop of a catcher (catch_start). */
void ticks_run(struct catcher *k);

#endif
