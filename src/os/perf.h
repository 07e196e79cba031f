/*
 * perf: per-process sampling events and their rings.
 *
 * Concept. One ring per online CPU, owned by a dummy event on ourselves so that it outlives every
 * target. A target thread is followed by one cpu-clock event per CPU, with `inherit`, redirected
 * into that CPU's ring: new threads and children are covered by the kernel. cpu-clock is an hrtimer
 * that runs only while the task runs, so a sample is a fixed amount of CPU time (perf_period_ns)
 * and needs no PMU.
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
 * Stacks. With stack_bytes 0 the kernel follows the user's frame pointers (a call chain); otherwise a
 * sample carries the user's registers and a copy of the stack's top, to be unwound here, and the call
 * chain holds kernel addresses only. The size is an event's for its life: to change it for a process,
 * perf_retire its followers, follow it (and the children that inherited from them) with another size,
 * then perf_replace, which loses and doubles no sample but the one or two of that moment.
 *
 * Limits. Rings start at 512 KiB (with stacks and few CPUs, at 2 MiB) and are halved, down to 32 KiB,
 * while the kernel refuses the locked memory (EPERM); perf_ring_bytes tells what was got. Descriptors:
 * threads x CPUs + CPUs, of which at most three quarters of what this process may have are used (the
 * limit is raised as far as allowed).
 *
 * Errors name the gate (perf-refusal table of the kernel's checks): EPERM is a seccomp filter, EACCES
 * on ourselves the paranoid level or an LSM, EACCES on a target its uid, capabilities or dumpable
 * flag, ENOSYS a kernel without perf or a filter, ENODEV gVisor.
 *
 * Source of the format: linux/perf_event.h, perf_event_open(2).
 */
#ifndef OS_PERF_H
#define OS_PERF_H

#include "base/err.h"
#include "base/vec.h"

#include <stdint.h>

enum perf_gate {
    PERF_GATE_NONE,      /* open */
    PERF_GATE_SECCOMP,
    PERF_GATE_PARANOID,
    PERF_GATE_NO_KERNEL_SUPPORT,
    PERF_GATE_GVISOR,
    PERF_GATE_MEMLOCK,
    PERF_GATE_TARGET,    /* uid, capabilities or dumpable flag of the target */
    PERF_GATE_MODULE,    /* EACCES although the paranoid level allows it */
    PERF_GATE_OTHER,
};

struct perf_access {
    bool user;              /* own user code may be sampled */
    bool kernel;            /* and kernel code */
    enum perf_gate gate;    /* why not, when !user */
    enum perf_gate kernel_gate; /* why not, when !kernel */
    struct err why;         /* the sentence with the remedy, when !user */
    int number;             /* errno of the refusal */
};

/* Opens events on ourselves and closes them again: attempts, does not deduce. */
void perf_probe(struct perf_access *out);

struct perf_ring;

struct perf_follower {
    uint32_t pid, tid;
    int *fds; /* one per CPU, -1 where that CPU has none */
    bool enabled;
    bool retired; /* to be replaced by others that are not enabled yet */
};

struct perf_sampling {
    uint32_t frequency_hz;
    bool kernel;          /* kernel code, too */
    uint32_t stack_bytes; /* to begin with: a multiple of 8, at most PERF_STACK_MAX; 0: frame
                           * pointers */
    uint64_t registers;   /* mask of PERF_REG_*, with stack_bytes */
};

enum { PERF_STACK_MAX = 63 * 1024 }; /* a record with registers and chain has at most 64 KiB */

struct perf {
    struct perf_sampling sampling;
    struct perf_ring *rings;
    unsigned ring_count;
    int fd_limit; /* events have lower numbers: some are left for images and output files */
    VEC(struct perf_follower) followers;
    unsigned char *scratch;
    uint64_t ended_count_ns; /* final counter values of reaped followers */
};

bool perf_open(struct perf *p, const struct perf_sampling *sampling, struct err *err);
void perf_close(struct perf *p);

/* The PERF_SAMPLE_* mask of every record, and of the id tail of those that are no samples. */
uint64_t perf_sample_type(const struct perf *p);

/* Bytes of one ring. */
uint64_t perf_ring_bytes(const struct perf *p);

uint64_t perf_period_ns(const struct perf *p);

/* Follows one thread and all it will start. on_exec: sampling begins at its next exec. */
bool perf_follow(struct perf *p, uint32_t tid, bool on_exec, struct err *err);

/* Whether a process has followers of its own; children of a followed one have none. */
bool perf_is_followed(const struct perf *p, uint32_t pid);

void perf_retire(struct perf *p, uint32_t pid);

/* Starts what was followed since, and ends what was retired; with `keep`, the other way round: what was
 * followed since is given up. */
void perf_replace(struct perf *p, bool keep);

/* Follows all threads of a process, listing them again until no new one appears. Threads that end
 * meanwhile are no error; false when none could be followed. True with `err` set: not all could. */
bool perf_follow_process(struct perf *p, uint32_t pid, uint32_t stack_bytes, struct err *err);

/* Starts what was followed without on_exec since the last call. */
void perf_enable(struct perf *p);

/* CPU time, user and kernel, of all followed tasks since they were followed: the kernel's own count,
 * ended children included, sampled or not. */
uint64_t perf_count_ns(struct perf *p);

/* Waits until a ring wants to be read, extra_fd (-1: none) is readable, or timeout. True when it was
 * the end of the only task that is followed (and of all it started). */
bool perf_wait(struct perf *p, int extra_fd, uint64_t timeout_ns);

/* Hands every complete record of every ring to `each`, ring by ring, and frees its space. */
void perf_drain(struct perf *p,
                void (*each)(void *context, unsigned ring, const void *record, size_t len),
                void *context);

/* Closes the events of followers whose tasks and all their children have ended. Returns how many
 * followers are left. */
size_t perf_reap(struct perf *p);

/* Text and remedy of a gate, for people: "seccomp filter". */
const char *perf_gate_name(enum perf_gate gate);

#endif
