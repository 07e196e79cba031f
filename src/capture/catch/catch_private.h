/*
 * catch_private: what the files of the catchers share.
 *
 *     catch.c          starting, publishing, emptying, stopping; one thread of the sampler calls it
 *     catch_ring.c     the loop of a catcher that samples wake
 *     catch_read.c     one read of one thread, with its evidence
 *     catch_hold.c     one read of one thread that is held by a brief stop
 *     catch_learn.c    what a catcher learns of itself: T, whether to give up, its slice
 *     catch_prove.c    the proof
 *     catch_accounting.c when a catcher was woken, and how long it waited for its CPU
 *     catch_plan.c     its memory about threads
 *     catch_table.c    what may be read
 *     catch_buffer.c   handing over
 *     catch_flush.c    asking for what waits in the rings
 *     perfless*.c      without rings (perfless.h)
 *
 * A catcher's fields are its own thread's but for those marked shared. To add another way of being
 * woken: a function for `run`, which begins with catch_settle_in, wraps each round into catch_begin and
 * catch_end, reads with catch_read and ends when catch_wait returns CATCH_STOP.
 */
#ifndef CAPTURE_CATCH_PRIVATE_H
#define CAPTURE_CATCH_PRIVATE_H

#include "capture/catch/catch.h"
#include "capture/catch/catch_buffer.h"
#include "capture/catch/catch_plan.h"
#include "capture/catch/catch_table.h"
#include "target/stat.h"
#include "unwind/unwind.h"

#include <pthread.h>

enum {
    CATCH_LATENCIES = 64,   /* T and slice are computed again after so many reads */
    CATCH_COPY_SIZES = 4,   /* copies of up to 16, 32, 48, 64 KiB: an interrupt takes the longer */
    CATCH_ASIDE_MAX = 32 * 1024,
    CATCH_TROUBLE_MAX = 1024,
    CATCH_DEEP_BYTES = 4 << 20, /* a catcher's second buffer, once a deep target is published */
};

/* ---- what it learned ---- */

/* Delays of one kind, and what follows from the latest of them. */
struct catch_delays {
    uint64_t latest_ns[CATCH_LATENCIES];
    size_t count;
    uint64_t most_ns; /* T or D */
    bool starved;
};

struct catch_learned {
    bool switches;
    struct catch_delays begins;                 /* of reads */
    struct catch_delays leaves[CATCH_COPY_SIZES]; /* by preemption */
    struct catch_delays soon;                   /* after the catcher was woken, they left */
    uint32_t turns, next;                       /* reads since then, and those that had not to wait for others */
    uint64_t holds_ns[CATCH_LATENCIES];
    size_t hold_count;
    uint64_t slice_ns;       /* that its work asks for */
    uint64_t window_ns;      /* when the present window began; 0: there is none */
    uint32_t tried, proven;  /* in it */
    uint64_t again_ns;       /* when to try again, while given up; else 0 */
};

void catch_learn_init(struct catch_learned *l, bool switches);

/* One read's delays; `copied` bytes of stack are in the sample. */
void catch_learn_delays(struct catch_learned *l, const struct catch_evidence *e, size_t copied);

/* T or D for such a sample. */
uint64_t catch_learned_late(const struct catch_learned *l, size_t copied);
bool catch_learned_starved(const struct catch_learned *l);

/* From waking to sleeping, with a read. True when the slice should be another one. */
bool catch_learn_hold(struct catch_learned *l, uint64_t hold_ns);

/* A sample that could have been read. */
void catch_learn_verdict(struct catch_learned *l, enum catch_verdict verdict);

/* Ends the window when it is over. Returns whether to read: false means given up. */
bool catch_learn_round(struct catch_learned *l, uint64_t now_ns);

/* ---- a catcher ---- */

/* Written by the catcher alone; the sampler takes differences. Only words: it is copied by words. */
struct catch_tally {
    uint64_t verdicts[CATCH_VERDICT_COUNT];
    uint64_t ends[RUNTIME_END_COUNT];
    uint64_t lost, wakes;
    uint64_t calls, bytes, unmapped, denied, gone; /* of struct remote_counts */
    uint64_t bound, starved, given_up;    /* the rest is as it is now */
    uint64_t broken_calls, pending_stops;
    uint64_t realtime_tid, favoured_tid;  /* threads that cannot be caught, and why */
    int64_t favoured_nice;
};

/* The newest sample, not closed yet: between reading its record and the proof. */
struct catch_open {
    bool is;
    struct catch_buffer *buffer;
    unsigned char *record;  /* struct caught follows */
    size_t record_bytes, room; /* room: for struct caught */
    const struct catch_target *target; /* null: nobody reads it */
    uint32_t pid, tid;
    unsigned cpu;
    uint64_t time_ns;
    size_t copied;          /* of its stack */
    uint64_t beyond;        /* where its stack goes on behind a full copy; 0: all was copied */
    struct runtime_registers registers;
    bool has_registers;     /* some runtime wants them, and the sample has them */
    bool wanted, was_read;
    struct catch_evidence evidence;
};

/* the kernel's accounting of the catcher itself. */
struct catch_accounting {
    int file;    /* a descriptor, when opened */
    bool opened;
    unsigned notes;
    struct proc_schedstat last;
};

enum catch_wake { CATCH_STOP, CATCH_WOKEN, CATCH_TIME };

struct catch_round {
    uint64_t count;    /* shared, atomic: finished ones */
    uint64_t taken_ns; /* shared, atomic: when the latest of these began */
    bool running;      /* shared, atomic */
    uint64_t begun_ns; /* the present one */
    uint64_t woke_ns;  /* before it */
    bool has_read;     /* it read a thread */
    bool reads;        /* reading is not given up */
};

struct catch_flush {
    uint64_t rounds; /* finished when the sampler asked */
    bool asked;
};

/* What was read is to be named at once: its code may be freed soon. */
struct catch_hurry {
    bool wanted;
    uint64_t latest_ns; /* when the sampler was woken for that */
};

/* Records behind the newest sample. */
struct catch_aside {
    size_t bytes;
    _Alignas(8) unsigned char at[CATCH_ASIDE_MAX];
};

struct catcher {
    struct catch *owner;
    unsigned cpu, ring;
    pthread_t thread;
    bool started;
    int waker;                         /* shared */
    struct catch_hazard *hazard;       /* shared */
    bool asked_for_room;               /* shared, atomic: since the sampler emptied the buffers */
    struct catch_buffer buffer;        /* shared: its reader is the sampler */
    struct catch_buffer *deep;         /* shared, atomic; null: no deep target yet */
    struct catch_tally tally;          /* shared, atomic words */
    struct catch_round round;
    struct catch_flush flush;          /* the sampler's */
    struct catch_tally reported;       /* the sampler's: as it was when asked last */
    const struct catch_table *table;   /* as entered */
    struct catch_plans plans;
    struct catch_learned learned;
    struct catch_open open;
    struct runtime_stack stack;        /* room for a walk */
    struct thread_rank rank;
    struct catch_accounting accounting;
    uint64_t ranked_slice_ns;
    uint64_t bind_again_ns;            /* a refused or lost binding is tried again then; 0: bound */
    unsigned vain;                     /* wakes in a row that brought nothing */
    struct catch_hurry hurry;
    struct stopper stopper;
    struct stop_state held;            /* room for a stop */
    uint32_t refused_tid;              /* shared, atomic: a thread that could not be held */
    struct catch_aside aside;
};

struct perfless;

struct catch {
    int half_full;                 /* a waker: a buffer should be emptied; -1: none */
    uint32_t frequency_hz;
    struct perf *perf;
    struct record_format format;
    bool switches;
    uint64_t idle_ns;              /* how long a ring may wait while reading is given up */
    bool stop;                     /* shared, atomic */
    bool any_deep;
    bool unprovable;               /* constant once catchers run */
    uint64_t held_registers;       /* constant: of threads that are held; 0: none is */
    struct catch_table *table;     /* shared, atomic */
    struct catch_hazard hazards[CATCH_CPUS_MAX + 1];
    size_t hazard_count;
    struct catcher **catchers;     /* with threads */
    size_t catcher_count;
    struct catcher *rest;          /* drains the rings without one; null: there are none */
    struct {
        unsigned *ring;
        size_t count;
        bool for_good;             /* no more threads can be had */
    } left;
    size_t plan_count, at_once_most;
    char *trouble;                 /* CATCH_TROUBLE_MAX bytes */
    struct perfless *perfless;     /* null: on rings */
    struct own_cost *own;          /* null: the kernel's clocks tell what catchers cost */
};

/* Counts: one writer, so no atomic addition is needed. */
static inline void catch_add(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, *word + value, __ATOMIC_RELAXED);
}

static inline void catch_set(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* ---- a catcher's thread (catch_read.c) ---- */

/* Binds and ranks the calling thread. */
void catch_settle_in(struct catcher *k);

/* Sleeps until `fd` can be read (-1: until time is up). */
enum catch_wake catch_wait(struct catcher *k, int fd, uint64_t timeout_ns);

/* A round: the table may be used in between. */
void catch_begin(struct catcher *k);
void catch_end(struct catcher *k);

/* Whether there is anything to read of a thread of `target` (may be null) at all. */
bool catch_is_wanted(const struct catch_target *target, uint64_t beyond);

/* The most that struct caught may need without memory beyond the copy. */
size_t catch_room_for(const struct catch_target *target);
/* What walks are told of a thread's registers. */
struct runtime_registers catch_registers(const struct unwind_registers *all);

/* Reads thread `tid` of `target`, by all of its runtimes: fills `out`, at most `room` bytes, but for its verdict,
 * and all of the evidence but what a record tells. False when the thread cannot stand still for us. */
bool catch_read(struct catcher *k, const struct catch_target *target, uint32_t tid, uint64_t beyond,
                struct caught *out, size_t room, struct catch_evidence *e);

/* Reads the frames once more, twice over, after a read that was not proven: so that they are of one moment at
 * least, though not the sample's. Not where the first read was so already, because nothing is provable. */
void catch_read_again(struct catcher *k, const struct catch_target *target, uint32_t tid,
                      struct caught *out);

/* The frames of every runtime of the process that walks, one behind the other; returns how many bytes they take.
 * `stands`: the thread is proven, or will be, not to move meanwhile. */
size_t catch_take_frames(struct catcher *k, const struct catch_target *target, uint32_t tid, bool stands,
                         struct memory_batch *memory, struct caught *out);
void catch_count_calls(struct catcher *k, const struct remote_counts *counts);

/* ---- holding (catch_hold.c) ---- */

/* More room in struct caught, for its stack and registers. */
size_t catch_room_to_hold(const struct catch *c, const struct catch_target *target);

/* Holds the thread, which is on our CPU, and reads it: fills `out` but for its verdict, which is PROVEN. False: it
 * could not be held (now), and may be read without. */
bool catch_read_held(struct catcher *k, const struct catch_target *target, uint32_t tid, struct caught *out,
                     size_t room);

/* A stop that was asked for and has not come is waited for, outside a round; false: we are to stop. */
bool catch_settle_stop(struct catcher *k);

/* ---- its own accounting (catch_accounting.c) ---- */

void catch_accounting_open(struct catch_accounting *b); /* of the calling thread */
void catch_accounting_close(struct catch_accounting *b);

/* Fills the evidence with what they tell since they were asked last. `round_ns`: when this round began. */
void catch_accounting_note(struct catch_accounting *b, uint64_t round_ns, struct catch_evidence *e);

/* ---- ways of being woken ---- */

void catch_run_ring(struct catcher *k);

/* One record of a ring; a sample stays open for what may be read and what comes behind it … */
void catch_take(void *context, unsigned ring, const void *record, size_t len);

/* … until it is proven or not, and handed over. */
void catch_close(struct catcher *k);

/* Takes what is in a ring without a thread. */
void catch_drain_ring(struct catcher *k, unsigned ring);

#endif
