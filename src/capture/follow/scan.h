/*
 * scan: processes that begin anywhere in this PID namespace.
 *
 * No event reports them, so /proc is listed, and only what is new there is checked: a process that was checked is
 * remembered by its pid and start time. Reused pids are no danger: the kernel gives ids in order (and begins again at
 * the lowest free ones), so those between the last id of the list before and that of this one are new whatever is
 * remembered. Where the kernel does not say which id was the last (gVisor), everything is checked again within half a
 * minute.
 *
 * Where few ids have been given out since, they are asked for one by one; else, and every other second in any case,
 * /proc is listed.
 *
 * Cost: reading the last id 10 µs; a list 0.3 µs per process; a check, the reading of a stat file, 15 µs, which
 * only new processes cost, and with growing pauses those whose answer was SCAN_LATER.
 *
 * Kernel threads and ourselves are never asked about. A process that has ended and was not yet waited for
 * is: its times can still be read.
 *
 * Used by the sampler alone. Call order: scan_init; scan_round, often; scan_end_window; scan_release.
 */
#ifndef CAPTURE_FOLLOW_SCAN_H
#define CAPTURE_FOLLOW_SCAN_H

#include "capture/follow/targets.h"
#include "os/proc.h"
#include "target/stat.h"

enum {
    SCAN_IDLE_MS = 2000,    /* between two lists of /proc while few ids are given out */
    SCAN_FIRST_MS = 250,    /* the first pause of SCAN_LATER; each is twice the one before, up to … */
    SCAN_MOST_MS = 30000,
};

enum scan_answer {
    SCAN_TAKEN, /* it is a target now */
    SCAN_LATER, /* an exec, or its age, may change the answer */
    SCAN_NEVER, /* while it lives */
    SCAN_STRANGER, /* nor anything that it starts: that is not even asked about */
};

/* A process that was asked about. */
struct scan_known {
    uint32_t pid;
    uint32_t round;       /* it was listed in */
    uint32_t checks;      /* so far, this one not counted */
    bool settled;         /* it is a target, or never will be */
    bool stranger;
    bool excluded;        /* for the one who asks: counted by scan_excluded while it is set */
    uint64_t start_ticks;
    uint64_t again_ns;    /* monotonic: when it is checked again; 0: never. The one who asks may set an
                           * earlier or later moment */
};

/* Called for what is new or due. What it sets in `known` is kept. */
typedef enum scan_answer scan_ask(void *context, const struct proc_stat *stat,
                                  struct scan_known *known);

struct scan {
    struct targets *targets;
    VEC(struct scan_known) known;
    struct map by_pid;      /* pid -> index into known */
    struct pid_list pids;   /* scratch */
    struct buf text, status; /* scratch; a process's name stays in the first */
    uint32_t last_id;       /* at the last list */
    uint32_t before_id;     /* … and at the one before */
    uint32_t round;
    uint64_t list_ns;       /* monotonic: of the last list */
    uint64_t ended_excluded; /* in this window */
    uint64_t checks;        /* stat files read so far */
};

void scan_init(struct scan *s, struct targets *targets);
void scan_release(struct scan *s);

void scan_round(struct scan *s, uint64_t now_ns, scan_ask *ask, void *context);

/* A process became a target by another way: it is not asked about, and as a zombie not taken for a new one. */
void scan_note_taken(struct scan *s, uint32_t pid, uint64_t start_ticks);

/* Processes that were excluded in this window, ended ones included. */
uint64_t scan_excluded(const struct scan *s);
void scan_end_window(struct scan *s);

/* Was this id given out after `before`, when `last` was the latest one? 0: not known, which is no. */
bool scan_is_new(uint32_t before, uint32_t last, uint32_t pid);

#endif
