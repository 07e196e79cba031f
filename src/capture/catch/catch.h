/*
 * catch: the memory of a sampled thread, read at the moment of the sample.
 *
 * Concept. A thread of ours that is bound to the CPU on which a thread is sampled, and woken by that very
 * sample, preempts it: the sampled thread stands still until we sleep again. One such catcher per CPU
 * reads what must be of that moment (a runtime's stack, or what lies beyond the copy of a very deep native
 * one), proves that the thread did stand still, and hands both over to the sampler. Nothing else is done
 * there: the target is waiting. Names, unwinding and weaving come later.
 *
 * Two ways to be woken:
 *   rings   with perf: by each sample that arrives in the CPU's caught ring (os/perf.h);
 *   timers  without perf: at the session's frequency, on the CPU where a thread last ran (perfless.h).
 *
 * The proof, for a ring. The catcher is on the sample's CPU before and after the read (a); the read took at
 * most 100 µs (b); the thread's stat, read afterwards, says R and names that CPU (c). And the thread did
 * not run between the sample and the read (d). The interrupt that takes the sample wakes the catcher, so that
 * is so if the thread left its CPU for that wake-up's sake. the kernel's accounting of the catcher itself
 * (schedstat: how often it got its CPU, how long it had waited) tell:
 *
 *   it did not wait, to the nanosecond: a wake-up that preempts somebody makes the scheduler skip its next
 *   clock update (rq_clock_skip_update), while a timer tick, or any other interrupt, does update it. So nothing
 *   came in between.
 *
 *   it did wait, because a third thread ran first; but where the ring reports switches, the sampled one left
 *   at most U after the catcher was woken, by preemption, did not come back before the end, and the read began
 *   within 10 ms. U is five halves of what that usually takes: per CPU the median of 64 who were next, at first of
 *   8; there is none while two of three have to wait longer. (Where preemption is lazy, as it is from Linux 7.0 on, a
 *   catcher always waits, for some microseconds, and this alone proves.)
 *
 * A time from the sample on cannot tell: copying a stack takes an interrupt 20 to 50 µs, and a thread that goes
 * on and is interrupted by the next tick leaves within as many. Where there is no such accounting, nothing else
 * is known:
 *
 *   where the ring reports switches, the thread left its CPU by preemption at most D after the sample: per CPU,
 *   size of stack copied and 64 samples, D = p10 + 20 µs or five thirds of p10, whichever is more, if the median is
 *   at most twice the tenth percentile p10 and D at most 150 µs; else the CPU counts as starved, and nothing
 *   is proven until it is not. D begins at 50 µs.
 *
 *   else the read began at most T after the sample, T = min(p10 + 60 µs, 150 µs) of these delays in the
 *   same way, from 100 µs.
 *
 * Measured with threads that count (two CPUs, load 8 to 35, groups of weights 40 to 1024 against 1024): of
 * 68,873 proven by accounting none had gone on. Of 11,531 that had left within D 11 had, for 0.3 to 12 µs:
 * where the catcher has little weight and does not win its wake-up, the next tick is as likely as any.
 *
 * For a timer: (b), and (c) before and after the read, of the thread that was interrupted.
 *
 * Brief stops. Without perf, and where the user allows it (catch_allow_stops), the thread that a timer interrupted is
 * held still while it is read (os/stop.h): it is proven by that, and its registers and the top of its stack are
 * handed over with the frames, so that its native stack is unwound as a perf sample's is. A thread that may not be
 * held is read as above, and not tried again for a minute; one whose system call a stop has ended is left alone for a
 * second.
 *
 * Where the kernel has no schedstat for a thread that a timer met, or counts CPU time in ticks, nothing is proven:
 * in gVisor affinity is accepted and means nothing, the target goes on beside the reader on another thread of the
 * host, and all of the above passes by luck (of 78 stacks that were kept 12 had never existed). Frames are then read
 * twice over from the start, and the verdict is UNPROVABLE.
 *
 * Where less than a fifth of ten seconds' samples is proven, waking for each sample buys nothing: the
 * catcher drains its ring four times a second without reading memory (`given up`), and tries again every
 * minute.
 *
 * Hand-over. Each catcher writes into a buffer of its own, which the sampler empties (catch_drain): one
 * producer, one consumer, no lock. When it is full, what does not fit is counted as lost.
 *
 * Targets. The sampler publishes a table of what may be read (catch_publish); catchers find the sample's
 * pid in it. A table is never changed: a new one takes its place, and the old one is freed when no
 * catcher uses it any more.
 *
 * Call order. catch_init; catch_charge; catch_on_rings or catch_perfless; catch_publish when targets come and go;
 * catch_drain each round; catch_counts for summaries; catch_stop.
 */
#ifndef CAPTURE_CATCH_H
#define CAPTURE_CATCH_H

#include "capture/own_cost.h"
#include "os/perf.h"
#include "os/remote.h"
#include "os/stop.h"
#include "os/thread.h"
#include "runtime/runtime.h"
#include "sample/record.h"

enum {
    CATCH_CPUS_MAX = 256,      /* catchers; CPUs beyond it are drained without reading */
    CATCH_AT_ONCE_MAX = 16,    /* CPUs, on rings: with more of them each gets its catcher when something runs there */
    CATCH_BUFFER_BYTES = 512 * 1024, /* per catcher, to hand over; more with deep stacks */
    CATCH_MEMORY_MAX = 1 << 20, /* bytes of native stack read beyond a copy */
    CATCH_READ_MAX_US = 100,
    CATCH_HELD_STACK_MAX = 256 * 1024, /* bytes of a held thread's stack */
    CATCH_CHAIN_MAX = 256,     /* addresses of its chain */
};

/* What became of one sample's proof. */
enum catch_verdict {
    CATCH_PROVEN,
    CATCH_LATE,          /* (d): it may have gone on between the sample and the read */
    CATCH_OTHER_CPU,     /* (a): the catcher was moved, or could not be bound */
    CATCH_LONG,          /* (b) */
    CATCH_MOVED,         /* (c): another CPU has the thread */
    CATCH_ASLEEP,        /* (c): it is not runnable: it went on and slept by itself */
    CATCH_NOT_PREEMPTED, /* (d) */
    CATCH_UNREAD,        /* nothing was read: not the newest of several samples, a thread nobody can read,
                          * given up */
    CATCH_UNPROVABLE,    /* the kernel does not tell: nothing is ever proven here */
    CATCH_VERDICT_COUNT,
};

/* A process that may be read, by one of its runtimes. Borrowed until catch_publish returned without it. */
struct catch_target {
    uint32_t pid;            /* as records and /proc here number it */
    const struct runtime *runtime; /* null: only native stacks are to be read */
    const void *state;
    const struct remote *remote;
    uint64_t serial;         /* names this attachment; never 0, never used again */
    bool deep;               /* read native stacks beyond their copy, when it is full, … */
    bool gaps;               /* … and when it is not: it ends at a page that was never touched, too */
    bool more;               /* in a table: the next row is of the same process, another of its runtimes */
    bool stops;              /* its threads may be held, and … */
    uint32_t stack_bytes;    /* … so much of their stacks is read, at most CATCH_HELD_STACK_MAX, … */
    bool chains;             /* … and where frame pointers leave that, for another stack, they are followed */
    struct identity identity; /* as whom they are held; … */
    bool as_user;            /* … false: as ourselves */
    /* A thread's id as the target numbers it in its own PID namespace. Null: as here. */
    const struct catch_tid *tids; /* by tid */
    size_t tid_count;
};

struct catch_tid {
    uint32_t tid, inner;
};

/* What a catcher hands over beside the ring's record: this, then `frame_count` frames; in a process of several
 * runtimes the same for each other one (caught_next), by serial; then `memory_bytes` of the target's memory
 * from `memory_address`. What is about the sample or the memory is told by the first. */
struct caught {
    uint32_t bytes;       /* all of it, to the end of the memory, a multiple of 8 */
    uint32_t next_at;     /* where the next runtime's begins, in bytes from here; 0: this is the last */
    uint32_t frame_count;
    uint32_t pid, tid;    /* whom it is about: without perf there is no record */
    uint32_t held_ns;     /* from asking it to stop to letting it go; 0: it was not held. Else the memory is its stack
                           * from SP on, and behind it stand its registers (of the mask given to catch_allow_stops, as a
                           * perf sample has them) and … */
    uint32_t chain_count; /* … so many addresses by frame pointers, its own first; 0: they are all in the memory */
    uint64_t serial;      /* of the target; 0: nothing was read */
    uint64_t start_ns, end_ns; /* of the read */
    uint64_t weight_ns;   /* without perf: CPU time that it stands for; else 0 */
    uint64_t memory_address;
    uint32_t memory_bytes;
    uint8_t verdict;      /* enum catch_verdict */
    uint8_t end;          /* enum runtime_end */
    uint8_t marks;        /* enum runtime_mark */
    uint8_t reads;
    uint32_t interpreter; /* as in struct runtime_stack */
    uint8_t task_bytes;
    char task[RUNTIME_TASK_MAX];
    struct runtime_frame frame[];
};

/* Null: there is none. */
static inline const struct caught *caught_next(const struct caught *caught)
{
    return caught->next_at == 0 ? NULL : (const void *)((const unsigned char *)caught + caught->next_at);
}

static inline const unsigned char *caught_memory(const struct caught *caught)
{
    while (caught->next_at != 0) {
        caught = caught_next(caught);
    }
    return (const unsigned char *)&caught->frame[caught->frame_count];
}

static inline const uint64_t *caught_registers(const struct caught *caught)
{
    return (const uint64_t *)(const void *)(caught_memory(caught) + caught->memory_bytes);
}

/* What one CPU's catcher has done since catch_counts was asked last. */
struct catch_counts {
    uint64_t verdicts[CATCH_VERDICT_COUNT];
    uint64_t ends[RUNTIME_END_COUNT];  /* of the reads */
    uint64_t lost;        /* samples that did not fit into the buffer */
    uint64_t wakes;
    uint64_t broken_calls; /* system calls that returned EINTR to a thread that was held */
    uint64_t pending_stops; /* that took longer than STOP_WAIT_MS */
    struct remote_counts remote;
    bool bound, starved, given_up;
};

struct catch;

/* `frequency_hz` is the session's. */
struct catch *catch_init(uint32_t frequency_hz, struct err *err);

/* Before catchers are started: what they cost is to be added there. Borrowed until catch_stop. */
void catch_charge(struct catch *c, struct own_cost *own);

/* Before catch_perfless: threads of targets that have `stops` are held while they are read, and these registers (a
 * mask of PERF_REG_*) handed over. */
void catch_allow_stops(struct catch *c, uint64_t registers);

/* Starts a catcher for each of perf's caught rings (perf_open_caught), whose records are of `format`. Both
 * are borrowed until catch_stop. Rings for which no thread can be had are drained by catch_drain, without
 * reading; with many CPUs so is each ring at first, and catch_drain starts its catcher when it finds a record in it:
 * CPUs where nothing runs cost nothing, and the first samples on each of the others are not read. */
bool catch_on_rings(struct catch *c, struct perf *perf, const struct record_format *format,
                    struct err *err);

/* Starts a catcher for each CPU that is allowed here (perfless.h). Threads of the targets published are found
 * by catch_publish and catch_drain. */
bool catch_perfless(struct catch *c, struct err *err);

/* Waits until no catcher uses a target that is not listed any more: some 10 µs. False: one still does after
 * a second (it is held up in the kernel, by memory whose pages a process provides); what the earlier targets
 * borrow must then be kept, and the next call's result is about all of them. */
bool catch_publish(struct catch *c, const struct catch_target *targets, size_t count);

/* Not every record wakes its catcher. Two ways to keep what explains a sample from coming behind it, both
 * before catch_drain. catch_taken_ns tells up to which time all records have been taken (UINT64_MAX: none
 * waits), and wakes the catchers that are more than `lag_ns` behind. catch_flush has every catcher take what
 * is there, and waits for that, at most patience_ns: at the end of a window. */
uint64_t catch_taken_ns(struct catch *c, uint64_t lag_ns);
void catch_flush(struct catch *c, uint64_t patience_ns);

/* Hands over everything that waits. `record` is the ring's record, trimmed (record_trim), or null
 * without perf; `caught` is null for records that are no samples. Both are valid during the call and aligned to 8. */
void catch_drain(struct catch *c,
                 void (*each)(void *context, unsigned cpu, const void *record, size_t len,
                              const struct caught *caught),
                 void *context);

/* Without perf: CPU time of threads that no sample stands for yet, and none will. At the end of a window, after
 * catch_drain. */
void catch_settle(struct catch *c,
                  void (*each)(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns),
                  void *context);

/* Without perf: another frequency from now on, 0: hardly ever. On rings samples set the pace. */
void catch_set_frequency(struct catch *c, uint32_t frequency_hz);

/* To wait for: readable when a catcher's buffer is half full, or a stack in it is to be named at once
 * (RUNTIME_SHORT_LIVED), until catch_drain; -1: there is none. */
int catch_fd(const struct catch *c);

/* Of catchers: catch_drain may make more of them. */
size_t catch_cpu_count(const struct catch *c);
void catch_counts(struct catch *c, size_t cpu, struct catch_counts *out);

/* A thread that could not be held since this was asked last, for want of a right or because somebody traces it; 0:
 * none. */
uint32_t catch_take_refused(struct catch *c);

/* Why catchers cannot do what they should, in words; "" when they can: affinity refused, FIFO target, no schedstat. */
const char *catch_trouble(const struct catch *c);

/* False: the kernel holds a catcher up. What it uses, rings and the table's readers, must stay until the end. */
bool catch_stop(struct catch *c);

/* ---- the proof, pure ---- */

struct catch_evidence {
    bool unprovable;               /* the kernel tells nothing that the rest could rely on */
    unsigned cpu;                  /* of the sample */
    unsigned cpu_before, cpu_after; /* of the catcher */
    uint64_t sample_ns, start_ns, end_ns;
    char state;                    /* of the thread's stat, read after end_ns; 0: not readable */
    uint32_t stat_cpu;             /* its field 39 */
    bool switches;                 /* the ring reports switches */
    bool preempted;                /* it was switched out by preemption after the sample, … */
    uint64_t left_ns;              /* at that moment, … */
    bool resumed;                  /* and in again before end_ns, or out for another reason */
    bool accounting;                    /* the kernel's, of the catcher, were read after end_ns; since before, … */
    uint64_t turns;                /* it got its CPU so many times, … */
    uint64_t waited_ns;            /* and waited for it so long, in all */
    uint64_t woken_ns;             /* the moment when it was woken; 0: not worked out */
    uint64_t soon_ns;              /* U */
};

/* `late_ns` is D where the ring reports switches, else T. Unused where there is accounting. */
enum catch_verdict catch_prove(const struct catch_evidence *e, uint64_t late_ns);

/* T, U and D of the latest `count` delays (which are put in order); `before` when they are too few or too
 * scattered. Of a CPU that is starved T stays and D is 0. */
uint64_t catch_late_after(uint64_t *delays_ns, size_t count, uint64_t before, bool *starved);
uint64_t catch_soon_after(uint64_t *delays_ns, size_t count, uint64_t before);
uint64_t catch_left_after(uint64_t *delays_ns, size_t count, uint64_t before, bool *starved);

#endif
