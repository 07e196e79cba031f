/*
 * What the concerns of the room share: the tables, the capture mode of what has events, and the two sentences for
 * processes that have none.
 */
#include "capture/follow/follow.h"
#include "capture/follow/inherit_group.h"
#include "os/proc.h"

void follow_init(struct follow *f, struct shared *shared, const struct follow_hooks *hooks)
{
    const struct settings *settings = shared->settings;
    *f = (struct follow){.shared = shared, .hooks = *hooks};
    images_init(&f->images, shared->world);
    targets_init(&f->targets, &f->images, settings->naming.container_names);
    f->targets.stack_bytes = shared->perf_on ? perf_sampling(shared->perf)->stack_bytes : 0;
    f->targets.naming = &settings->naming;
    f->targets.min_duration_ns = settings->scope.min_duration_ns;
    selection_init(&f->selection, settings, &shared->log);
}

void follow_release(struct follow *f)
{
    selection_release(&f->selection);
    targets_release(&f->targets);
    images_release(&f->images);
}

enum capture_mode follow_perf_mode(const struct follow *f)
{
    return f->shared->access.kernel ? CAPTURE_PERF : CAPTURE_PERF_USER;
}

void follow_newborn(struct follow *f)
{
    f->hooks.drain(f->hooks.context);
    (void)inherit_group_follow_newborn(f->shared->perf, &f->targets);
}

void follow_report_no_perf(struct follow *f, const struct err *why, const char *cause)
{
    struct shared *s = f->shared;
    if (s->access.why.kind == ERR_NONE) {
        s->access.why = *why;
    }
    if (s->stops) {
        log_once_for(&s->log, LOG_INFO, cause, "%s. Threads that run are stopped for some microseconds instead",
                     why->text);
        return;
    }
    log_once_for(&s->log, LOG_WARNING, cause,
                 "%s. Only interpreters' stacks are read; other CPU time is counted from /proc%s", why->text,
                 s->settings->sampling.brief_stops || s->stops_useless ? "" : " (--brief-stops reads it, too)");
}

void follow_report_protected(struct follow *f, const struct target *target)
{
    struct err why;
    err_set(&why, ERR_DENIED, 0,
            "pid %u (%s) took the right to be sampled away when it started: a set-uid or "
            "unreadable program",
            target->pid, target->name);
    follow_report_no_perf(f, &why, "took the right");
}
