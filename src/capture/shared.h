/*
 * shared: what the rooms of capture/ share in a run.
 *
 * One struct, made by run/ and lent to every concern: the settings, the log, the sampling events, the window that is
 * being filled. Its parts have one writer each, which is named beside them; all others read. Used by the sampler alone,
 * but for the log, which locks itself, and the own cost, which is atomic.
 */
#ifndef CAPTURE_SHARED_H
#define CAPTURE_SHARED_H

#include "capture/log.h"
#include "capture/observer.h"
#include "capture/own_cost.h"
#include "capture/settings.h"
#include "capture/unseen.h"
#include "capture/world.h"
#include "os/perf.h"
#include "sample/record.h"

/* The window that is being filled. Written by window/windows.c. */
struct window {
    struct profile *profile;
    uint64_t start_ns;       /* monotonic; 0: the first has not begun */
    uint64_t start_wall_ns;
    uint64_t length_ns;      /* that it is meant to have */
    uint64_t lost_records;   /* counted by stacks/records.c and stacks/catching.c */
    uint64_t broken_calls;   /* by stacks/catching.c: system calls that brief stops ended */
};

/* What the budget allows at present. Written by window/limits.c. */
struct throttle {
    bool active;             /* less is sampled than was asked for */
    bool suspended;          /* nothing is, until the window's end */
    bool coarse;             /* stacks are copied in short */
    uint32_t frequency_hz;   /* that is sampled at; 0: nothing is */
    uint64_t stretch;        /* rounds may be so many times as far apart as usual; at least 1 */
    bool closes_early;       /* the window is to end as soon as it can, for want of memory */
};

struct shared {
    const struct settings *settings;
    struct log log;
    struct unseen unseen;
    const struct world *world;
    bool confined;                   /* threads give up what they do not need (os/confine.h). Written by run/ */
    const struct observer *observer; /* null in the product */
    struct perf_access access;
    bool perf_on;
    struct perf *perf;           /* not opened while perf_on is false */
    struct record_format format; /* of its records */
    uint32_t frequency_hz;       /* as asked for; by brief stops another one was. Written by run/, as is the next */
    bool stops;                  /* threads without perf events may be held (os/stop.h) */
    uint32_t stops_hz;           /* at most so often */
    bool stops_useless;          /* they would not be, were they asked for: nothing tells which thread had a CPU */
    char stops_refused[120];     /* why they may not although that was asked for; "" */
    uint32_t command_pid;        /* 0: attached */
    int init_fd;                 /* to a parent that waits for the last window; -1: none does */
    bool end_told;               /* perf has just told that the command, or the only process, ended */
    bool finishing;              /* the run ends with this window */
    uint64_t first_ns;           /* monotonic: when the run began */
    uint64_t memory_bytes;       /* that may be resident */
    bool in_container;           /* whose memory is limited */
    struct own_cost own;         /* written by run/ and the catchers */
    struct window window;
    struct throttle throttle;
};

/* Are runtimes asked for profiles of their own: where there are no registers, or for what nobody else can tell? */
static inline bool shared_collects(const struct shared *s)
{
    const struct runtime_settings *runtime = &s->settings->runtime;
    return (!s->perf_on && !s->stops) || runtime->collected != 0;
}

/* How far rounds may be apart that are usually so far apart, when less is sampled than was asked for. */
static inline uint64_t shared_stretched_ns(const struct shared *s, uint64_t usual_ns, uint64_t most_ns)
{
    uint64_t ns = usual_ns * s->throttle.stretch;
    return ns < usual_ns ? usual_ns : ns < most_ns ? ns : usual_ns > most_ns ? usual_ns : most_ns;
}

#endif
