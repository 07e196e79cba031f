/*
 * perfless_private: what the files of the perf-less sampler share.
 *
 *     perfless.c        the sampler's side: listing, settling
 *     perfless_scan.c   a catcher's side: its loop, checking threads
 *     perfless_read.c   whom it interrupted, and that one's stack
 *     perfless_unlisted.c threads that end before they are listed
 *     perfless_clock.c  CPU time of a thread
 *     perfless_pace.c   how often
 */
#ifndef CAPTURE_PERFLESS_PRIVATE_H
#define CAPTURE_PERFLESS_PRIVATE_H

#include "capture/catch/catch_private.h"
#include "capture/catch/perfless.h"
#include "os/proc.h"

enum {
    PERFLESS_MET = 4, /* threads that are read at one tick although nobody has listed them */
    PERFLESS_LISTED_WORDS = (1 << 22) / 64,
};

struct perfless_thread {
    struct perfless_process *process;
    struct perfless_thread *next; /* in the one list it is in */
    uint32_t tid;
    bool gone;           /* shared, atomic: it is not in task/ any more */
    bool is_new;         /* it started when the process was followed already */
    bool on_trial;       /* the sampler's: listed once, while many end before that; no catcher has it yet */
    bool unlisted;       /* a place of struct perfless_process for a thread that is not listed */
    bool was_read;       /* … and such a one has been */
    bool in_use;         /* shared, atomic: … the place is, by whichever catcher has it */
    /* its owner's, whoever that is */
    bool idle, checked;
    uint8_t hops;
    uint8_t misses;          /* times in a row that it may have had the CPU, and nothing proved it */
    int file, sched;     /* descriptors; -1: not kept open */
    uint64_t run_ns, slices; /* CPU time, and how often it was given a CPU, as read last */
    uint64_t turn_ns;    /* of the time between the last two readings: how long it had one at a time; 0: unknown */
    uint64_t checked_ns;  /* monotonic: when */
    uint64_t could_ns;   /* time that it could have had its CPU, since run_ns was read */
    uint64_t guessed_ns; /* CPU time that was taken to be so since then, … */
    uint8_t guesses;     /* so many times in a row */
    uint8_t steady;      /* checks in a row that found that it had its CPU throughout */
    bool throughout;     /* the last one did, … */
    bool to_the_end;     /* … and so nearly that it had it at this one, too */
    uint64_t owed_ns;    /* guessed, handed over, and not used */
    uint64_t ran_ns;     /* monotonic: when it was last seen to have run */
    /* shared, atomic */
    uint64_t pending_ns; /* not in a sample yet */
    uint64_t early_ns;   /* … and used before anybody knew it: for several samples */
};

struct perfless_queue {
    struct perfless_thread *first, *last;
    size_t count;
};

struct perfless_listing { /* of task/; the sampler's */
    uint64_t asked_ns, listed_ns, next_ns; /* monotonic: last checked, last listed, not before */
    uint64_t changed_ns; /* monotonic: when there were last more or fewer threads than had been listed */
    uint32_t count;
};

struct perfless_process {
    uint32_t pid;
    uint64_t serial;
    size_t home;
    /* shared, atomic */
    uint64_t explained_ns; /* of its clock: before it was followed, what its threads were seen to use, and what never
                            * will be explained */
    uint64_t meet_ns;      /* until then threads are looked for that no listing has */
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
    uint64_t clock_ns;
    uint64_t ran_ns, check_ns;  /* monotonic: when it last ran, when to ask again */
    struct perfless_thread met[PERFLESS_MET]; /* … at this tick */
    /* the sampler's */
    VEC(struct perfless_thread *) threads; /* by tid */
    VEC(struct perfless_thread *) left;    /* ended, with time to be settled */
    struct perfless_listing listing;
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
    int own_schedstat;                   /* a descriptor; -1: there is none */
    uint64_t waited_ns;                  /* by it, in all, for its CPU */
    uint64_t late_ns;                    /* of it, before this round */
    bool late;                           /* this round began late by that */
    uint16_t unproven;                   /* runnable threads in a row of which none was proven to have had the CPU */
    uint8_t lates;                       /* rounds in a row in which nothing was read for it */
    bool doubts;                         /* of the last round: somebody had his CPU now and then only */
    bool asked;                          /* picked_ns is of this round */
    uint8_t at_once;                     /* > 0: who is preempted for us goes at once, by the kernel's clock */
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
    uint64_t *listed;                    /* shared, atomic: a bit for each known thread, by tid */
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

static inline struct perfless_cpu *perfless_cpu_of(const struct catcher *k)
{
    return &k->owner->perfless->cpus[k->ring];
}

/* CPU time from the text of schedstat, or of stat (by_stat); false when it is neither. */
bool perfless_parse_run(const struct perfless *t, struct str text, uint64_t *run_ns, uint64_t *slices);

/* ---- CPU time of a thread (perfless_clock.c), for the catcher that owns it ---- */

void perfless_close_files(struct perfless *t, struct perfless_thread *thread);
/* How long the catcher has waited for its CPU since it was asked last. False: unknown. */
bool perfless_note_waits(struct perfless_cpu *cpu);
/* Had the catcher to wait for its CPU before this round? `woken`: by another catcher. */
bool perfless_has_waited(struct perfless_cpu *cpu, bool woken);

/* A catcher that is not always first has waited for a turn to end, whoever had it: whoever sleeps by then, or slept and
 * is woken again, was elsewhere when the timer went off. */
bool perfless_was_next(const struct catcher *k);
uint64_t perfless_last_ran_ns(int fd);
uint64_t perfless_thread_ran_ns(struct perfless *t, struct perfless_thread *thread);
bool perfless_check(struct catcher *k, struct perfless_thread *thread, bool *ran);

/* Takes what a sample stands for, now. */
uint64_t perfless_weigh(struct perfless_thread *thread);

/* Takes as much of its process's time that no thread explains as one sample of an unlisted thread may stand for. */
uint64_t perfless_claim(const struct perfless *t, struct perfless_process *p);

/* ---- reading (perfless_read.c) ---- */

/* Null: nobody may read it (now). */
const struct catch_target *perfless_target_of(const struct catcher *k, const struct perfless_process *p);

/* `guessed`: the thread may be on another CPU, and then is not read here after all, which is the answer false. */
bool perfless_read(struct catcher *k, const struct catch_target *target, struct perfless_thread *thread,
                   bool guessed);

/* Decides by the kernel's data of the thread. False: it runs elsewhere, and was handed over. */
bool perfless_read_if_interrupted(struct catcher *k, const struct catch_target *target,
                                  struct perfless_thread *thread);

/* ---- threads that end before they are listed (perfless_unlisted.c) ---- */

/* The sampler: a thread is listed, or gone. */
void perfless_set_listed(struct perfless *t, uint32_t tid, bool is);

/* Its home: threads must have run that nobody knows; they are looked for from now on. */
void perfless_expect_unlisted(struct catcher *k, struct perfless_process *p);
bool perfless_meets_unlisted(const struct perfless_process *p, uint64_t now_ns);

/* Its home, at a tick: who runs? */
void perfless_meet_unlisted(struct catcher *k, struct perfless_process *p);
bool perfless_has_handed_over(const struct perfless_process *p); /* another catcher has one of them */

/* Another catcher: such a thread ran on its CPU. */
void perfless_take_unlisted(struct catcher *k, struct perfless_thread *thread);

/* At a round's start: when did the catcher get its CPU? Asked at a tick, where the round before was in doubt. */
void perfless_ask_ahead(struct catcher *k, bool woken);

/* The loop of a catcher. */
void perfless_run(struct catcher *k);

#endif
