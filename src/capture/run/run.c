#include "capture/run/run.h"
#include "base/time.h"
#include "base/version.h"
#include "capture/follow/stack_copy.h"
#include "capture/run/pace.h"
#include "capture/run/run_private.h"
#include "os/clock.h"
#include "os/console.h"
#include "os/proc.h"
#include "os/secret.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ROUND_MS = 250,          /* between two drains when no ring asks for one */
    ROUND_STACKS_MS = 100,   /* with small copies of stacks: the rest is read while it is there */
    ROUND_IDLE_MS = 1000,    /* when the last one found nothing */
    CHURN_LEAST = 100,       /* tasks per second that make waiting for rings dear, … */
    ASIDE_LEAST_MS = 20,     /* … if not waiting for them spares enough … */
    ASIDE_MOST_MS = 100,     /* … and the end is seen soon enough */
    SCAN_MS = 1000,          /* between two looks for new processes and ended followers */
    MANY_FOLLOWERS = 64,
    SCAN_MANY_MS = 5000,
    ROUND_EAGER_MS = 25,     /* in the first second of a command */
    EAGER_MS = 1000,
    CALM_MS = 15000,         /* without a new process: what one used since the last poll goes with it */
    POLL_CALM_MS = 250,      /* between two polls when interpreters' stacks tell of all CPU time */
    ADAPT_MS = 1000,
    MODE_TEXT_MAX = 160,
    DESTINATION_MAX = 4096,
    STACK_LARGE_BYTES = 32 * 1024,
};

/* ---- windows ---- */

static void mode_words(const struct session *s, char out[static MODE_TEXT_MAX])
{
    if (!s->perf_on) {
        snprintf(out, MODE_TEXT_MAX, "no perf: %s",
                 s->reads_runtimes ? "interpreters' stacks, all other CPU time from /proc"
                                   : "CPU time from /proc, no stacks");
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

/* Why the window lacks stacks; what was not said before is said now. */
static uint32_t reason_of(struct session *s)
{
    struct buf reason;
    struct profile_totals sum = profile_sum(s->profile);
    buf_init(&reason, UNSEEN_COUNT * ERR_TEXT_MAX);
    s->windows++;
    s->cpu_ns += sum.cpu_ns;
    s->unseen_ns += sum.leaf_ns[FRAME_ACCOUNT];
    unseen_note(&s->unseen, UNSEEN_PERF, s->access.why.text);
    if (s->lost_records > 0) {
        unseen_note(&s->unseen, UNSEEN_RECORDS,
                    "the rings were full, and records were lost; lower -f, or give pillion a larger CPU "
                    "weight");
    }
    const char *news = unseen_describe(&s->unseen, &sum, &reason);
    if (news != NULL && sum.leaf_ns[FRAME_ACCOUNT] < sum.cpu_ns) { /* an empty window is told as such */
        log_once_for(&s->log, LOG_WARNING, news, "%.0f %% of the CPU time has no stack: %s",
                     100.0 * (double)sum.leaf_ns[FRAME_ACCOUNT] / (double)sum.cpu_ns, buf_cstr(&reason));
    }
    uint32_t text = profile_string(s->profile, buf_slice(&reason));
    buf_release(&reason);
    unseen_end_window(&s->unseen, clock_mono_ns() - s->window_start_ns);
    return text;
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
    meta->reason = reason_of(s);
    meta->continuous = s->settings->continuous;
    meta->unfollowed = session_count_unfollowed(s);
}

static void begin_window(struct session *s)
{
    s->window_start_ns = clock_mono_ns();
    s->window_start_wall_ns = clock_wall_ns();
    s->lost_records = 0;
    session_begin_extra(s);
}

static void end_window(struct session *s)
{
    session_count_extra(s);
    session_drain(s);
    stacks_end_window(&s->stacks, s->profile);
    session_say_trouble(s);
    s->lost_records += session_lost_by_catchers(s);
    if (s->reads_runtimes) {
        readers_end_window(&s->readers, s->profile);
        session_publish_readers(s);
    }
    session_close_choice(s);
    session_end_extra(s);
    accounting_close_window(&s->accounting, s->profile, s->perf_on ? &s->perf : NULL, s->lost_records);
    s->any_cpu = s->any_cpu || s->profile->samples.len > 1;
    (void)profile_need(s->profile, true);
    fill_meta(s);
    session_close_budget(s);
    s->profile = publisher_submit(s->publisher, s->profile);
    targets_end_window(&s->targets);
    session_begin_choice(s);
    begin_window(s);
}

/* ---- following ---- */

static void say_on_proc(struct session *s, const struct err *why, const char *cause)
{
    if (s->access.why.kind == ERR_NONE) {
        s->access.why = *why;
    }
    log_once_for(&s->log, LOG_WARNING, cause,
                 "%s. Only interpreters' stacks are read; other CPU time is counted from /proc",
                 why->text);
}

void session_adopt(struct session *s, uint32_t pid, bool named)
{
    struct target *target = targets_begin(&s->targets, pid);
    struct err err = {0};
    if (target == NULL) {
        return;
    }
    target->capture_mode = CAPTURE_PROC;
    target->named = named;
    const struct perf_how how = {.stack_bytes = s->perf.sampling.stack_bytes};
    if (s->perf_on && perf_follow_process(&s->perf, pid, &how, &err)) {
        target->capture_mode = (uint8_t)session_perf_mode(s);
        perf_enable(&s->perf);
        (void)targets_read_maps(&s->targets, target);
        if (s->recorder != NULL) {
            recorder_target(s->recorder, pid, true);
        }
        if (err.kind == ERR_LIMIT) {
            log_once(&s->log, LOG_WARNING, "%s. What they use is counted as lost", err.text);
            unseen_note(&s->unseen, UNSEEN_THREADS, err.text);
            unsampled_add(&s->unsampled, pid, perf_unsampled(&s->perf));
        }
    } else if (s->perf_on && err.kind == ERR_LIMIT) {
        session_leave_unfollowed(s, target);
    } else if (s->perf_on && err.kind != ERR_GONE) {
        say_on_proc(s, &err, err.text);
    }
    (void)accounting_adopt(&s->accounting, target); /* notes its end, too */
    selection_evaluate(&s->selection, target, clock_mono_ns());
    s->any_on_proc = s->any_on_proc || target->capture_mode == CAPTURE_PROC;
}

/* ---- the run ---- */

static void session_init(struct session *s, const struct settings *settings)
{
    if (settings->upload.wanted) { /* there may be a secret in our arguments */
        secret_leave_no_core();
    }
    *s = (struct session){.settings = settings, .slice_seed = clock_mono_ns() | 1};
    s->signals = signals_open();
}

static void say_start(struct session *s, const char *what)
{
    char mode[MODE_TEXT_MAX], destination[DESTINATION_MAX];
    const struct settings *settings = s->settings;
    mode_words(s, mode);
    session_destination(s, destination, sizeof destination);
    struct log_field fields[] = {
        {"version", STR(PILLION_VERSION)}, {"target", str_of(what)}, {"mode", str_of(mode)}};
    if (s->log.terminal) {
        char length[48] = "";
        if (!settings->continuous) {
            snprintf(length, sizeof length, " for %g s", (double)settings->window_ns / (double)NS_PER_S);
        }
        log_event(&s->log, LOG_INFO, "start", fields, 3, "profiling %s at %u Hz%s, %s", what,
                  settings->frequency_hz, length, mode);
    } else {
        log_event(&s->log, LOG_INFO, "start", fields, 3,
                  "pillion " PILLION_VERSION ": pid %u profiles %s at %u Hz, %s, to %s %s %g s",
                  proc_own_pid(), what, settings->frequency_hz, mode, destination,
                  settings->continuous ? "every" : "for",
                  (double)settings->window_ns / (double)NS_PER_S);
    }
    struct err why;
    if (!s->perf_on) {
        say_on_proc(s, &s->access.why, s->access.why.text);
    } else if (perf_rings_are_short(&s->perf, &why)) {
        log_say(&s->log, LOG_WARNING, "%s", why.text);
    }
    session_log_extra(s);
}

static void say_state(struct session *s)
{
    log_say(&s->log, LOG_INFO,
            "state: %zu processes, %zu threads, %zu images (%llu not open), %llu samples, "
            "%llu records lost, %llu damaged, %llu of unseen processes, %llu rounds, "
            "%zu MB resident",
            s->targets.all.len, s->targets.threads.len, s->images.count,
            (unsigned long long)s->images.unopened, (unsigned long long)s->stacks.samples,
            (unsigned long long)s->lost_records, (unsigned long long)s->malformed,
            (unsigned long long)s->invisible, (unsigned long long)s->rounds,
            (size_t)(proc_own_rss_bytes() >> 20));
}

static void serve_signals(struct session *s)
{
    for (int sig; (sig = signals_next(s->signals)) != 0;) {
        if (sig == SIGTERM || sig == SIGINT) {
            s->finishing = true;
        } else if (sig == SIGHUP) {
            log_reopen(&s->log);
            if (s->uploader != NULL) {
                uploader_refresh(s->uploader);
            }
        } else if (sig == SIGUSR1) {
            end_window(s);
        } else if (sig == SIGUSR2) {
            say_state(s);
        }
    }
}

void session_say_unreadable(struct session *s, const struct target *target)
{
    struct err why;
    err_set(&why, ERR_DENIED, 0,
            "pid %u (%s) took the right to be sampled away when it started: a set-uid or "
            "unreadable program",
            target->pid, target->name);
    say_on_proc(s, &why, "took the right");
}

/* The kernel takes events away from a program that may not be read (a set-uid file): it goes on
 * without stacks. */
static void keep_unfollowed(struct session *s)
{
    vec_each(&s->targets.all, slot)
    {
        struct target *target = *slot;
        if (target->capture_mode != CAPTURE_PROC && !target->ended && accounting_is_running(&s->accounting, target) &&
            accounting_adopt(&s->accounting, target) && !target->ended) {
            target->capture_mode = CAPTURE_PROC;
            s->any_on_proc = true;
            session_say_unreadable(s, target);
        }
    }
}

static void adapt_dumps(struct session *s, uint64_t now_ns)
{
    if (!s->perf_on || s->perf.sampling.stack_bytes == 0 || s->is_coarse ||
        now_ns < s->next_adapt_ns) {
        return;
    }
    s->next_adapt_ns = now_ns + ADAPT_MS * NS_PER_MS;
    uint32_t pid = stack_copy_adapt(&s->perf, &s->targets);
    const struct target *target = pid == 0 ? NULL : targets_find(&s->targets, pid);
    if (target != NULL) {
        session_follow_newborn(s);
        log_say(&s->log, LOG_DEBUG, "pid %u (%s): samples copy %u KiB of the stack from now on", pid,
                target->name, target->copy.bytes / 1024);
    }
}

/* What is only polled gets its CPU time by polling, so that is done often; also while processes come. */
static uint64_t poll_pause_ns(struct session *s, uint64_t now_ns)
{
    bool any_polled = false;
    vec_each(&s->targets.all, target)
    {
        any_polled = any_polled || ((*target)->capture_mode == CAPTURE_PROC && !(*target)->ended);
    }
    if (s->targets.all.len != s->polled_targets) {
        s->polled_targets = s->targets.all.len;
        s->news_ns = now_ns;
    }
    bool calm = !any_polled && now_ns - s->news_ns > CALM_MS * NS_PER_MS;
    return (calm ? (uint64_t)POLL_CALM_MS : (uint64_t)ACCOUNTING_POLL_MS) * NS_PER_MS;
}

static void look_around(struct session *s, uint64_t now_ns)
{
    session_find_processes(s, now_ns);
    if (s->any_on_proc && now_ns >= s->next_poll_ns) {
        s->poll_pause_ns = poll_pause_ns(s, now_ns);
        s->next_poll_ns = now_ns + s->poll_pause_ns;
        if (now_ns >= s->next_discover_ns) { /* a list of /proc is dear where many processes begin */
            accounting_discover(&s->accounting, now_ns);
            s->next_discover_ns =
                now_ns + session_slower_round_ns(s, ACCOUNTING_POLL_MS * NS_PER_MS, SCAN_MS * NS_PER_MS) -
                ACCOUNTING_POLL_MS * NS_PER_MS;
        }
        accounting_poll(&s->accounting, s->profile);
    }
    if (session_is_suspended(s) && now_ns < s->next_scan_ns && !s->end_told) {
        return;
    }
    session_look_for_runtimes(s, now_ns); /* of what was discovered, too */
    if (s->watches_waits && waits_due(&s->waits, now_ns)) {
        waits_look(&s->waits, s->profile, now_ns);
    }
    session_look_off_cpu(s, now_ns);
    session_catch_deep_stacks(s);
    adapt_dumps(s, now_ns);
    session_look_at_unfollowed(s, now_ns);
    session_look_at_cpus(s, now_ns);
    session_end_doubles(s);
    bool single = s->perf_on && (s->perf.followers.len <= 1 || s->end_told);
    bool due = now_ns >= s->next_scan_ns;
    if (!due && !single) {
        return;
    }
    bool many = s->perf_on && s->perf.followers.len > MANY_FOLLOWERS;
    s->next_scan_ns = due ? now_ns + (many ? SCAN_MANY_MS : SCAN_MS) * NS_PER_MS : s->next_scan_ns;
    if (s->perf_on && perf_reap(&s->perf) == 0 && s->settings->target != TARGET_ALL) {
        session_drain(s);
        keep_unfollowed(s);
    }
}

static bool targets_are_gone(struct session *s)
{
    if (s->settings->target == TARGET_ALL || (s->perf_on && s->perf.followers.len > 0)) {
        return false;
    }
    return !s->any_on_proc || !accounting_any_alive(&s->accounting);
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
        return s->poll_pause_ns > 0 ? s->poll_pause_ns : ACCOUNTING_POLL_MS * NS_PER_MS;
    }
    if (s->reads_runtimes && s->command_pid != 0 &&
        clock_mono_ns() < s->first_ns + EAGER_MS * NS_PER_MS) {
        return ROUND_EAGER_MS * NS_PER_MS; /* its interpreter is to be found as soon as it is there */
    }
    if (s->watches_waits || s->watches_off_cpu) {
        return WAITS_MS * NS_PER_MS;
    }
    if (s->catch != NULL) {
        return (idle ? ROUND_MS : ROUND_CAUGHT_MS) * NS_PER_MS;
    }
    bool small = s->perf_on && s->perf.sampling.stack_bytes < STACK_LARGE_BYTES;
    uint64_t busy_ms = s->stacks.unwinder != NULL && small ? ROUND_STACKS_MS : ROUND_MS;
    uint64_t idle_ms = s->settings->target == TARGET_ALL ? SESSION_FIND_MS : ROUND_IDLE_MS;
    return (idle ? idle_ms : busy_ms) * NS_PER_MS;
}

/* Without perf a process that ends takes what it used since it was asked last with it. */
static uint64_t slowest_round_ns(const struct session *s)
{
    return (s->any_on_proc ? 2 * ACCOUNTING_POLL_MS : ROUND_IDLE_MS) * NS_PER_MS;
}

/* How long nobody need look at the rings: a quarter of what fills one with the largest records of now. */
static uint64_t unattended_ns(const struct session *s)
{
    enum { RECORD_REST_BYTES = 2048 };
    uint64_t stack = s->perf.sampling.stack_bytes, hz = s->perf.sampling.frequency_hz;
    vec_each(&s->targets.all, target)
    {
        stack = (*target)->copy.bytes > stack ? (*target)->copy.bytes : stack;
    }
    return perf_ring_bytes(&s->perf) / 4 * NS_PER_S / ((stack + RECORD_REST_BYTES) * (hz > 0 ? hz : 1));
}

/* Where hundreds of tasks per second end, each would wake us. */
static bool waits_aside(struct session *s, uint64_t *wait_ns)
{
    uint64_t now_ns = clock_mono_ns();
    if (now_ns >= s->next_churn_ns) {
        s->churns = s->tasks_born >= CHURN_LEAST;
        s->tasks_born = 0;
        s->next_churn_ns = now_ns + NS_PER_S;
    }
    uint64_t most_ns = s->churns && !s->in_slice && !s->perf.sampling.extra ? unattended_ns(s) : 0;
    if (most_ns < ASIDE_LEAST_MS * NS_PER_MS) {
        return false;
    }
    most_ns = most_ns < ASIDE_MOST_MS * NS_PER_MS ? most_ns : ASIDE_MOST_MS * NS_PER_MS;
    *wait_ns = *wait_ns < most_ns ? *wait_ns : most_ns;
    return true;
}

static void wait_round(struct session *s, uint64_t wait_ns)
{
    int half_full = s->catch != NULL ? catch_fd(s->catch) : -1;
    if (!s->perf_on && half_full >= 0) {
        (void)waker_wait(half_full, s->signals, wait_ns);
        return;
    }
    if (!s->perf_on) {
        signals_wait(s->signals, wait_ns);
        return;
    }
    const int others[PERF_WAIT_FDS] = {s->signals, half_full};
    bool ended = waits_aside(s, &wait_ns) ? perf_wait_aside(&s->perf, others, wait_ns)
                                          : perf_wait(&s->perf, others, wait_ns);
    uint64_t now_ns = clock_mono_ns();
    s->end_told = ended;
    if (ended || now_ns >= s->next_glance_ns) {
        /* at the command's end its books can be read for a moment, until its parent has waited */
        accounting_refresh(&s->accounting, now_ns, ended);
        s->next_glance_ns = now_ns + ROUND_MS * NS_PER_MS;
    }
}

static void run_windows(struct session *s)
{
    bool idle = false;
    while (!s->finishing) {
        uint64_t now_ns = clock_mono_ns();
        uint64_t end_ns = s->window_start_ns + s->settings->window_ns;
        const struct rounds_due due = {
            .now_ns = now_ns,
            .window_end_ns = end_ns,
            .look_ns = s->readers.next_look_ns,
            .slice_ns = session_slice_due_ns(s),
            .takes_window = publisher_ready(s->publisher),
            .looks = s->reads_runtimes && !session_is_suspended(s),
        };
        uint64_t usual_ns = session_slower_round_ns(s, round_ns(s, idle), slowest_round_ns(s));
        wait_round(s, rounds_wait_ns(usual_ns, &due));
        s->rounds++;
        idle = !session_drain_round(s);
        now_ns = clock_mono_ns();
        look_around(s, now_ns);
        session_burst(s, now_ns);
        session_keep_budget(s, now_ns);
        session_release_images(s, now_ns);
        serve_signals(s);
        session_show_status(s, now_ns);
        let_go_of_pipe(s);
        if (targets_are_gone(s)) {
            break;
        }
        if ((now_ns >= end_ns || s->closes_early) && publisher_ready(s->publisher)) {
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
    if (s->catch != NULL) {
        catch_stop(s->catch);
    }
    if (s->watches_waits) {
        waits_release(&s->waits);
    }
    if (s->watches_off_cpu) {
        offcpu_release(&s->offcpu);
    }
    readers_release(&s->readers);
    if (s->perf_on) {
        perf_close(&s->perf);
    }
    unsampled_release(&s->unsampled);
    order_release(&s->order);
    stacks_release(&s->stacks);
    unwinder_release(&s->unwinder);
    accounting_release(&s->accounting);
    scan_release(&s->scan);
    selection_release(&s->selection);
    targets_release(&s->targets);
    images_release(&s->images);
    session_end_uploads(s); /* nothing is sampled any more: it may take seconds */
    struct err err;
    if (s->recorder != NULL && !recorder_close(s->recorder, &err)) {
        log_say(&s->log, LOG_ERROR, "%s", err.text);
        failed++;
    }
    log_close(&s->log);
    return failed;
}

/* The last line of a log that has lines of several windows: that it ended, and as it should. */
static void say_end(struct session *s)
{
    char windows[24], cpu[32], percent[32];
    double cpu_s = (double)s->cpu_ns / (double)NS_PER_S;
    double unseen = s->cpu_ns == 0 ? 0.0 : 100.0 * (double)s->unseen_ns / (double)s->cpu_ns;
    if (s->log.terminal || s->windows < 2) {
        return;
    }
    publisher_wait(s->publisher);
    snprintf(windows, sizeof windows, "%llu", (unsigned long long)s->windows);
    snprintf(cpu, sizeof cpu, "%.2f", cpu_s);
    snprintf(percent, sizeof percent, "%.1f", unseen);
    const struct log_field fields[] = {
        {"windows", str_of(windows)}, {"cpu_s", str_of(cpu)}, {"unseen_percent", str_of(percent)}};
    log_event(&s->log, LOG_INFO, "end", fields, sizeof fields / sizeof fields[0],
              "end: %s windows, %.1f s CPU, %s %% of it without stacks", windows, cpu_s, percent);
}

static int finish(struct session *s)
{
    s->finish_ns = clock_mono_ns();
    end_window(s);
    if (s->finishing) {
        signals_default(); /* a second TERM ends at once; init's first must not */
    }
    say_end(s);
    unsigned failed = release(s);
    bool refused = s->access.why.kind != ERR_NONE;
    bool unfit = s->selection.active && s->settings->target == TARGET_ALL && !s->any_fitted;
    return failed > 0 || unfit || (refused && s->any_cpu && !s->any_stack);
}

static int abandon(struct session *s)
{
    (void)release(s);
    return 1;
}

static int run(struct session *s)
{
    s->first_ns = clock_mono_ns();
    s->next_status_ns = s->first_ns + NS_PER_S;
    session_begin_budget(s);
    session_look_at_cpus(s, s->first_ns); /* what is absent now has not gone */
    publisher_try(s->publisher);
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
        session_adopt(s, target->pid, true);
        session_adopt_children(s);
        return;
    }
    struct target *command = targets_get(&s->targets, target->pid);
    if (command != NULL) {
        command->named = true;
        command->capture_mode = (uint8_t)(s->perf_on ? session_perf_mode(s) : CAPTURE_PROC);
        s->any_on_proc = !s->perf_on;
        command->alive = 1;
        (void)accounting_adopt(&s->accounting, command);
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
    session_open_perf(&s);
    s.perf.awaited_pid = target->pid;
    follow_command(&s, target);
    if (!session_setup(&s)) {
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
    session_begin_uploads(&s);
    say_start(&s, what);
    return run(&s);
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
static void say_gone(struct session *s, const char *gone, bool others)
{
    struct buf visible;
    buf_init(&visible, 256);
    list_visible(&visible);
    log_say(&s->log, others ? LOG_WARNING : LOG_ERROR,
            "no process %s in this PID namespace (visible: %s); %s", gone, buf_cstr(&visible),
            others ? "the others are profiled"
                   : "host pids mean nothing here. On Fargate set \"pidMode\": \"task\"");
    buf_release(&visible);
}

static bool adopt_pids(struct session *s, struct buf *what)
{
    const struct settings *settings = s->settings;
    struct buf gone;
    bool any = false;
    buf_init(&gone, 16 * SETTINGS_PIDS_MAX);
    for (size_t i = 0; i < settings->pid_count; i++) {
        uint32_t pid = (uint32_t)settings->pids[i];
        if (!proc_exists(pid)) {
            buf_printf(&gone, "%s%u", gone.len == 0 ? "" : ", ", pid);
            continue;
        }
        session_adopt(s, pid, true);
        const struct target *target = targets_find(&s->targets, pid);
        buf_printf(what, "%s%u %s", any ? ", " : "pid ", pid, target != NULL ? target->name : "");
        any = true;
    }
    if (gone.len > 0) {
        say_gone(s, buf_cstr(&gone), any);
    }
    buf_release(&gone);
    if (any && settings->children) {
        session_adopt_children(s);
    }
    return any;
}

static bool adopt_all(struct session *s, struct buf *what)
{
    uint64_t now_ns = clock_mono_ns();
    if (s->perf_on) {
        session_find_processes(s, now_ns);
    } else {
        s->any_on_proc = true;
        accounting_discover(&s->accounting, now_ns);
    }
    if (s->selection.conflict[0] != '\0') {
        log_say(&s->log, LOG_ERROR, "%s", s->selection.conflict);
        return false;
    }
    session_say_unfit(s);
    buf_text(what, "all processes");
    if (s->selection.active) {
        buf_text(what, " with ");
        selection_describe_filters(&s->selection, what);
    }
    return true;
}

int session_attach(const struct settings *settings)
{
    struct session s;
    struct buf what;
    session_init(&s, settings);
    session_open_perf(&s);
    if (!session_setup(&s)) {
        return 1;
    }
    buf_init(&what, 1024);
    bool ok = true;
    if (settings->target == TARGET_ALL) {
        ok = adopt_all(&s, &what);
    } else {
        ok = adopt_pids(&s, &what);
    }
    if (ok) {
        session_begin_uploads(&s);
        say_start(&s, buf_cstr(&what)); /* before what is found out about them */
    }
    session_look_for_runtimes(&s, clock_mono_ns());
    begin_window(&s);
    int status = ok ? run(&s) : abandon(&s);
    buf_release(&what);
    return status;
}
