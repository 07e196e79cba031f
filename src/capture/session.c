#include "capture/session.h"
#include "base/time.h"
#include "base/version.h"
#include "capture/accounts.h"
#include "capture/dumps.h"
#include "capture/log.h"
#include "capture/publisher.h"
#include "capture/recording.h"
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
    ROUND_STACKS_MS = 100,   /* with small copies of stacks: the rest is read while it is there */
    ROUND_IDLE_MS = 1000,    /* when the last one found nothing */
    SCAN_MS = 1000,          /* between two looks for new processes and ended followers */
    MANY_FOLLOWERS = 64,
    SCAN_MANY_MS = 5000,
    ORDER_MAX_BYTES = 8 << 20,
    ADAPT_MS = 1000,
    MODE_TEXT_MAX = 160,
    STACK_SMALL_BYTES = 8 * 1024,
    STACK_LARGE_BYTES = 32 * 1024,
    STACK_LEAST_BYTES = 512,
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
    struct record_format format; /* of its records */
    struct order order;
    struct world world;
    struct recorder *recorder; /* null: the run is not recorded */
    struct images images;
    struct targets targets;
    struct unwinder unwinder;
    struct stacks stacks;
    struct accounts accounts;
    struct publisher *publisher;
    struct profile *profile;

    uint64_t window_start_ns, window_start_wall_ns;
    uint64_t next_poll_ns, next_scan_ns, next_glance_ns, next_adapt_ns;
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

static enum rung perf_rung(const struct session *s)
{
    return s->access.kernel ? RUNG_PERF : RUNG_PERF_USER;
}

/* What a followed process starts, or becomes, is followed as it was. */
static void on_task(struct session *s, const struct record *record)
{
    targets_take(&s->targets, record);
    struct target *target = targets_find(&s->targets, record->pid);
    if (target != NULL && (record->kind == RECORD_FORK || target->rung == RUNG_UNKNOWN)) {
        target->rung = (uint8_t)perf_rung(s);
    }
}

static void on_record(void *context, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    if (!record_parse(ptr, len, &s->format, &record, NULL)) {
        return; /* was counted when it was pushed */
    }
    switch (record.kind) {
    case RECORD_SAMPLE:
        on_sample(s, &record);
        break;
    case RECORD_COMM:
    case RECORD_FORK:
        on_task(s, &record);
        break;
    case RECORD_LOST:
        s->lost_records += record.as.lost.count;
        break;
    default:
        targets_take(&s->targets, &record);
        break;
    }
}

static void on_ring_record(void *context, unsigned ring, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    (void)ring;
    s->records++;
    if (!record_parse(ptr, len, &s->format, &record, NULL)) {
        s->malformed++;
        return;
    }
    size_t kept = record_trimmed_bytes(&record, len);
    void *room = order_room(&s->order, record.time_ns, kept);
    if (room == NULL) {
        order_flush(&s->order, on_record, s);
        room = order_room(&s->order, record.time_ns, kept);
    }
    if (room == NULL) {
        s->lost_records++;
    } else {
        record_trim(ptr, len, &record, room);
        if (s->recorder != NULL) {
            recorder_ring(s->recorder, room, kept);
        }
    }
}

static void drain(struct session *s, bool all)
{
    if (!s->perf_on) {
        return;
    }
    perf_drain(&s->perf, on_ring_record, s);
    if (s->recorder != NULL) {
        recorder_round(s->recorder, all);
    }
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
    static const char *const stacks_by[] = {
        [PERF_SMART] = "",
        [PERF_DWARF] = ", unwind tables only",
        [PERF_FP] = ", frame pointers only",
        [PERF_DISABLED] = "",
    };
    snprintf(out, MODE_TEXT_MAX, "perf, %s%s",
             s->access.kernel ? "user and kernel" : "user only, kernel time counted",
             stacks_by[s->settings->perf_mode]);
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
    stacks_end_window(&s->stacks, s->profile);
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
    if (s->perf_on && perf_follow_process(&s->perf, pid, s->perf.sampling.stack_bytes, &err)) {
        target->rung = (uint8_t)perf_rung(s);
        perf_enable(&s->perf);
        (void)targets_read_maps(&s->targets, target);
        if (s->recorder != NULL) {
            recorder_target(s->recorder, pid, true);
        }
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

/* Whatever samples carry is what stacks are made of. */
static bool prepare_stacks(struct session *s, struct err *err)
{
    bool unwinds = s->perf_on && s->perf.sampling.stack_bytes > 0;
    enum unwind_method method =
        s->settings->perf_mode == PERF_DWARF ? UNWIND_CFI_ONLY : UNWIND_HYBRID;
    if (unwinds && !unwinder_init(&s->unwinder, method, err)) {
        return false;
    }
    return stacks_init(&s->stacks, &s->targets, unwinds ? &s->unwinder : NULL,
                       s->perf.sampling.registers) ||
           err_set(err, ERR_MEMORY, 0, "no memory to unwind stacks");
}

static bool begin_recording(struct session *s, struct err *err)
{
    const struct recording_format format = {
        .frequency_hz = s->settings->frequency_hz,
        .sample_type = s->format.sample_type,
        .registers = s->format.registers,
        .cfi_only = s->settings->perf_mode == PERF_DWARF,
    };
    if (!s->perf_on) {
        return err_set(err, ERR_USAGE, 0, "without perf events there is nothing to record: %s",
                       s->access.why.text);
    }
    s->recorder = recorder_open(s->settings->recording, &s->world, &format, err);
    return s->recorder != NULL;
}

static bool setup(struct session *s)
{
    const struct settings *settings = s->settings;
    struct err err = {0};
    log_open(&s->log, settings);
    s->world = world_here();
    if (settings->recording != NULL && !begin_recording(s, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    images_init(&s->images, s->recorder != NULL ? recorder_world(s->recorder) : &s->world);
    targets_init(&s->targets, &s->images, settings->container_names);
    s->targets.stack_bytes = s->perf_on ? s->perf.sampling.stack_bytes : 0;
    order_init(&s->order, ORDER_MAX_BYTES);
    accounts_init(&s->accounts, &s->targets, NS_PER_S / settings->frequency_hz,
                  settings->target == TARGET_ALL);
    /* two profiles, tables beside them, symbols: a quarter each leaves the rest for the rings */
    s->publisher = publisher_start(settings, &s->images, &s->log, settings->max_memory_bytes / 4,
                                   &err);
    if (s->publisher == NULL) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    s->profile = publisher_submit(s->publisher, NULL);
    if (!prepare_stacks(s, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    return true;
}

/* What is copied of a stack per sample, to begin with: as much as lets a ring hold a third of a second
 * of samples, because the kernel copies what there is, not what was asked for, and a stack read later
 * from memory may have changed. */
static uint32_t first_stack_bytes(const struct settings *settings, uint64_t ring_bytes)
{
    uint64_t wanted = settings->stack_bytes;
    if (wanted == 0) {
        wanted = ring_bytes * 3 / settings->frequency_hz;
        wanted = wanted > STACK_SMALL_BYTES ? wanted : STACK_SMALL_BYTES;
        wanted = wanted < ring_bytes / 8 ? wanted : ring_bytes / 8;
    }
    wanted = wanted < PERF_STACK_MAX ? wanted : PERF_STACK_MAX;
    return wanted < STACK_LEAST_BYTES ? STACK_LEAST_BYTES : (uint32_t)wanted & ~7u;
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
    bool chains = s->settings->perf_mode == PERF_FP;
    const struct perf_sampling sampling = {
        .frequency_hz = s->settings->frequency_hz,
        .kernel = s->access.kernel,
        .stack_bytes = chains ? 0 : STACK_SMALL_BYTES,
        .registers = chains ? 0 : unwind_perf_mask(),
    };
    s->perf_on = s->access.user && perf_open(&s->perf, &sampling, &err);
    if (s->perf_on && !chains) {
        s->perf.sampling.stack_bytes = first_stack_bytes(s->settings, perf_ring_bytes(&s->perf));
    }
    s->format = (struct record_format){perf_sample_type(&s->perf), sampling.registers};
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

static void adapt_dumps(struct session *s, uint64_t now_ns)
{
    if (!s->perf_on || s->perf.sampling.stack_bytes == 0 || now_ns < s->next_adapt_ns) {
        return;
    }
    s->next_adapt_ns = now_ns + ADAPT_MS * NS_PER_MS;
    uint32_t pid = dumps_adapt(&s->perf, &s->targets);
    const struct target *target = pid == 0 ? NULL : targets_find(&s->targets, pid);
    if (target != NULL) {
        log_say(&s->log, LOG_DEBUG, "pid %u (%s): samples copy %u KiB of the stack from now on", pid,
                target->name, target->stack_bytes / 1024);
    }
}

static void look_around(struct session *s, uint64_t now_ns)
{
    adapt_dumps(s, now_ns);
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
    bool small = s->perf_on && s->perf.sampling.stack_bytes < STACK_LARGE_BYTES;
    uint64_t busy_ms = s->stacks.unwinder != NULL && small ? ROUND_STACKS_MS : ROUND_MS;
    return (idle ? ROUND_IDLE_MS : busy_ms) * NS_PER_MS;
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
        if (!idle) {
            drain(s, false); /* all rings once more: what came before is now safe to hand out */
        }
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
    stacks_release(&s->stacks);
    unwinder_release(&s->unwinder);
    accounts_release(&s->accounts);
    targets_release(&s->targets);
    images_release(&s->images);
    struct err err;
    if (s->recorder != NULL && !recorder_close(s->recorder, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        failed++;
    }
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
