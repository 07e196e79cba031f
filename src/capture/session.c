#include "capture/session.h"
#include "base/time.h"
#include "base/version.h"
#include "capture/accounts.h"
#include "capture/log.h"
#include "capture/publisher.h"
#include "capture/stacks.h"
#include "os/clock.h"
#include "os/console.h"
#include "os/perf.h"
#include "os/proc.h"
#include "sample/order.h"
#include "sample/record.h"
#include "target/stat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROUND_MS = 250,          /* between two drains when no ring asks for one */
    ROUND_IDLE_MS = 1000,    /* when the last one found nothing */
    SCAN_MS = 1000,          /* between two looks for new processes and ended followers */
    MANY_FOLLOWERS = 64,
    SCAN_MANY_MS = 5000,
    ORDER_MAX_BYTES = 8 << 20,
    MODE_TEXT_MAX = 160,
};

struct session {
    const struct settings *settings;
    struct log log;
    int signals;
    bool has_init;
    uint32_t command_pid;    /* 0: attached */
    bool command_seen_end;

    struct perf_access access;
    bool perf_on;
    struct perf perf;
    struct order order;
    struct images images;
    struct targets targets;
    struct stacks stacks;
    struct accounts accounts;
    struct publisher *publisher;
    struct profile *profile;

    uint64_t window_start_ns, window_start_wall_ns;
    uint64_t next_poll_ns, next_scan_ns, next_glance_ns;
    uint64_t lost_records;   /* of the window */
    uint64_t malformed, invisible, records;
    bool any_on_proc;        /* some target is on rung 4 */
    bool any_stack, any_cpu; /* over the whole run */
    bool finishing;
};

/* ---- records ---- */

static void on_sample(struct session *s, const struct record *record)
{
    if (record->pid == 0 || record->pid == UINT32_MAX) {
        s->invisible++; /* of another PID namespace, or reaped while it was sampled */
        return;
    }
    stacks_add(&s->stacks, s->profile, record);
    s->any_stack = true;
}

static void on_mmap(struct session *s, const struct record *record)
{
    struct target *target = targets_get(&s->targets, record->pid);
    if (target != NULL && record->as.mmap.executable) {
        targets_map(&s->targets, target,
                    &(struct mapped_file){record->as.mmap.start,
                                          record->as.mmap.start + record->as.mmap.bytes,
                                          record->as.mmap.file_offset, record->as.mmap.inode,
                                          record->as.mmap.major, record->as.mmap.minor,
                                          record->as.mmap.path});
    }
}

static enum rung perf_rung(const struct session *s)
{
    return s->access.kernel ? RUNG_PERF : RUNG_PERF_USER;
}

static void on_comm(struct session *s, const struct record *record)
{
    targets_comm(&s->targets, record->pid, record->tid, record->as.comm.name, record->as.comm.exec);
    struct target *target = targets_find(&s->targets, record->pid);
    if (target != NULL && target->rung == RUNG_UNKNOWN) {
        target->rung = (uint8_t)perf_rung(s);
    }
}

static void on_fork(struct session *s, const struct record *record)
{
    targets_fork(&s->targets, record->pid, record->tid, record->as.fork.parent_pid,
                 record->as.fork.parent_tid, record->time_ns);
    struct target *target = targets_find(&s->targets, record->pid);
    if (target != NULL) {
        target->rung = (uint8_t)perf_rung(s);
    }
}

static void on_record(void *context, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    if (!record_parse(ptr, len, perf_sample_type(), &record, NULL)) {
        return; /* was counted when it was pushed */
    }
    switch (record.kind) {
    case RECORD_SAMPLE:
        on_sample(s, &record);
        break;
    case RECORD_MMAP:
        on_mmap(s, &record);
        break;
    case RECORD_COMM:
        on_comm(s, &record);
        break;
    case RECORD_FORK:
        on_fork(s, &record);
        break;
    case RECORD_EXIT:
        targets_exit(&s->targets, record.pid, record.tid, record.time_ns);
        break;
    case RECORD_LOST:
        s->lost_records += record.as.lost.count;
        break;
    default:
        break;
    }
}

static void on_ring_record(void *context, unsigned ring, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    (void)ring;
    s->records++;
    if (!record_parse(ptr, len, perf_sample_type(), &record, NULL)) {
        s->malformed++;
        return;
    }
    if (!order_push(&s->order, record.time_ns, ptr, len)) {
        order_flush(&s->order, on_record, s);
        if (!order_push(&s->order, record.time_ns, ptr, len)) {
            s->lost_records++;
        }
    }
}

static void drain(struct session *s, bool all)
{
    if (!s->perf_on) {
        return;
    }
    perf_drain(&s->perf, on_ring_record, s);
    if (all) {
        order_flush(&s->order, on_record, s);
    } else {
        order_round(&s->order, on_record, s);
    }
}

/* ---- windows ---- */

static void mode_words(const struct session *s, char out[static MODE_TEXT_MAX])
{
    if (!s->perf_on) {
        snprintf(out, MODE_TEXT_MAX, "no perf: CPU time from /proc, no stacks");
        return;
    }
    static const char *const runs_as_fp[] = {
        [PERF_SMART] = " (smart runs as fp for now)",
        [PERF_DWARF] = " (dwarf runs as fp for now)",
        [PERF_FP] = "",
        [PERF_DISABLED] = "",
    };
    snprintf(out, MODE_TEXT_MAX, "perf, %s%s",
             s->access.kernel ? "user and kernel" : "user only, kernel time counted",
             runs_as_fp[s->settings->perf_mode]);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static uint32_t service_of(struct session *s)
{
    const struct settings *settings = s->settings;
    if (settings->service_name != NULL) {
        return profile_cstring(s->profile, settings->service_name);
    }
    if (settings->target == TARGET_COMMAND) {
        return profile_cstring(s->profile, base_name(settings->command[0]));
    }
    struct target *only =
        settings->pid_count == 1 ? targets_find(&s->targets, (uint32_t)settings->pids[0]) : NULL;
    return profile_cstring(s->profile, only != NULL ? only->name : "all processes");
}

static void fill_meta(struct session *s)
{
    struct profile_meta *meta = &s->profile->meta;
    char mode[MODE_TEXT_MAX], host[256];
    mode_words(s, mode);
    proc_host_name(host, sizeof host);
    meta->start_wall_ns = s->window_start_wall_ns;
    /* the length is monotonic: a wall clock that was set meanwhile must not stretch the window */
    meta->end_wall_ns = s->window_start_wall_ns + (clock_mono_ns() - s->window_start_ns);
    meta->frequency_hz = s->settings->frequency_hz;
    meta->period_ns = NS_PER_S / s->settings->frequency_hz;
    meta->service = service_of(s);
    meta->host = profile_cstring(s->profile, host);
    meta->mode = profile_cstring(s->profile, mode);
    meta->reason = profile_cstring(s->profile, s->access.why.text);
    meta->continuous = s->settings->continuous;
}

static void begin_window(struct session *s)
{
    s->window_start_ns = clock_mono_ns();
    s->window_start_wall_ns = clock_wall_ns();
    s->lost_records = 0;
}

static void end_window(struct session *s)
{
    drain(s, true);
    accounts_close(&s->accounts, s->profile, s->perf_on ? &s->perf : NULL, s->lost_records);
    s->any_cpu = s->any_cpu || s->profile->samples.len > 1;
    fill_meta(s);
    s->profile = publisher_submit(s->publisher, s->profile);
    targets_end_window(&s->targets);
    begin_window(s);
}

/* ---- following ---- */

static void say_on_proc(struct session *s, const struct err *why)
{
    if (s->access.why.kind == ERR_NONE) {
        s->access.why = *why;
    }
    log_once(&s->log, LOG_WARNING, "%s. CPU time per thread is counted from /proc, without stacks",
             why->text);
}

/* Takes a running process in, on the highest rung it allows. */
static void adopt(struct session *s, uint32_t pid)
{
    struct target *target = targets_get(&s->targets, pid);
    struct err err = {0};
    if (target == NULL) {
        return;
    }
    target->rung = RUNG_PROC;
    if (s->perf_on && perf_follow_process(&s->perf, pid, &err)) {
        target->rung = (uint8_t)perf_rung(s);
        perf_enable(&s->perf);
        (void)targets_read_maps(&s->targets, target);
        if (err.kind == ERR_LIMIT) {
            log_once(&s->log, LOG_WARNING, "%s; what these threads use is counted as lost", err.text);
        }
    } else if (s->perf_on && err.kind != ERR_GONE) {
        say_on_proc(s, &err);
    }
    (void)accounts_adopt(&s->accounts, target); /* notes its end, too */
    s->any_on_proc = s->any_on_proc || target->rung == RUNG_PROC;
}

/* Processes that are not followed yet: with a parent that is followed by perf they are covered by
 * inheritance, and only their record has not been read. */
static void scan_processes(struct session *s, bool all)
{
    struct pid_list pids = {0};
    struct buf text;
    buf_init(&text, 64 * 1024);
    bool found = proc_list_processes(&pids, NULL);
    for (bool again = found; again;) {
        again = false;
        vec_each(&pids.ids, pid)
        {
            struct proc_stat stat;
            if (*pid == proc_own_pid() || targets_find(&s->targets, *pid) != NULL ||
                !proc_read(*pid, 0, "stat", &text, NULL) ||
                !stat_parse(buf_slice(&text), &stat, NULL) || stat_is_kernel_thread(&stat) ||
                stat.state == 'Z') {
                continue;
            }
            struct target *parent = targets_find(&s->targets, stat.ppid);
            if (all ? parent == NULL || s->window_start_ns == 0 : parent != NULL) {
                adopt(s, *pid);
                again = !all; /* its children may stand earlier in the list */
            }
        }
    }
    vec_release(&pids.ids);
    buf_release(&text);
}

/* ---- the run ---- */

static void session_init(struct session *s, const struct settings *settings)
{
    *s = (struct session){.settings = settings};
    s->signals = signals_open();
}

static bool setup(struct session *s)
{
    const struct settings *settings = s->settings;
    struct err err = {0};
    log_open(&s->log, settings);
    images_init(&s->images);
    targets_init(&s->targets, &s->images, settings->container_names);
    order_init(&s->order, ORDER_MAX_BYTES);
    accounts_init(&s->accounts, &s->targets, NS_PER_S / settings->frequency_hz,
                  settings->target == TARGET_ALL);
    s->stacks = (struct stacks){.targets = &s->targets};
    /* two profiles, tables beside them, symbols: a quarter each leaves the rest for the rings */
    s->publisher = publisher_start(settings, &s->images, &s->log, settings->max_memory_bytes / 4,
                                   &err);
    if (s->publisher == NULL) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    s->profile = publisher_submit(s->publisher, NULL);
    return true;
}

/* Opens perf as far as it is allowed. What is refused is a sentence, never the end of the run. */
static void open_perf(struct session *s)
{
    if (s->settings->perf_mode == PERF_DISABLED) {
        err_set(&s->access.why, ERR_USAGE, 0, "perf events are off (--perf-mode disabled)");
        return;
    }
    perf_probe(&s->access);
    struct err err = {0};
    s->perf_on = s->access.user &&
                 perf_open(&s->perf, s->settings->frequency_hz, s->access.kernel, &err);
    if (err.kind != ERR_NONE) {
        s->access.why = err;
    }
}

static void say_start(struct session *s, const char *what)
{
    char mode[MODE_TEXT_MAX];
    const struct settings *settings = s->settings;
    mode_words(s, mode);
    struct log_field fields[] = {
        {"version", STR(PILLION_VERSION)}, {"target", str_of(what)}, {"mode", str_of(mode)}};
    if (s->log.terminal) {
        log_event(&s->log, LOG_INFO, "start", fields, 3, "profiling %s at %u Hz, %s", what,
                  settings->frequency_hz, mode);
    } else {
        log_event(&s->log, LOG_INFO, "start", fields, 3,
                  "pillion " PILLION_VERSION ": pid %u profiles %s at %u Hz, %s, to %s every %g s",
                  proc_own_pid(), what, settings->frequency_hz, mode,
                  settings->output_dir != NULL ? settings->output_dir : ".",
                  (double)settings->window_ns / (double)NS_PER_S);
    }
    if (!s->perf_on) {
        say_on_proc(s, &s->access.why);
    }
}

static void say_state(struct session *s)
{
    log_say(&s->log, LOG_INFO,
            "state: %zu processes, %zu threads, %zu images (%llu not open), %llu samples, "
            "%llu records lost, %llu damaged, %llu of unseen processes, %zu MB resident",
            s->targets.all.len, s->targets.threads.len, s->images.files.len,
            (unsigned long long)s->images.unopened, (unsigned long long)s->stacks.samples,
            (unsigned long long)s->lost_records, (unsigned long long)s->malformed,
            (unsigned long long)s->invisible, (size_t)(proc_own_rss_bytes() >> 20));
}

static void serve_signals(struct session *s)
{
    for (int sig; (sig = signals_next(s->signals)) != 0;) {
        if (sig == SIGTERM || sig == SIGINT) {
            s->finishing = true;
        } else if (sig == SIGHUP) {
            log_reopen(&s->log);
        } else if (sig == SIGUSR1) {
            end_window(s);
        } else if (sig == SIGUSR2) {
            say_state(s);
        }
    }
}

/* The kernel takes events away from a program that may not be read (a set-uid file): it goes on
 * without stacks. */
static void keep_unfollowed(struct session *s)
{
    vec_each(&s->targets.all, slot)
    {
        struct target *target = *slot;
        if (target->rung != RUNG_PROC && !target->ended && accounts_adopt(&s->accounts, target) &&
            !target->ended) {
            struct err why;
            target->rung = RUNG_PROC;
            s->any_on_proc = true;
            err_set(&why, ERR_DENIED, 0,
                    "pid %u (%s) took the right to be sampled away when it started: a set-uid or "
                    "unreadable program",
                    target->pid, target->name);
            say_on_proc(s, &why);
        }
    }
}

static void look_around(struct session *s, uint64_t now_ns)
{
    if (s->any_on_proc && now_ns >= s->next_poll_ns) {
        s->next_poll_ns = now_ns + ACCOUNTS_POLL_MS * NS_PER_MS;
        accounts_discover(&s->accounts, now_ns);
        accounts_poll(&s->accounts, s->profile);
    }
    bool single = s->perf_on && s->perf.followers.len <= 1;
    if (now_ns < s->next_scan_ns && !single) {
        return;
    }
    bool many = s->perf_on && s->perf.followers.len > MANY_FOLLOWERS;
    s->next_scan_ns = now_ns + (many ? SCAN_MANY_MS : SCAN_MS) * NS_PER_MS;
    if (s->settings->target == TARGET_ALL && s->perf_on) {
        scan_processes(s, true);
    }
    if (s->perf_on && perf_reap(&s->perf) == 0 && s->settings->target != TARGET_ALL) {
        drain(s, true);
        keep_unfollowed(s);
    }
}

static bool targets_are_gone(struct session *s)
{
    if (s->settings->target == TARGET_ALL || (s->perf_on && s->perf.followers.len > 0)) {
        return false;
    }
    return !s->any_on_proc || !accounts_any_alive(&s->accounts);
}

/* The command has ended but something it started goes on: whoever reads our standard error to its
 * end waits for the command, not for us. */
static void let_go_of_pipe(struct session *s)
{
    struct target *command = targets_find(&s->targets, s->command_pid);
    if (s->command_pid == 0 || s->has_init || s->command_seen_end || s->log.owned ||
        (command != NULL && !command->ended)) {
        return;
    }
    s->command_seen_end = true;
    if (console_is_pipe(s->log.fd) && !targets_are_gone(s)) {
        end_window(s);
        publisher_wait(s->publisher);
        console_close(s->log.fd);
        s->log.fd = -1;
    }
}

static uint64_t round_ns(const struct session *s, bool idle)
{
    if (s->any_on_proc) {
        return ACCOUNTS_POLL_MS * NS_PER_MS;
    }
    return (idle ? ROUND_IDLE_MS : ROUND_MS) * NS_PER_MS;
}

static void wait_round(struct session *s, uint64_t wait_ns)
{
    if (!s->perf_on) {
        signals_wait(s->signals, wait_ns);
        return;
    }
    bool ended = perf_wait(&s->perf, s->signals, wait_ns);
    uint64_t now_ns = clock_mono_ns();
    if (ended || now_ns >= s->next_glance_ns) {
        /* at the command's end its books can be read for a moment, until its parent has waited */
        accounts_glance(&s->accounts, now_ns);
        s->next_glance_ns = now_ns + ROUND_MS * NS_PER_MS;
    }
}

static void run_windows(struct session *s)
{
    bool idle = false;
    while (!s->finishing) {
        uint64_t now_ns = clock_mono_ns();
        uint64_t end_ns = s->window_start_ns + s->settings->window_ns;
        uint64_t wait_ns = round_ns(s, idle);
        wait_ns = end_ns <= now_ns ? 0 : end_ns - now_ns < wait_ns ? end_ns - now_ns : wait_ns;
        wait_round(s, wait_ns);
        uint64_t before = s->records;
        drain(s, false);
        idle = s->records == before;
        now_ns = clock_mono_ns();
        look_around(s, now_ns);
        serve_signals(s);
        let_go_of_pipe(s);
        if (targets_are_gone(s)) {
            break;
        }
        if (now_ns >= end_ns && publisher_ready(s->publisher)) {
            if (!s->settings->continuous) {
                break;
            }
            end_window(s);
        }
    }
}

static unsigned release(struct session *s)
{
    unsigned failed = publisher_stop(s->publisher);
    if (s->perf_on) {
        perf_close(&s->perf);
    }
    order_release(&s->order);
    accounts_release(&s->accounts);
    targets_release(&s->targets);
    images_release(&s->images);
    log_close(&s->log);
    return failed;
}

static int finish(struct session *s)
{
    end_window(s);
    if (s->finishing) {
        signals_default(); /* a second TERM ends at once; init's first must not */
    }
    unsigned failed = release(s);
    bool refused = s->access.why.kind != ERR_NONE;
    return failed > 0 || (refused && s->any_cpu && !s->any_stack);
}

static int abandon(struct session *s)
{
    (void)release(s);
    return 1;
}

static int run(struct session *s, const char *what)
{
    say_start(s, what);
    run_windows(s);
    return finish(s);
}

/* Arms sampling for the command's exec, or takes it and its children in when it runs already. */
static void follow_command(struct session *s, const struct launch_target *target)
{
    struct err err = {0};
    if (target->fresh && s->perf_on && !perf_follow(&s->perf, target->pid, true, &err)) {
        perf_close(&s->perf);
        s->perf_on = false;
        s->access.why = err;
    }
}

static void adopt_command(struct session *s, const struct launch_target *target)
{
    if (!target->fresh) {
        adopt(s, target->pid);
        scan_processes(s, false);
        return;
    }
    struct target *command = targets_get(&s->targets, target->pid);
    if (command != NULL) {
        command->rung = (uint8_t)(s->perf_on ? perf_rung(s) : RUNG_PROC);
        s->any_on_proc = !s->perf_on;
        command->alive = 1;
        (void)accounts_adopt(&s->accounts, command);
    }
}

int session_command(const struct settings *settings, struct launch_target *target)
{
    static const char format[] = "%s (pid %u) and its children";
    struct session s;
    session_init(&s, settings);
    s.has_init = target->has_init;
    s.command_pid = target->pid;
    /* the command waits: nothing but what arms sampling comes before launch_ready */
    open_perf(&s);
    follow_command(&s, target);
    if (!setup(&s)) {
        (void)launch_ready(target);
        return 1;
    }
    adopt_command(&s, target);
    begin_window(&s);
    if (!launch_ready(target)) {
        (void)release(&s);
        return 0;
    }
    if (target->late) { /* its exec came before the events that waited for it */
        target->fresh = false;
        adopt_command(&s, target);
    }
    char what[ERR_TEXT_MAX];
    snprintf(what, sizeof what, format, settings->command[0], target->pid);
    return run(&s, what);
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
        buf_text(out, pids.ids.len > SHOWN_MAX ? ", …" : "");
    }
    vec_release(&pids.ids);
}

static bool adopt_pids(struct session *s, struct buf *what)
{
    const struct settings *settings = s->settings;
    for (size_t i = 0; i < settings->pid_count; i++) {
        uint32_t pid = (uint32_t)settings->pids[i];
        if (!proc_exists(pid)) {
            struct buf visible;
            buf_init(&visible, 256);
            list_visible(&visible);
            log_say(&s->log, LOG_ERROR,
                    "no process %u in this PID namespace (visible: %s); host pids mean nothing "
                    "here. On Fargate set \"pidMode\": \"task\"",
                    pid, buf_cstr(&visible));
            buf_release(&visible);
            return false;
        }
        adopt(s, pid);
        const struct target *target = targets_find(&s->targets, pid);
        buf_printf(what, "%s%u %s", i == 0 ? "pid " : ", ", pid,
                   target != NULL ? target->name : "");
    }
    return true;
}

int session_attach(const struct settings *settings)
{
    struct session s;
    struct buf what;
    session_init(&s, settings);
    open_perf(&s);
    if (!setup(&s)) {
        return 1;
    }
    buf_init(&what, 1024);
    bool ok = true;
    if (settings->target == TARGET_ALL) {
        scan_processes(&s, true);
        buf_text(&what, "all processes");
    } else {
        ok = adopt_pids(&s, &what);
    }
    begin_window(&s);
    int status = ok ? run(&s, buf_cstr(&what)) : abandon(&s);
    buf_release(&what);
    return status;
}
