/*
 * extra_events: what is sampled besides CPU time (-e), on its way into the profile; and the event of
 * context switches (--off-cpu), which goes the same way up to there.
 *
 * Each event is a sample type of the profile. A sample weighs its period; what the kernel counted
 * beyond what samples stand for is "[lost]", with the process in which most of it happened, so that
 * a type's sum is the kernel's own count. An event that does not exist here is logged, and the
 * run goes on.
 *
 * Used by the sampler alone. Call order: extra_open before anything is followed; extra_begin; per
 * sample extra_add; extra_count and extra_end with the window.
 */
#ifndef CAPTURE_STACKS_EXTRA_EVENTS_H
#define CAPTURE_STACKS_EXTRA_EVENTS_H

#include "capture/settings.h"
#include "capture/stacks/stacks.h"
#include "os/perf.h"

struct extra_events {
    struct perf *perf;       /* null: no other event is sampled */
    const struct event_list *events;
    struct perf_extra open[PERF_EXTRA_MAX]; /* as asked for; the first are `events` */
    size_t count;
    size_t switches;         /* the place of the event of context switches; count: there is none */
    uint32_t type[PERF_EXTRA_MAX];          /* in the running profile */
    uint64_t weighed[PERF_EXTRA_MAX];       /* what the window's samples stand for */
    uint64_t counted[PERF_EXTRA_MAX];       /* by the kernel, and most of it in … */
    uint32_t pid[PERF_EXTRA_MAX];
};

/* False: none can be had; all of `open` then say why. */
bool extra_open(struct extra_events *o, struct perf *perf, const struct settings *settings);

/* Whether context switches are recorded. */
bool extra_tell_switches(const struct extra_events *o);

/* The format of the records of an event; of those that are no samples, any event's will do. */
struct record_format extra_format(const struct extra_events *o, unsigned other);

void extra_begin(struct extra_events *o, struct profile *p);
void extra_add(struct extra_events *o, struct stacks *stacks, struct profile *p, unsigned other,
                const struct record *sample);

/* A sample of an excluded process: the kernel's count has it all the same. */
void extra_drop(struct extra_events *o, unsigned other, const struct record *sample);

/* Takes the kernel's counts: before the window's last records, so that what comes between is the
 * next window's. */
void extra_count(struct extra_events *o);
void extra_end(struct extra_events *o, struct targets *targets, struct profile *p);

#endif
