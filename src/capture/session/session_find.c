#include "base/time.h"
#include "capture/session/session_private.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    EXAMPLES_MAX = 5,
    EXAMPLES_BYTES = 1024,
    LOOKED_LATER = 2, /* by the third look, 0.75 s after the first, what its start left in a ring was read */
};

/* ---- processes that begin ---- */

static bool is_on_perf(const struct target *target)
{
    return target != NULL && !target->ended &&
           (target->rung == RUNG_PERF || target->rung == RUNG_PERF_USER);
}

/* With a parent that is followed by perf a process is covered by inheritance, and only its record has not been
 * read; but not while everything is taken in for the first time, and when no record comes. */
static enum scan_answer consider(void *context, const struct proc_stat *stat,
                                 struct scan_known *known)
{
    struct session *s = context;
    if (stat_has_ended(stat) || stat->ppid == proc_own_pid()) {
        return SCAN_NEVER;
    }
    if (s->window_start_ns != 0 && known->looks < LOOKED_LATER &&
        is_on_perf(targets_find(&s->targets, stat->ppid))) {
        return SCAN_LATER;
    }
    if (!choose_takes(&s->choose, stat, known)) {
        return SCAN_LATER;
    }
    session_adopt(s, stat->pid, false);
    return SCAN_TAKEN;
}

void session_find_processes(struct session *s, uint64_t now_ns)
{
    if (s->settings->target != TARGET_ALL || !s->perf_on || now_ns < s->next_find_ns) {
        return;
    }
    s->next_find_ns = now_ns + SESSION_FIND_MS * NS_PER_MS;
    scan_round(&s->scan, now_ns, consider, s);
}

/* Children stand earlier in the list than their parents when ids have begun again from the lowest. */
static bool adopt_listed(struct session *s, const struct pid_list *pids, struct buf *text)
{
    bool any = false;
    for (size_t i = 0; i < pids->ids.len; i++) {
        uint32_t pid = pids->ids.at[i];
        struct proc_stat stat;
        if (pid != proc_own_pid() && targets_find(&s->targets, pid) == NULL &&
            proc_read(pid, 0, "stat", text, NULL) && stat_parse(buf_slice(text), &stat, NULL) &&
            !stat_has_ended(&stat) && targets_find(&s->targets, stat.ppid) != NULL) {
            session_adopt(s, pid, false);
            any = true;
        }
    }
    return any;
}

void session_adopt_children(struct session *s)
{
    struct pid_list pids = {0};
    struct buf text;
    buf_init(&text, 64 * 1024);
    while (proc_list_processes(&pids, NULL) && adopt_listed(s, &pids, &text)) {
    }
    vec_release(&pids.ids);
    buf_release(&text);
}

/* ---- who is left out ---- */

void session_judge(struct session *s, const struct record *record)
{
    struct target *target = s->choose.active ? targets_find(&s->targets, record->pid) : NULL;
    if (target == NULL) {
        return;
    }
    if (record->kind == RECORD_FORK && !target->judged) {
        choose_judge(&s->choose, target, record->time_ns);
    } else if (record->kind == RECORD_COMM && record->as.comm.exec) {
        choose_judge(&s->choose, target, record->time_ns);
    } else if (record->kind == RECORD_MMAP && target->exe_unknown && record->as.mmap.executable &&
               record->as.mmap.path.len > 0 && record->as.mmap.path.ptr[0] == '/') {
        choose_judge_by_path(&s->choose, target, record->as.mmap.path, record->time_ns);
    }
}

bool session_leaves_out(struct session *s, const struct record *sample)
{
    struct target *target = s->choose.active ? targets_get(&s->targets, sample->pid) : NULL;
    if (target == NULL) {
        return false;
    }
    if (!target->judged) {
        choose_judge(&s->choose, target, sample->time_ns);
    }
    if (!targets_is_left_out(target, sample->time_ns)) {
        target->skipped = false;
        return false;
    }
    target->left_out_ns += sample->as.sample.period_ns;
    if (sample->time_ns > target->glanced_at_ns) {
        target->since_glance_ns += sample->as.sample.period_ns;
    }
    return true;
}

bool session_is_left_out(struct session *s, const struct record *record)
{
    const struct target *target =
        s->choose.active ? targets_find(&s->targets, record->pid) : NULL;
    return target != NULL && targets_is_left_out(target, record->time_ns);
}

/* ---- who goes on without events ---- */

/* The kernel takes its events away from a program that may not be read (a set-uid file) within its exec, and
 * says that it ended. Nothing is mapped at that moment: no process ends so by itself. */
bool session_goes_on(struct session *s, const struct record *record)
{
    struct target *target = targets_find(&s->targets, record->pid);
    struct proc_stat stat;
    if (target == NULL || target->ended || target->alive != 1 || !target->maps_read ||
        target->maps.len > 0 || !proc_read(record->pid, 0, "stat", &s->choose.text, NULL) ||
        !stat_parse(buf_slice(&s->choose.text), &stat, NULL) || stat_has_ended(&stat)) {
        return false;
    }
    target->rung = RUNG_PROC;
    s->any_on_proc = true;
    session_say_unreadable(s, target);
    return true;
}

/* ---- nothing fits ---- */

static bool any_fits(struct session *s)
{
    vec_each(&s->targets.all, slot)
    {
        if (!(*slot)->skipped) {
            return true;
        }
    }
    return false;
}

static size_t describe_some(struct session *s, struct buf *out)
{
    struct pid_list pids = {0};
    size_t visible = 0, shown = 0;
    if (proc_list_processes(&pids, NULL)) {
        vec_each(&pids.ids, pid)
        {
            struct proc_stat stat;
            bool good = *pid != proc_own_pid() &&
                        proc_read(*pid, 0, "stat", &s->choose.text, NULL) &&
                        stat_parse(buf_slice(&s->choose.text), &stat, NULL) &&
                        !stat_is_kernel_thread(&stat) && !stat_has_ended(&stat);
            if (good && shown < EXAMPLES_MAX) {
                buf_text(out, shown++ == 0 ? "" : ", ");
                choose_describe(&s->choose, *pid, out);
            }
            visible += good;
        }
    }
    buf_text(out, visible > shown ? ", ..." : "");
    vec_release(&pids.ids);
    return visible;
}

void session_say_unfit(struct session *s)
{
    if (s->settings->target != TARGET_ALL || !s->choose.active) {
        return;
    }
    if (any_fits(s)) {
        s->any_fitted = true;
        return;
    }
    struct buf filters, examples;
    buf_init(&filters, EXAMPLES_BYTES);
    buf_init(&examples, EXAMPLES_BYTES);
    choose_describe_filters(&s->choose, &filters);
    size_t visible = describe_some(s, &examples);
    log_once(&s->log, LOG_WARNING, "no process fits %s; %zu are visible: %s", buf_cstr(&filters),
             visible, buf_cstr(&examples));
    buf_release(&filters);
    buf_release(&examples);
}

/* ---- windows ---- */

void session_close_choice(struct session *s)
{
    if (s->choose.active) {
        targets_recall(&s->targets);
        choose_close_window(&s->targets, clock_mono_ns());
        session_say_unfit(s);
        s->profile->meta.left_out = choose_left_out(&s->targets) + scan_left_out(&s->scan) +
                                    scan_left_out(&s->accounts.scan) + s->accounts.spent_left_out;
        s->accounts.spent_left_out = 0;
        scan_end_window(&s->scan);
        scan_end_window(&s->accounts.scan);
    }
}

void session_begin_choice(struct session *s)
{
    if (s->choose.active) {
        choose_begin_window(&s->targets, clock_mono_ns());
    }
}
