/*
 * perf_private: what the files of perf share. Each calls those above it only.
 *
 *     perf_cpu.c     which CPUs there are
 *     perf_attr.c    the event: attributes, the system call, what may be used here
 *     perf_ring.c    rings, and reading them
 *     perf_extra.c   what else is sampled, beside the clock
 *     perf_burst.c   short threads
 *     perf_follow.c  who is followed, from the first to the last event
 *     perf.c         all of it: opening, waiting, closing
 */
#ifndef OS_PERF_PRIVATE_H
#define OS_PERF_PRIVATE_H

#include "base/vec.h"
#include "os/perf.h"
#include "target/cpulist.h"

#include <linux/perf_event.h>

enum { PERF_RECORD_MAX_BYTES = 65536 }; /* header.size is 16 bits */

struct perf_ring {
    unsigned cpu;
    int fd;
    struct perf_event_mmap_page *page;
    size_t map_bytes;
    unsigned char *scratch; /* for records that wrap; PERF_RECORD_MAX_BYTES */
    bool open; /* false: this CPU went away */
};

struct perf_follower {
    uint32_t pid, tid;
    int *fds; /* one per CPU, -1 where that CPU has none */
    int end_fd; /* tells its end, when caught; else -1: the others do */
    int own_fd; /* counts its process's threads alone (perf_own_attr); -1: there is none */
    struct perf_extra_fds *extra; /* null: it has none (perf_extra.c) */
    bool enabled;
    bool idle;          /* it and what it started hardly ran between the last two marks */
    uint64_t marked_ns; /* its count, then */
    uint64_t recent_ns; /* what it counted between the last two marks */
    uint32_t marks;     /* so far */
    uint64_t reported_ns, own_reported_ns; /* its counts, as perf_each_count reported them last */
    bool retired; /* to be replaced by others that are not enabled yet */
    bool duplicate; /* all its samples are another's as well */
    uint64_t first_id, last_id; /* of its events: what lies between is its own, too */
    uint32_t frequency_hz; /* that it samples at, for its life */
};

struct perf_burst {
    uint32_t pid;
    bool caught; /* whose rings its samples go to */
    VEC(int) fds;
};

struct perf {
    struct perf_sampling sampling;
    struct perf_ring *rings;
    struct perf_ring *caught; /* null until perf_open_caught */
    unsigned ring_count;      /* of each set, one per CPU */
    int fd_limit; /* events have lower numbers: some are left for images and output files */
    VEC(struct perf_follower) followers; /* by their ids */
    uint32_t awaited_pid; /* of several followed, the process whose end perf_wait tells; 0: none */
    unsigned char *scratch;
    struct pollfd *polled; /* perf_wait's: far too many for a stack that was limited */
    struct perf_extras *extra; /* null until perf_open_extra */
    VEC(struct perf_burst) bursts;
    uint64_t ended_count_ns; /* final counter values of reaped followers */
    VEC(struct perf_count) ended; /* their parts since perf_each_count */
    struct pid_list unsampled; /* threads that the last perf_follow_process had no descriptors for */
};

/* ---- perf_cpu.c ---- */

/* CPUs to open events on, in rising order: those that are on-line, and few that may come on-line. */
size_t perf_list_cpus(uint32_t cpus[static CPU_COUNT_MAX]);

/* ---- perf_attr.c ---- */

/* The system call; -1 and errno. */
int perf_open_event(const struct perf_event_attr *attr, int tid, int cpu);

/* The CPU clock of a thread; that of a caught one wakes its ring's reader. */
struct perf_event_attr perf_plain_attr(const struct perf_sampling *sampling, bool on_exec);
struct perf_event_attr perf_caught_attr(const struct perf_sampling *sampling);

/* Beside an event with `attr`: counts what the thread and the threads that it starts run, on all CPUs. */
struct perf_event_attr perf_own_attr(const struct perf_event_attr *attr);

/* ---- perf_ring.c ---- */

enum { PERF_RING_MIN_PAGES = 8 };

/* All of a set, of one size: `pages`, or as many as are granted. */
bool perf_open_rings(const struct perf *p, struct perf_ring *rings, size_t *pages, struct err *err);
void perf_close_rings(struct perf_ring *rings, unsigned count);
void perf_close_caught(struct perf *p);

/* Bytes of one ring of a set. */
uint64_t perf_rings_bytes(const struct perf_ring *rings, unsigned count);

/* What the first set of rings would have, and a second or third one. */
size_t perf_first_pages(const struct perf *p);
size_t perf_further_pages(const struct perf *p);

void perf_drain_ring(const struct perf_ring *ring, unsigned index,
                     void (*each)(void *context, unsigned ring, const void *record, size_t len),
                     void *context);

/* ---- perf_extra.c ---- */

/* Whether rings of this size could be had as well, now. */
bool perf_extra_have_room(struct perf *p, uint64_t least_bytes);

/* Gives a follower the extra events: like its clock event, whose attribute is `clock`. */
void perf_extra_follow(struct perf *p, struct perf_follower *f, const struct perf_event_attr *clock);

/* Ends a follower's; its counts are kept. */
void perf_extra_unfollow(struct perf *p, struct perf_follower *f);

/* PERF_EVENT_IOC_ENABLE or _DISABLE for all of a follower's. */
void perf_extra_set(const struct perf *p, const struct perf_follower *f, unsigned long request);

/* A ring's descriptor; -1: there is none. */
int perf_extra_fd(const struct perf *p, unsigned ring);

void perf_close_extra(struct perf *p);

/* ---- perf_burst.c ---- */

void perf_close_bursts(struct perf *p);

/* ---- perf_follow.c ---- */

void perf_close_follower(struct perf *p, struct perf_follower *f);

/* The descriptor that poll finds hung up when its task and all that this has started have ended; -1: it has no
 * event. */
int perf_end_of(const struct perf *p, const struct perf_follower *f);

#endif
