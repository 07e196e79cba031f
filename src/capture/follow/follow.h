/*
 * follow: which processes and threads a run is about, and how each of them is captured.
 *
 * Concept. A process becomes a target by follow_adopt (it ran before us, or perf did not tell of its start), or by
 * the records of what a target starts (targets.h). Events are inherited, so that most targets have none of their own.
 * Each target has one capture mode at a time, changed by targets_set_mode alone.
 *
 * What stands above asks to be told, by struct follow_hooks: the rings must be drained before events are replaced, and
 * CPU accounting begins where a target does.
 *
 * The concerns of this room, one file each: find (new processes, filters), unsampled (no descriptors for events),
 * stack_sizes (copies as large as needed), bursts (threads shorter than a sample), duplicates (two events of one
 * thread), cpus (that come and go), applications (what they run).
 */
#ifndef CAPTURE_FOLLOW_FOLLOW_H
#define CAPTURE_FOLLOW_FOLLOW_H

#include "capture/concern.h"
#include "capture/follow/selection.h"
#include "capture/follow/images.h"
#include "capture/follow/targets.h"
#include "capture/shared.h"

struct follow_hooks {
    /* Takes and hands out all that is in the rings and with the catchers. */
    void (*drain)(void *context);
    /* A process that runs is a target now, or has events no more: its accounting begins. False: it is gone. */
    bool (*adopted)(void *context, struct target *target);
    /* A target that was polled is about to have events. */
    void (*gets_events)(void *context, struct target *target);
    /* Threads of a target are too short for samples: is its runtime read by a timer from now on? Then its events have
     * ended. */
    bool (*timed)(void *context, struct target *target);
    /* CPU time it used since its start, as samples could tell; false: it has ended. */
    bool (*used)(void *context, struct target *target, uint64_t *cpu_ns);
    void *context;
};

struct unsampled;

struct follow {
    struct shared *shared;
    struct images images;
    struct targets targets;
    struct selection selection;
    struct unsampled *unsampled;
    struct follow_hooks hooks;
};

void follow_init(struct follow *f, struct shared *shared, const struct follow_hooks *hooks);
void follow_release(struct follow *f);

/* Of a process that has events. */
enum capture_mode follow_perf_mode(const struct follow *f);

static inline bool follow_is_on_perf(const struct target *target)
{
    return target != NULL && !target->ended &&
           (target->capture_mode == CAPTURE_PERF || target->capture_mode == CAPTURE_PERF_USER);
}

/* Takes a running process in, in the best mode it allows. named: whatever the filters say. */
void follow_adopt(struct follow *f, uint32_t pid, bool named);

/* Takes in what targets have started before. */
void follow_adopt_children(struct follow *f);

/* After events were replaced: what was started meanwhile has none, and gets them. */
void follow_newborn(struct follow *f);

/* Logs, once per cause, that CPU time is counted without stacks, and remembers the reason. */
void follow_report_no_perf(struct follow *f, const struct err *why, const char *cause);
void follow_report_protected(struct follow *f, const struct target *target);

#endif
