/*
 * selection: which processes are profiled, of those that could be followed.
 *
 * The facts of a process are read from /proc and evaluated by filter.h; its age counts from its start. perf's
 * inheritance follows what a followed process starts, whatever is decided here. So an excluded target stays a target:
 * its records say whom it starts, while its samples are dropped (their weight is taken off its own CPU time, because it
 * may have been selected before, or will be), no runtime of it is read, and it is no part of the profile.
 *
 * The result may change: an exec makes another command line and another executable, and a process grows older. A child
 * that has not called exec has its parent's result. A process that ended before its facts could be read is evaluated by
 * its records: its name stands for the command line, the first file that it mapped for the executable, its parent's
 * container for its own.
 *
 * A container's prefix must be unique: it is bound to the first id that begins so. Another such id is a conflict, which
 * is logged, and excluded.
 *
 * Used by the sampler alone.
 */
#ifndef CAPTURE_FOLLOW_SELECTION_H
#define CAPTURE_FOLLOW_SELECTION_H

#include "capture/follow/filter.h"
#include "capture/log.h"
#include "capture/follow/scan.h"
#include "capture/follow/targets.h"
#include "target/cgroup.h"

struct selection {
    const struct settings *settings;
    struct log *log;
    bool filters;         /* there are patterns */
    bool alone;           /* nothing below the processes that were named */
    bool active;          /* one of these, or an age: else all are selected and nothing is read */
    uint64_t ahead_ns;    /* the clock of start times, which goes on during suspend, against ours */
    uint64_t tick_ns;
    char bound[SETTINGS_PATTERNS_MAX][CONTAINER_ID_MAX]; /* of the container patterns; "": not met yet */
    char conflict[256];   /* two containers that one prefix matches; "": none */
    struct buf line, text; /* scratch */
};

void selection_init(struct selection *c, const struct settings *settings, struct log *log);
void selection_release(struct selection *c);

/* Whether a process that is no target is to become one; else says in `known` when that may change. */
bool selection_accepts(struct selection *c, const struct proc_stat *stat, struct scan_known *known);

/* Evaluates a target as it is now: one that is new, or has called exec. */
void selection_evaluate(struct selection *c, struct target *target, uint64_t now_ns);

/* The first file that a process mapped after an exec, for one whose executable could not be read. */
void selection_evaluate_path(struct selection *c, struct target *target, struct str path,
                          uint64_t now_ns);

/* At the end of a window, before accounting closes it: which targets came of age in it. And after it,
 * which begin the next one excluded. */
void selection_close_window(struct targets *targets, uint64_t now_ns);
void selection_begin_window(struct targets *targets, uint64_t now_ns);

/* Targets that were excluded for the whole window. */
uint64_t selection_excluded(const struct targets *targets);

/* "4711 nginx -g daemon off; (/usr/sbin/nginx)": for people. */
void selection_describe(struct selection *c, uint32_t pid, struct buf *out);

/* "--match celery --exe !bash" */
void selection_describe_filters(const struct selection *c, struct buf *out);

#endif
