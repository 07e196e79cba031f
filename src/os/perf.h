/*
 * perf: per-process sampling events and their rings.
 *
 * Concept. One ring per online CPU (and for a few CPUs that are present and off-line: they may come back),
 * owned by a dummy event on ourselves so that it outlives every target. A target thread is followed by one
 * cpu-clock event per CPU, with `inherit`, redirected
 * into that CPU's ring: new threads and children are covered by the kernel. cpu-clock is an hrtimer
 * that runs only while the task runs, so a sample is a fixed amount of CPU time and needs no PMU.
 *
 * Call order. perf_probe tells what may be used here; perf_open makes the rings; perf_follow adds
 * threads (of a process about to exec: enable_on_exec); perf_enable starts what was added;
 * perf_wait blocks until a ring is half full, a followed task ended, or time is up; perf_drain
 * hands out raw records; perf_reap drops events whose tasks all ended; perf_close ends it.
 *
 * Records given to perf_drain's callback are contiguous (one that wraps is copied to a scratch
 * buffer first) and valid during the call. Their format is a matter of sample/record.h;
 * perf_sample_type names the fields that were asked for.
 *
 * Caught rings. Processes whose samples must each be handled at once have a second set of rings,
 * made by perf_open_caught and owned like the first. Each of their samples wakes the reader of its CPU's
 * ring, once; other records do not, until half a ring has been written. Where the kernel can (4.3),
 * sampling.switches is then true, and these rings also say when a followed thread left its CPU and came
 * back (PERF_RECORD_SWITCH). A ring is waited for with poll on perf_caught_fd, for POLLIN, and is emptied by
 * perf_drain_caught; each has one reader thread, which may be another than the one that does all the rest
 * with a struct perf. Children of a caught process are caught as well. A process goes from one set of
 * rings to the other like it changes the size of its stacks (below). Followed threads cost a little at
 * each other's samples: the kernel wakes along the list of all events of a ring.
 *
 * Ends. What an inherited event counted is known only as a sum, with all that inherited from the same one
 * (perf_each_count). The kernel offers a record of what each task used (attr.inherit_stat, PERF_RECORD_READ), and it
 * must not be asked for: a task that ends then writes into the rings of all CPUs, and a ring is safe only against
 * writers on its own. When threads end on two CPUs at the same moment, records are lost, none of them counted, and
 * soon a ring never shows anything again. (Linux 6.18: of 1,500 processes with 4 threads each `perf record -s` has
 * 4,475 of 7,500 FORK records and no LOST; without -s all.)
 *
 * The kernel goes along the list of all events of a ring when a task ends that has one of them, or inherited from it,
 * and its counts have ended by then (perf_event_exit_event wakes who waits for the ring). Linux 6.18, 2 CPUs: each of
 * 600 followed threads that end takes 80 us in the place of 9, of 1,200 threads 211. So that this is not taken for what
 * other processes did, the threads of a process that has PERF_OWN_THREADS_MIN of them when it is followed have one
 * event more, without a ring, which only threads inherit (attr.inherit_thread, Linux 5.13): perf_each_count tells its
 * count apart.
 *
 * Two events at once. A thread inherits what its starter has, and whether that was before or after the
 * starter was followed cannot be seen: a thread found by listing again may be followed although it has
 * inherited an event already, and has twice as many samples. Each sample has its event's id, by which this is
 * found (perf_follower_of). Of the two the one that was followed later is to end: what has inherited its
 * events has the other's as well, because it descends from the same thread.
 *
 * Stacks. The kernel follows the user's frame pointers (a call chain, with the kernel's own); with stack_bytes
 * a sample carries the user's registers and a copy of the stack's top as well, to be unwound here. The size is
 * an event's for its life: to change it for a process, perf_retire its followers, follow it (and the children
 * that inherited from them) with another size, then perf_replace, which loses and duplicates no sample except
 * one or two of that moment. The same for another frequency (PERF_EVENT_IOC_PERIOD does not reach what
 * inherited the event); each sample tells the period that it was taken with.
 *
 * Other events. What else is sampled of every followed thread (perf_open_extra) has a third set of rings, so
 * that it cannot crowd out the CPU clock, and is off when the clock is off. Its samples have the stacks that
 * the clock's have, if they fit: a thirty-second of a ring at most; records of mappings, names, starts and ends come
 * from the clock alone. One such event may be one that takes no samples and records context switches.
 *
 * Bursts. A thread's first sample is due when it has run for a period; one that ends before leaves none, and a
 * program that starts a thread for each request leaves hardly any. perf_burst_follow gives every thread of a
 * process one event more, which what they start inherits. Its period is short (its samples tell it by that), and it
 * is off except in the moments between perf_burst_set(p, true) and (p, false): all that runs in these is sampled alike,
 * however young it is. Its samples go to the ring of the process's other ones, with small copies of stacks. A thread
 * that one starts while they are being listed may have none of it. (PERF_EVENT_IOC_PERIOD reaches neither what has
 * inherited the event nor, at least on Linux 6.18, what will.)
 *
 * Limits. Rings start at 512 KiB (with stacks and few CPUs, at 2 MiB; on more than 16 CPUs, at up to 250 Hz,
 * at what makes 8 MiB of all of them, but 128 KiB at least) and are halved, down to 32 KiB, while the kernel
 * refuses the locked memory (EPERM); perf_ring_bytes tells what was got. Caught rings start at 256 KiB, less on
 * many CPUs. Descriptors: threads x CPUs + CPUs, and one more for each caught thread, of
 * which at most three quarters of what this process may have are used (the
 * limit is raised as far as allowed). Of a process whose threads need more the hottest are followed, and
 * perf_unsampled names the others, which perf_follow_thread may take in later. Other events have as many each, and
 * less than all where they end.
 *
 * Errors name the gate: of events on ourselves that of perf_gate.h, of EACCES on a target its uid,
 * capabilities or dumpable flag (access.h).
 *
 * Source of the format: linux/perf_event.h, perf_event_open(2).
 */
#ifndef OS_PERF_H
#define OS_PERF_H

#include "base/err.h"
#include "base/vec.h"
#include "os/perf_gate.h"
#include "os/proc.h"

#include <stdint.h>

struct perf_access {
    bool user;              /* own user code may be sampled */
    bool kernel;            /* and kernel code */
    enum perf_gate gate;    /* why not, when !user */
    enum perf_gate kernel_gate; /* why not, when !kernel */
    struct err why;         /* the sentence with the remedy, when !user */
    int number;             /* errno of the refusal */
    bool kills;             /* a filter kills whoever makes the call; then EPERM */
    int kernel_number;      /* of the event that samples kernel code as well */
    struct perf_around around; /* what decided besides, when something was refused */
};

/* Opens events on ourselves and closes them again: attempts, does not deduce. */
void perf_probe(struct perf_access *out);

struct perf_sampling {
    uint32_t frequency_hz; /* of events that are made from now on; 0: they count, and take no sample */
    bool kernel;          /* kernel code, too */
    uint32_t stack_bytes; /* to begin with: a multiple of 8, at most PERF_STACK_MAX; 0: frame
                           * pointers */
    uint64_t registers;   /* mask of PERF_REG_*, with stack_bytes */
    bool switches;        /* caught events record switches; set by perf_open_caught */
    bool extra;           /* perf_open_extra follows: the first rings leave room for its own */
};

enum {
    PERF_BURST_PERIOD_NS = 101000, /* no divisor of a kernel's tick, nor of an usual period */
    PERF_BURST_THREADS_MAX = 64,   /* of a process, when it is taken in */
};

enum { PERF_OWN_THREADS_MIN = 32 }; /* above: from so many on they are counted apart */

enum { PERF_WAIT_FDS = 2 }; /* that perf_wait waits for besides */

enum { PERF_STACK_MAX = 63 * 1024 }; /* a record with registers and chain has at most 64 KiB */

struct perf;

/* One that nothing is sampled with until perf_open, and after perf_close: it has no rings and no followers, and
 * perf_wait waits for the extra descriptors alone. Null when memory ends. perf_free closes it; null is nothing. */
struct perf *perf_new(struct err *err);
void perf_free(struct perf *p);

bool perf_open(struct perf *p, const struct perf_sampling *sampling, struct err *err);
void perf_close(struct perf *p);

/* What events that are made from now on do; both setters leave those that there are as they are (perf_outdated). */
const struct perf_sampling *perf_sampling(const struct perf *p);
void perf_set_frequency(struct perf *p, uint32_t frequency_hz);
void perf_set_stack_bytes(struct perf *p, uint32_t stack_bytes);

/* Rings of a set, one per CPU. */
unsigned perf_ring_count(const struct perf *p);

/* Of several followed, the process whose end perf_wait reports; 0: none. */
void perf_await(struct perf *p, uint32_t pid);

/* The PERF_SAMPLE_* mask of every record, and of the id tail of those that are no samples. */
uint64_t perf_sample_type(const struct perf *p);

/* Bytes of one ring. */
uint64_t perf_ring_bytes(const struct perf *p);

/* Whether the rings are smaller than the limits of locked memory would make them, because other processes
 * of this user hold some of it (ring_memory.h); `why` is then the sentence, with the figures. */
bool perf_rings_are_short(const struct perf *p, struct err *why);

/* How the CPUs that are on-line now differ from those with rings. An event stays when its CPU goes, and waits; a CPU
 * that comes has no ring, and the samples of what runs there are missing. */
struct perf_cpus {
    unsigned absent_count; /* have a ring, and are off-line */
    unsigned new_count;    /* are on-line, and have none … */
    unsigned without_ring; /* … the first of them */
};
void perf_check_cpus(const struct perf *p, struct perf_cpus *out);

/* A process whose events have another frequency than those that are made now; 0: there is none. */
uint32_t perf_outdated(const struct perf *p);

/* All events count as outdated: another property of them than the frequency has changed. */
void perf_outdate(struct perf *p);

/* Those of this process are left as they are, and no longer outdated. */
void perf_accept_outdated(struct perf *p, uint32_t pid);

/* Follows one thread and all it will start. on_exec: sampling begins at its next exec. */
bool perf_follow(struct perf *p, uint32_t tid, bool on_exec, struct err *err);

/* Threads that are followed; what they start is not counted. */
size_t perf_follower_count(const struct perf *p);

/* Whether a process has followers of its own; children of a followed one have none. */
bool perf_is_followed(const struct perf *p, uint32_t pid);

/* The follower that an event's id belongs to (PERF_SAMPLE_IDENTIFIER in what it, or what inherited from it, writes), by
 * the first id of its own events: of two followers the one that was followed later has the larger one. 0: it has been
 * ended. `duplicate`: perf_set_duplicate was called for it. */
uint64_t perf_follower_of(const struct perf *p, uint64_t event, bool *duplicate);

/* All samples of this follower are another's as well. */
void perf_set_duplicate(struct perf *p, uint64_t follower);

/* Stops the duplicates: what they have written is still in the rings. Then perf_end_duplicates ends them, and their
 * counts are nobody's. */
void perf_stop_duplicates(struct perf *p);
void perf_end_duplicates(struct perf *p);

/* The followers of a process (0: of all) are to be replaced. */
void perf_retire(struct perf *p, uint32_t pid);

/* Starts what was followed since, and ends what was retired; with `keep`, the other way round: what was
 * followed since is given up. */
void perf_replace(struct perf *p, bool keep);

/* Follows all threads of a process, listing them again until no new one appears. Threads that end
 * meanwhile are no error; false when none could be followed. True with `err` set: not all could; with
 * ERR_LIMIT for want of descriptors, the sentence tells how many, and perf_unsampled which. */
struct perf_how {
    uint32_t stack_bytes; /* when caught, as many of them as let two records fit a ring */
    bool caught;          /* after perf_open_caught */
};
bool perf_follow_process(struct perf *p, uint32_t pid, const struct perf_how *how, struct err *err);

/* The threads that the last perf_follow_process had no descriptors for. Borrowed. */
const struct pid_list *perf_unsampled(const struct perf *p);

/* Follows one thread more. */
bool perf_follow_thread(struct perf *p, uint32_t pid, uint32_t tid, const struct perf_how *how,
                        struct err *err);

/* Notes what each follower of a process (0: of all) has counted. One that counted at most idle_ns since the mark
 * before is idle. */
void perf_mark(struct perf *p, uint32_t pid, uint64_t idle_ns);

/* Gives a thread up that is idle, and all that it started. False: none was. The
 * first thread never is: it started most others. */
bool perf_give_up_idle(struct perf *p, uint32_t pid, uint32_t *tid);

/* The process whose followers, with what they started, counted least between the last two marks, among those that
 * were followed all the time between, except one; 0: there is none. */
uint32_t perf_coolest(const struct perf *p, uint32_t except, uint64_t *recent_ns);

/* Gives a process up, and what inherited its events. */
void perf_give_up(struct perf *p, uint32_t pid);

/* Makes the caught rings; later calls are nothing. */
bool perf_open_caught(struct perf *p, struct err *err);

/* A caught ring's descriptor and CPU, ring < ring_count. -1: none on this CPU. */
int perf_caught_fd(const struct perf *p, unsigned ring);
unsigned perf_caught_cpu(const struct perf *p, unsigned ring);

/* Bytes of one caught ring; 0: there are none. */
uint64_t perf_caught_bytes(const struct perf *p);

/* Whether a caught ring holds no record now. */
bool perf_caught_is_empty(const struct perf *p, unsigned ring);

/* As perf_drain, one ring; by its reader's thread only. */
void perf_drain_caught(struct perf *p, unsigned ring,
                       void (*each)(void *context, unsigned ring, const void *record, size_t len),
                       void *context);

enum { PERF_EXTRA_MAX = 6 };

struct perf_extra {
    const char *name;       /* for messages */
    uint32_t type;          /* PERF_TYPE_* */
    uint64_t config;
    uint64_t period;        /* 0: by frequency */
    uint32_t frequency_hz;
    bool switches;          /* no samples, but PERF_RECORD_SWITCH */
    struct err refused;     /* why there is none of it here; ERR_NONE, and then it is asked for */
};

/* Finds out which of these there are here, and makes the rings for them; at most PERF_EXTRA_MAX. False when
 * none can be had: all then say why. Once, before anything is followed. */
bool perf_open_extra(struct perf *p, struct perf_extra *others, size_t count);

/* Were there any, when they were opened? */
bool perf_has_extra(const struct perf *p);

/* The PERF_SAMPLE_* mask of its records; all begin (samples) or end (others) with PERF_SAMPLE_IDENTIFIER. */
uint64_t perf_extra_sample_type(const struct perf *p, unsigned other);

/* As perf_drain, with the place of the event that a record comes from; PERF_EXTRA_MAX: of one that ended
 * long ago. */
void perf_drain_extra(struct perf *p,
                       void (*each)(void *context, unsigned other, const void *record, size_t len),
                       void *context);

/* How often it happened in all followed tasks since this was asked last: the kernel's own count, sampled or
 * not. `pid`: of the followed process in which (with what it started) it happened most; 0 in none. */
uint64_t perf_take_extra_count(struct perf *p, unsigned other, uint32_t *pid);

/* Threads that have fewer of these events than they should, because descriptors ran out. */
uint64_t perf_extra_short(const struct perf *p);

/* Once more for a process changes its rings, and takes in threads that have none. */
bool perf_burst_follow(struct perf *p, uint32_t pid, bool caught, struct err *err);
bool perf_burst_is_followed(const struct perf *p, uint32_t pid, bool caught);
void perf_burst_end(struct perf *p, uint32_t pid);

/* The processes that have such events: the pid at a place, from 0 on; 0: there are no more. */
uint32_t perf_burst_pid(const struct perf *p, size_t place);

/* All processes' at once; off at first. */
void perf_burst_set(struct perf *p, bool on);

/* Starts what was followed without on_exec since the last call. */
void perf_enable(struct perf *p);

/* CPU time, user and kernel, of all followed tasks since they were followed: the kernel's own count,
 * ended children included, sampled or not. */
uint64_t perf_count_ns(struct perf *p);

struct perf_count {
    uint32_t pid;
    uint64_t count_ns;     /* what it started counts with it */
    uint64_t own_ns;       /* of it: by its process's own threads; if that is counted */
    bool own_is_counted;   /* by this follower */
};

/* The same since the last call, one follower after the other. */
void perf_each_count(struct perf *p, void (*each)(void *context, const struct perf_count *count), void *context);

/* Waits until a ring wants to be read, one of extra_fds (-1: none) is readable, or timeout. True when it was
 * the end of the only task that is followed, or of the first thread of the awaited process (and of all it
 * started with the same event): perf_reap is then due, else the next wait is none. */
bool perf_wait(struct perf *p, const int extra_fds[static PERF_WAIT_FDS], uint64_t timeout_ns);

/* The same, not waiting for rings: a task that ends wakes whoever waits for the ring of an event that it inherited
 * (kernel/events/core.c, perf_event_exit_event), so that where hundreds per second end nothing else is done. The end
 * is looked for when the time is up. */
bool perf_wait_aside(struct perf *p, const int extra_fds[static PERF_WAIT_FDS], uint64_t timeout_ns);

/* Hands every complete record of every ring to `each`, ring by ring, and frees its space. */
void perf_drain(struct perf *p,
                void (*each)(void *context, unsigned ring, const void *record, size_t len),
                void *context);

/* Closes the events of followers whose tasks and all their children have ended. Returns how many
 * followers are left. */
size_t perf_reap(struct perf *p);

#endif
