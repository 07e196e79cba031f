/*
 * Taking in processes that run already: the ones that were named, their children, and what the search for new
 * processes finds. Each gets events where it may, else it is counted from /proc.
 */
#include "capture/follow/follow.h"
#include "capture/follow/unsampled.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"


static enum capture_mode begin_events(struct follow *f, struct target *target)
{
    struct shared *s = f->shared;
    struct err err = {0};
    const struct perf_how how = {.stack_bytes = perf_sampling(s->perf)->stack_bytes};
    if (!perf_follow_process(s->perf, target->pid, &how, &err)) {
        if (err.kind == ERR_LIMIT) {
            unsampled_note_process(f->unsampled, target);
        } else if (err.kind != ERR_GONE) {
            follow_report_no_perf(f, &err, err.text);
        }
        return CAPTURE_PROC;
    }
    perf_enable(s->perf);
    (void)targets_read_maps(&f->targets, target);
    if (s->observer != NULL) {
        s->observer->target(s->observer->context, target->pid, true);
    }
    if (err.kind == ERR_LIMIT) {
        log_once(&s->log, LOG_WARNING, "%s. What they use is counted as lost", err.text);
        unseen_note(&s->unseen, UNSEEN_THREADS, err.text);
        unsampled_note_threads(f->unsampled, target->pid);
    }
    return follow_perf_mode(f);
}

void follow_adopt(struct follow *f, uint32_t pid, bool named)
{
    struct target *target = targets_begin(&f->targets, pid);
    if (target == NULL) {
        return;
    }
    target->named = named;
    targets_set_mode(&f->targets, target, f->shared->perf_on ? begin_events(f, target) : CAPTURE_PROC);
    (void)f->hooks.adopted(f->hooks.context, target); /* notes its end, too */
    selection_evaluate(&f->selection, target, clock_mono_ns());
}

/* Children stand earlier in the list than their parents when ids have begun again from the lowest. */
static bool adopt_listed(struct follow *f, const struct pid_list *pids, struct buf *text)
{
    bool any = false;
    for (size_t i = 0; i < pids->ids.len; i++) {
        uint32_t pid = pids->ids.at[i];
        struct proc_stat stat;
        if (pid != proc_own_pid() && targets_find(&f->targets, pid) == NULL &&
            proc_read(pid, 0, "stat", text, NULL) && stat_parse(buf_slice(text), &stat, NULL) &&
            !stat_has_ended(&stat) && targets_find(&f->targets, stat.ppid) != NULL) {
            follow_adopt(f, pid, false);
            any = true;
        }
    }
    return any;
}

void follow_adopt_children(struct follow *f)
{
    struct pid_list pids = {0};
    struct buf text;
    buf_init(&text, 64 * 1024);
    while (proc_list_processes(&pids, NULL) && adopt_listed(f, &pids, &text)) {
    }
    vec_release(&pids.ids);
    buf_release(&text);
}
