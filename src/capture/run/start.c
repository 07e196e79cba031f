/*
 * How a run begins: the command is armed before it may start, or processes that run are taken in; then the first line.
 * The command waits until launch_ready, so uploads and messages come after it.
 */
#include "capture/run/run.h"
#include "base/time.h"
#include "base/version.h"
#include "capture/run/loop.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/proc.h"
#include "target/stat.h"

#include <stdio.h>

enum { DESTINATION_MAX = 4096 };

/* ---- the first line ---- */

/* In words: a folder, back ends, or both. */
static void describe_destination(const struct rooms *r, char *out, size_t out_bytes)
{
    char names[64] = "";
    if (r->uploads.uploader != NULL) {
        uploader_describe(r->uploads.uploader, names, sizeof names);
    }
    bool writes = r->shared.settings->output.formats != 0 || r->uploads.uploader == NULL;
    snprintf(out, out_bytes, "%s%s%s", names, writes && names[0] != '\0' ? " and " : "",
             writes ? publisher_dir(r->publisher) : "");
}

/* What who lets pillion choose should know: beside the command it cannot make its end wait. */
static const char *launch_hint(const struct shared *s)
{
    bool chosen = s->command_pid != 0 && s->settings->scope.launch == LAUNCH_AUTO;
    if (!chosen || s->init_fd >= 0 || launch_pid_is_told(s->command_pid)) {
        return "";
    }
    return launch_in_container() ? "; a container that ends with the command takes the last window with it: --launch "
                                   "init waits for it"
                                 : "; --launch init waits for the last window";
}

static void say_start(struct rooms *r, const char *what)
{
    char mode[WINDOWS_MODE_MAX], destination[DESTINATION_MAX];
    const struct settings *settings = r->shared.settings;
    windows_mode(r->windows, mode);
    describe_destination(r, destination, sizeof destination);
    struct log_field fields[] = {
        {"version", STR(PILLION_VERSION)}, {"target", str_of(what)}, {"mode", str_of(mode)}};
    if (r->shared.log.terminal) {
        char length[48] = "";
        if (!settings->sampling.continuous) {
            snprintf(length, sizeof length, " for %g s", (double)settings->sampling.window_ns / (double)NS_PER_S);
        }
        log_event(&r->shared.log, LOG_INFO, "start", fields, 3, "profiling %s at %u Hz%s, %s", what,
                  r->shared.frequency_hz, length, mode);
    } else {
        log_event(&r->shared.log, LOG_INFO, "start", fields, 3,
                  "pillion " PILLION_VERSION ": pid %u profiles %s at %u Hz, %s, to %s %s %g s%s",
                  proc_own_pid(), what, r->shared.frequency_hz, mode, destination,
                  settings->sampling.continuous ? "every" : "for",
                  (double)settings->sampling.window_ns / (double)NS_PER_S, launch_hint(&r->shared));
    }
    struct err why;
    if (!proc_is_mounted()) {
        log_say(&r->shared.log, LOG_WARNING,
                "no /proc is mounted here: %s; to change that: mount -t proc proc /proc",
                r->shared.perf_on ? "interpreters and what samples miss are not seen"
                                  : "nothing can be profiled");
    }
    if (!r->shared.perf_on) {
        follow_report_no_perf(&r->follow, &r->shared.access.why, r->shared.access.why.text);
    } else if (perf_rings_are_short(r->shared.perf, &why)) {
        log_say(&r->shared.log, LOG_WARNING, "%s", why.text);
    }
    extra_records_report(r->extra);
}

/* After the command was let go. Without an uploader that was wanted, files are written; false: nobody wants them. */
static bool begin_uploads(struct rooms *r)
{
    bool good = uploads_begin(&r->uploads);
    if (r->uploads.uploader != NULL || !good) {
        publisher_upload(r->publisher, r->uploads.uploader, r->shared.window.profile);
    }
    if (r->shared.confined) { /* the threads that may have sockets run */
        confine_reader();
    }
    return good || !uploads_are_all(r->shared.settings);
}

static void begin_window(struct rooms *r)
{
    windows_begin(r->windows);
    rows_window_begin(&r->rows);
}

/* ---- a command ---- */

/* Arms sampling for the command's exec. */
static void follow_command(struct rooms *r, const struct launch_target *target)
{
    struct shared *s = &r->shared;
    struct err err = {0};
    if (s->perf_on) {
        perf_await(s->perf, target->pid);
    }
    if (target->fresh && s->perf_on && !perf_follow(s->perf, target->pid, true, &err)) {
        perf_close(s->perf);
        s->perf_on = false;
        s->access.why = err;
    }
}

/* Or takes it and its children in, when it runs already. */
static void adopt_command(struct rooms *r, const struct launch_target *target)
{
    if (!target->fresh) {
        follow_adopt(&r->follow, target->pid, true);
        follow_adopt_children(&r->follow);
        return;
    }
    struct target *command = targets_get(&r->follow.targets, target->pid);
    if (command != NULL) {
        command->named = true;
        targets_set_mode(&r->follow.targets, command, r->shared.perf_on ? follow_perf_mode(&r->follow) : CAPTURE_PROC);
        command->alive = 1;
        (void)accounting_adopt(polling_accounting(r->polling), command);
    }
}

int run_command(const struct run_input *input, struct launch_target *target)
{
    char what[ERR_TEXT_MAX];
    struct rooms r;
    rooms_init(&r, input);
    r.shared.init_fd = target->init_fd;
    r.shared.command_pid = target->pid;
    /* the command waits: nothing but what arms sampling comes before launch_ready */
    rooms_open_perf(&r);
    follow_command(&r, target);
    if (!rooms_make(&r) || (!target->fresh && !rooms_start(&r))) {
        (void)launch_ready(target);
        return 1;
    }
    adopt_command(&r, target);
    begin_window(&r);
    if (!launch_ready(target)) {
        (void)loop_release(&r, clock_mono_ns());
        return 0;
    }
    snprintf(what, sizeof what, "%s (pid %u) and its children", input->settings->scope.command[0], target->pid);
    if (!input->settings->upload.wanted) {
        say_start(&r, what); /* at once: a short command may take its container with it */
    }
    if (target->fresh && !rooms_start(&r)) {
        return 1;
    }
    own_cost_open(&r.shared.own); /* it may take 20 ms: the command is on its way */
    if (target->late) { /* its exec came before the events that waited for it */
        target->fresh = false;
        adopt_command(&r, target);
    }
    (void)begin_uploads(&r);
    if (input->settings->upload.wanted) {
        say_start(&r, what); /* and to where */
    }
    return loop_run(&r);
}

/* ---- attaching ---- */

static void list_visible(struct buf *out)
{
    struct pid_list pids = {0};
    if (proc_list_processes(&pids, NULL)) {
        enum { SHOWN_MAX = 8 };
        for (size_t i = 0; i < pids.ids.len && i < SHOWN_MAX; i++) {
            buf_printf(out, "%s%u", i == 0 ? "" : ", ", pids.ids.at[i]);
        }
        buf_text(out, pids.ids.len > SHOWN_MAX ? ", ..." : "");
    }
    vec_release(&pids.ids);
}

/* Of several, one that has ended meanwhile is no reason to leave the others alone. */
static void say_gone(struct rooms *r, const char *gone, bool others)
{
    struct buf visible;
    buf_init(&visible, 256);
    list_visible(&visible);
    log_say(&r->shared.log, others ? LOG_WARNING : LOG_ERROR,
            "no process %s in this PID namespace (visible: %s); %s", gone, buf_cstr(&visible),
            others ? "the others are profiled"
                   : "host pids mean nothing here. On Fargate set \"pidMode\": \"task\"");
    buf_release(&visible);
}

/* It uses no CPU time, and nothing else would say why. */
static void warn_if_stopped(struct rooms *r, uint32_t pid)
{
    struct buf text;
    struct proc_stat stat;
    buf_init(&text, 64 * 1024);
    if (proc_read(pid, 0, "stat", &text, NULL) && stat_parse(buf_slice(&text), &stat, NULL) && stat.state == 'T') {
        log_say(&r->shared.log, LOG_WARNING, "pid %u (%.*s) is stopped; it goes on with: kill -CONT %u", pid,
                (int)stat.comm.len, stat.comm.ptr, pid);
    }
    buf_release(&text);
}

static void adopt_children(struct rooms *r, struct buf *what)
{
    size_t named = r->follow.targets.all.len;
    follow_adopt_children(&r->follow);
    size_t below = r->follow.targets.all.len - named;
    if (below > 0) {
        buf_printf(what, " and %zu below", below);
    }
}

static bool adopt_pids(struct rooms *r, struct buf *what)
{
    const struct settings *settings = r->shared.settings;
    struct buf gone;
    bool any = false;
    buf_init(&gone, 16 * SETTINGS_PIDS_MAX);
    for (size_t i = 0; i < settings->scope.pid_count; i++) {
        uint32_t pid = (uint32_t)settings->scope.pids[i];
        if (!proc_exists(pid)) {
            buf_printf(&gone, "%s%u", gone.len == 0 ? "" : ", ", pid);
            continue;
        }
        follow_adopt(&r->follow, pid, true);
        const struct target *target = targets_find(&r->follow.targets, pid);
        buf_printf(what, "%s%u %s", any ? ", " : "pid ", pid, target != NULL ? target->name : "");
        any = true;
        warn_if_stopped(r, pid);
    }
    if (gone.len > 0) {
        say_gone(r, buf_cstr(&gone), any);
    }
    buf_release(&gone);
    if (any && settings->scope.children) {
        adopt_children(r, what);
    }
    return any;
}

static bool adopt_all(struct rooms *r, struct buf *what)
{
    uint64_t now_ns = clock_mono_ns();
    if (r->shared.perf_on) {
        find_first(r->find, now_ns);
    } else {
        r->follow.targets.any_on_proc = true;
        accounting_discover(polling_accounting(r->polling), now_ns);
    }
    if (r->follow.selection.conflict[0] != '\0') {
        log_say(&r->shared.log, LOG_ERROR, "%s", r->follow.selection.conflict);
        return false;
    }
    find_report_none(r->find);
    buf_text(what, "all processes");
    if (r->follow.selection.active) {
        buf_text(what, " with ");
        selection_describe_filters(&r->follow.selection, what);
    }
    return true;
}

int run_attach(const struct run_input *input)
{
    const struct settings *settings = input->settings;
    struct rooms r;
    struct buf what;
    proc_be_first_to_go();
    rooms_init(&r, input);
    own_cost_open(&r.shared.own);
    rooms_open_perf(&r);
    if (!rooms_make(&r) || !rooms_start(&r)) {
        return 1;
    }
    buf_init(&what, 1024);
    bool ok = settings->scope.mode == TARGET_ALL ? adopt_all(&r, &what) : adopt_pids(&r, &what);
    ok = ok && begin_uploads(&r);
    if (ok) {
        say_start(&r, buf_cstr(&what)); /* before what is found out about them */
    }
    catching_search(r.catching, clock_mono_ns());
    begin_window(&r);
    buf_release(&what);
    if (!ok) {
        (void)loop_release(&r, clock_mono_ns());
        return 1;
    }
    return loop_run(&r);
}
