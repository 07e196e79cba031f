/*
 * others: what is sampled besides CPU time (-e), on its way into the profile; and what tells of
 * context switches (--off-cpu), which goes the same way up to there.
 *
 * Each event is a sample type of the profile. A sample weighs its period; what the kernel counted
 * beyond what samples stand for is "[lost]", with the process in which most of it happened, so that
 * a type's sum is the kernel's own count. An event that does not exist here is a sentence, and the
 * run goes on.
 *
 * Used by the sampler alone. Call order: others_open before anything is followed; others_begin; per
 * sample others_add; others_count and others_end with the window.
 */
#ifndef CAPTURE_OTHERS_H
#define CAPTURE_OTHERS_H

#include "capture/settings.h"
#include "capture/stacks/stacks.h"
#include "os/perf.h"

struct others {
    struct perf *perf;       /* null: no other event is sampled */
    const struct event_list *events;
    struct perf_other open[PERF_OTHERS_MAX]; /* as asked for; the first are `events` */
    size_t count;
    size_t switches;         /* the place of what tells of context switches; count: nothing does */
    uint32_t type[PERF_OTHERS_MAX];          /* in the running profile */
    uint64_t weighed[PERF_OTHERS_MAX];       /* what the window's samples stand for */
    uint64_t counted[PERF_OTHERS_MAX];       /* by the kernel, and most of it in … */
    uint32_t pid[PERF_OTHERS_MAX];
};

/* False: none can be had; all of `open` then say why. */
bool others_open(struct others *o, struct perf *perf, const struct settings *settings);

/* Whether the kernel tells of context switches. */
bool others_tell_switches(const struct others *o);

/* The format of the records of an event; of those that are no samples, any event's will do. */
struct record_format others_format(const struct others *o, unsigned other);

void others_begin(struct others *o, struct profile *p);
void others_add(struct others *o, struct stacks *stacks, struct profile *p, unsigned other,
                const struct record *sample);

/* A sample of a process that is left out: the kernel's count has it all the same. */
void others_drop(struct others *o, unsigned other, const struct record *sample);

/* Takes the kernel's counts: before the window's last records, so that what comes between is the
 * next window's. */
void others_count(struct others *o);
void others_end(struct others *o, struct targets *targets, struct profile *p);

#endif
