/*
 * The search for new processes (-a with perf), and what filters make of targets: evaluated by record, their samples
 * dropped, their number told. selection.c holds the rules, scan.c the list of processes.
 */
#include "capture/follow/find.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    EXAMPLES_MAX = 5,
    EXAMPLES_BYTES = 1024,
    LATER_SCANS = 2, /* by the third, 0.75 s after the first, what its start left in a ring was read */
};

struct find {
    struct follow *follow;
    struct scan scan;
    uint64_t next_ns;  /* of the next search */
    bool any_selected;
};

struct find *find_new(struct follow *f)
{
    struct find *find = calloc(1, sizeof *find);
    if (find != NULL) {
        find->follow = f;
        scan_init(&find->scan, &f->targets);
    }
    return find;
}

static void release(void *state)
{
    struct find *find = state;
    scan_release(&find->scan);
    free(find);
}

/* ---- processes that begin ---- */

/* With a parent that is followed by perf a process is covered by inheritance, and only its record has not been
 * read; but not while everything is taken in for the first time, and when no record comes. */
static enum scan_answer consider(void *context, const struct proc_stat *stat,
                                 struct scan_known *known)
{
    struct find *find = context;
    struct follow *f = find->follow;
    if (stat_has_ended(stat) || stat->ppid == proc_own_pid()) {
        return SCAN_NEVER;
    }
    if (f->shared->window.start_ns != 0 && known->checks < LATER_SCANS &&
        follow_is_on_perf(targets_find(&f->targets, stat->ppid))) {
        return SCAN_LATER;
    }
    if (!selection_accepts(&f->selection, stat, known)) {
        return SCAN_LATER;
    }
    follow_adopt(f, stat->pid, false);
    return SCAN_TAKEN;
}

void find_first(struct find *find, uint64_t now_ns)
{
    const struct shared *s = find->follow->shared;
    if (s->settings->scope.mode == TARGET_ALL && s->perf_on && now_ns >= find->next_ns) {
        find->next_ns = now_ns + FIND_MS * NS_PER_MS;
        scan_round(&find->scan, now_ns, consider, find);
    }
}

static void search(void *state, uint64_t now_ns)
{
    find_first(state, now_ns);
}

/* ---- who is excluded ---- */

void find_evaluate(struct find *find, const struct record *record)
{
    struct selection *selection = &find->follow->selection;
    struct target *target = selection->active ? targets_find(&find->follow->targets, record->pid) : NULL;
    if (target == NULL) {
        return;
    }
    if ((record->kind == RECORD_FORK && !target->filter.evaluated) ||
        (record->kind == RECORD_COMM && record->as.comm.exec)) {
        selection_evaluate(selection, target, record->time_ns);
    } else if (record->kind == RECORD_MMAP && target->filter.exe_unknown && record->as.mmap.executable &&
               record->as.mmap.path.len > 0 && record->as.mmap.path.ptr[0] == '/') {
        selection_evaluate_path(selection, target, record->as.mmap.path, record->time_ns);
    }
}

bool find_excludes(struct find *find, const struct record *sample)
{
    struct selection *selection = &find->follow->selection;
    struct target *target = selection->active ? targets_get(&find->follow->targets, sample->pid) : NULL;
    if (target == NULL) {
        return false;
    }
    if (!target->filter.evaluated) {
        selection_evaluate(selection, target, sample->time_ns);
    }
    if (!targets_is_excluded(target, sample->time_ns)) {
        target->filter.skipped = false;
        return false;
    }
    target->filter.excluded_ns += sample->as.sample.period_ns;
    if (sample->time_ns > target->account.read_ns) {
        target->account.since_read_ns += sample->as.sample.period_ns;
    }
    return true;
}

bool find_is_excluded(struct find *find, const struct record *record)
{
    const struct target *target =
        find->follow->selection.active ? targets_find(&find->follow->targets, record->pid) : NULL;
    return target != NULL && targets_is_excluded(target, record->time_ns);
}

/* ---- nothing is selected ---- */

static bool any_selected_now(struct follow *f)
{
    vec_each(&f->targets.all, slot)
    {
        if (!(*slot)->filter.skipped) {
            return true;
        }
    }
    return false;
}

static bool is_worth_showing(struct follow *f, uint32_t pid)
{
    struct proc_stat stat;
    return pid != proc_own_pid() && proc_read(pid, 0, "stat", &f->selection.text, NULL) &&
           stat_parse(buf_slice(&f->selection.text), &stat, NULL) && !stat_is_kernel_thread(&stat) &&
           !stat_has_ended(&stat);
}

static size_t describe_some(struct follow *f, struct buf *out)
{
    struct pid_list pids = {0};
    size_t visible = 0, shown = 0;
    if (proc_list_processes(&pids, NULL)) {
        vec_each(&pids.ids, pid)
        {
            bool good = is_worth_showing(f, *pid);
            if (good && shown < EXAMPLES_MAX) {
                buf_text(out, shown++ == 0 ? "" : ", ");
                selection_describe(&f->selection, *pid, out);
            }
            visible += good;
        }
    }
    buf_text(out, visible > shown ? ", ..." : "");
    vec_release(&pids.ids);
    return visible;
}

static uint32_t parent_of(struct follow *f, uint32_t pid)
{
    struct proc_stat stat;
    bool good = proc_read(pid, 0, "stat", &f->selection.text, NULL) &&
                stat_parse(buf_slice(&f->selection.text), &stat, NULL);
    return good ? stat.ppid : 0;
}

/* Is nobody visible but ourselves and whoever started us? */
static bool is_alone(struct follow *f)
{
    struct pid_list pids = {0};
    size_t visible = proc_list_processes(&pids, NULL) ? pids.ids.len : 0, own = 0;
    for (uint32_t pid = proc_own_pid(); pid != 0; pid = parent_of(f, pid)) {
        own++;
    }
    vec_release(&pids.ids);
    return visible > 0 && visible <= own;
}

static void report_alone(struct follow *f)
{
    if (is_alone(f)) {
        log_once(&f->shared->log, LOG_WARNING,
                 "no other process is visible in this PID namespace, so there is nothing to profile. Share one: on ECS "
                 "and Fargate \"pidMode\": \"task\", in Kubernetes shareProcessNamespace: true, with Docker --pid "
                 "container:NAME; or start the program through pillion");
    }
}

void find_report_none(struct find *find)
{
    struct follow *f = find->follow;
    if (f->shared->settings->scope.mode != TARGET_ALL) {
        return;
    }
    if (!f->selection.active) {
        report_alone(f);
        return;
    }
    if (any_selected_now(f)) {
        find->any_selected = true;
        return;
    }
    struct buf filters, examples;
    buf_init(&filters, EXAMPLES_BYTES);
    buf_init(&examples, EXAMPLES_BYTES);
    selection_describe_filters(&f->selection, &filters);
    size_t visible = describe_some(f, &examples);
    log_once(&f->shared->log, LOG_WARNING, "no process fits %s; %zu are visible: %s", buf_cstr(&filters),
             visible, buf_cstr(&examples));
    buf_release(&filters);
    buf_release(&examples);
}

bool find_any_selected(const struct find *find)
{
    const struct follow *f = find->follow;
    return !f->selection.active || f->shared->settings->scope.mode != TARGET_ALL || find->any_selected;
}

/* ---- windows ---- */

static void window_end(void *state)
{
    struct find *find = state;
    struct follow *f = find->follow;
    if (f->selection.active) {
        targets_recall(&f->targets);
        selection_close_window(&f->targets, clock_mono_ns());
        find_report_none(find);
        f->shared->window.profile->meta.excluded = selection_excluded(&f->targets) + scan_excluded(&find->scan);
        scan_end_window(&find->scan);
    }
}

static void window_begin(void *state)
{
    struct find *find = state;
    if (find->follow->selection.active) {
        selection_begin_window(&find->follow->targets, clock_mono_ns());
    }
}

const struct concern find_concern = {
    .name = "find",
    .while_suspended = true,
    .round = search,
    .window_begin = window_begin,
    .window_end = window_end,
    .release = release,
};
