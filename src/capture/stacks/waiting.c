/* waiting: looks when they are due, by the budget's stretch; the time without a place at a window's end; and what keeps
 * waits from being seen, in words: a right that is missing, with the gate and its remedy, a file of /proc that a system
 * does not have, more threads than there is room for. */
#include "capture/stacks/waiting.h"
#include "os/access.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct waiting {
    struct shared *shared;
    bool on;
    struct waits waits;
};

struct waiting *waiting_new(struct shared *shared, struct stacks *stacks, struct readers *readers,
                            struct targets *targets, bool on)
{
    struct waiting *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->shared = shared;
        w->on = on && waits_init(&w->waits, stacks, readers, targets, NULL);
    }
    return w;
}

bool waiting_is_on(const struct waiting *w)
{
    return w->on;
}

bool waiting_any_stack(const struct waiting *w)
{
    return w->on && w->waits.any_stack;
}

static void report_denied(struct waiting *w, uint32_t pid)
{
    char why[ACCESS_TEXT_MAX], cause[ACCESS_TEXT_MAX + 8];
    const struct target *target = targets_find(w->waits.targets, pid);
    access_refusal(pid, ACCESS_MEMORY, why);
    snprintf(cause, sizeof cause, "waits: %s", why); /* that its mappings are refused, too, is told as such */
    log_once_for(&w->shared->log, LOG_WARNING, cause,
                 "where threads of pid %u (%s) wait may not be read: %s. Their time off the CPU is \"[off-CPU]\"", pid,
                 target == NULL ? "" : target->name, why);
}

static void report(struct waiting *w)
{
    struct log *log = &w->shared->log;
    struct waits_refusal *refusal = &w->waits.refusal;
    if (refusal->kind == ERR_DENIED) {
        report_denied(w, refusal->pid);
    } else if (refusal->kind == ERR_UNSUPPORTED) {
        log_once(log, LOG_WARNING,
                 "this system has no /proc/PID/task/TID/%s (gVisor has none): where threads wait is not seen; run "
                 "outside of it, or on a kernel that has it",
                 refusal->file);
    }
    if (w->waits.is_full) {
        log_once(log, LOG_WARNING, "more than %d threads: waits of the others are not seen; choose processes with -p",
                 WAITERS_MAX);
    }
    refusal->kind = ERR_NONE;
    w->waits.is_full = false;
}

static void check(void *state, uint64_t now_ns)
{
    struct waiting *w = state;
    if (w->on && waits_due(&w->waits, now_ns)) {
        w->waits.stretch = w->shared->throttle.stretch;
        waits_look(&w->waits, w->shared->window.profile, now_ns);
        report(w);
    }
}

static void window_begin(void *state)
{
    struct waiting *w = state;
    w->shared->window.profile->watches_waits |= w->on;
}

static void window_end(void *state)
{
    struct waiting *w = state;
    if (w->on) {
        waits_end_window(&w->waits, w->shared->window.profile, clock_mono_ns());
    }
}

static uint64_t due_ns(const void *state)
{
    const struct waiting *w = state;
    return w->on && !w->shared->throttle.suspended ? w->waits.next_ns : 0;
}

static void release(void *state)
{
    struct waiting *w = state;
    if (w->on) {
        waits_release(&w->waits);
    }
    free(w);
}

const struct concern waiting_concern = {
    .name = "waiting",
    .round = check,
    .window_begin = window_begin,
    .window_end = window_end,
    .due_ns = due_ns,
    .release = release,
};
