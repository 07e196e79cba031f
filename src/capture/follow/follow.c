/*
 * What the concerns of the room share: the tables, the capture mode of what has events, and the two sentences for
 * processes that have none.
 */
#include "capture/follow/follow.h"
#include "capture/follow/inherit_group.h"
#include "os/proc.h"
#include "runtime/common/application.h"

#include <stdlib.h>

enum { LINK_MAX = 4096, ARGUMENTS_MAX = 8 << 20, TEXT_MAX = 8192 };

void follow_init(struct follow *f, struct shared *shared, const struct follow_hooks *hooks)
{
    const struct settings *settings = shared->settings;
    *f = (struct follow){.shared = shared, .hooks = *hooks};
    images_init(&f->images, shared->world);
    targets_init(&f->targets, &f->images, settings->naming.container_names);
    f->targets.stack_bytes = shared->perf_on ? perf_sampling(shared->perf)->stack_bytes : 0;
    f->targets.min_duration_ns = settings->scope.min_duration_ns;
    selection_init(&f->selection, settings, &shared->log);
}

void follow_release(struct follow *f)
{
    selection_release(&f->selection);
    targets_release(&f->targets);
    images_release(&f->images);
}

char *follow_application(const struct settings *settings, const struct world *world, uint32_t pid)
{
    char folder[LINK_MAX], *copy = NULL;
    struct buf arguments, text;
    buf_init(&arguments, ARGUMENTS_MAX);
    buf_init(&text, TEXT_MAX);
    if (settings->naming.application_identifiers &&
        world->text(world->context, pid, 0, "cmdline", &arguments, NULL)) {
        const struct application_facts facts = {
            .arguments = buf_slice(&arguments),
            .folder = str_of(proc_link(pid, "cwd", folder, sizeof folder) ? folder : NULL),
        };
        application_describe(&facts, &text);
        copy = text.len > 0 && !text.failed ? strndup(text.ptr, text.len) : NULL;
    }
    buf_release(&arguments);
    buf_release(&text);
    return copy;
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
                 s->settings->sampling.brief_stops ? "" : " (--brief-stops reads it, too)");
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
