/*
 * The loop: wait, drain, walk the table of concerns, serve signals, end windows. Then the end: a last window, the last
 * line, everything released.
 */
#include "capture/run/loop.h"
#include "base/time.h"
#include "capture/run/pause.h"
#include "os/clock.h"
#include "os/console.h"
#include "os/launch.h"
#include "os/proc.h"

#include <signal.h>
#include <stdio.h>

enum {
    REST_MS = 1000, /* between two full rounds while sampling is suspended */
    LAST_MS = 100,  /* after the command most of what it started ends, too */
    LEAVE_MOST_MS = 4500, /* init waits a little longer in a container, and less elsewhere */
    USED_S = 1, /* after the beginning, and after a window: whatever comes then is what comes all the time */
    SELDOM_S = 10, /* windows of so long: what makes files of them is not kept in memory between */
};

struct loop {
    struct rooms *rooms;
    struct pause pause;
    uint64_t rounds;
    uint64_t full_ns;        /* monotonic: of the next full round while sampling is suspended */
    uint64_t code_ns;        /* monotonic: when code that is used seldom is let go; 0: it was */
    uint64_t ended_ns;       /* monotonic: when init told that the command has ended; 0: it has not */
    bool left_told;          /* … and what it left has been said and written */
    bool command_seen_end;
};

/* ---- signals ---- */

static void report_state(struct rooms *r, uint64_t rounds)
{
    const struct records_counts *counts = records_counts(r->records);
    log_say(&r->shared.log, LOG_INFO,
            "state: %zu processes, %zu threads, %zu images (%llu not open), %llu samples, "
            "%llu records lost, %llu damaged, %llu of unseen processes, %llu rounds, "
            "%zu MB resident",
            r->follow.targets.all.len, r->follow.targets.threads.len, r->follow.images.count,
            (unsigned long long)r->follow.images.unopened, (unsigned long long)r->stacks.samples,
            (unsigned long long)r->shared.window.lost_records, (unsigned long long)counts->malformed,
            (unsigned long long)counts->invisible, (unsigned long long)rounds,
            (size_t)(proc_own_rss_bytes() >> 20));
}

static void serve_signals(struct loop *l)
{
    struct rooms *r = l->rooms;
    for (int sig, value; (sig = signals_next(r->signals, &value)) != 0;) {
        if (sig == SIGTERM || sig == SIGINT) {
            r->shared.finishing = true;
            if (sig == SIGINT) {
                log_interrupted(&r->shared.log);
            }
        } else if (sig == SIGNAL_COMMAND_ENDED && l->ended_ns == 0) {
            l->ended_ns = clock_mono_ns();
        } else if (sig == SIGHUP) {
            log_reopen(&r->shared.log);
            if (r->uploads.uploader != NULL) {
                uploader_refresh(r->uploads.uploader);
            }
        } else if (sig == SIGUSR1) {
            rooms_end_window(r);
        } else if (sig == SIGUSR2) {
            report_state(r, l->rounds);
        } else if (sig == SIGNAL_REFUSED) {
            log_once(&r->shared.log, LOG_WARNING,
                     "system call %d was refused: it is none that this part of pillion makes. That is a fault, or an "
                     "attack by what is read; please report it. The run goes on",
                     value);
        }
    }
}

/* ---- rounds ---- */

static void let_go_of_log(struct shared *s)
{
    console_close(s->log.fd);
    s->log.fd = -1;
}

/* The command has ended but something it started goes on: whoever reads our standard error to its
 * end waits for the command, not for us. */
static void let_go_of_pipe(struct loop *l)
{
    struct rooms *r = l->rooms;
    struct shared *s = &r->shared;
    struct target *command = targets_find(&r->follow.targets, s->command_pid);
    if (s->command_pid == 0 || s->init_fd >= 0 || l->command_seen_end || s->log.owned ||
        (command != NULL && !command->ended)) {
        return;
    }
    l->command_seen_end = true;
    if (console_is_pipe(s->log.fd) && !polling_all_gone(r->polling)) {
        rooms_end_window(r);
        publisher_wait(r->publisher);
        let_go_of_log(s);
    }
}

/* Returns how many there are. */
static size_t describe_left(const struct rooms *r, char *out, size_t out_bytes)
{
    enum { SHOWN_MAX = 4 };
    size_t count = 0, used = 0;
    out[0] = '\0';
    vec_each(&r->follow.targets.all, slot)
    {
        const struct target *target = *slot;
        if (target->ended || target->pid == r->shared.command_pid || !proc_exists(target->pid)) {
            continue;
        }
        if (count++ < SHOWN_MAX && used < out_bytes) {
            used += (size_t)snprintf(out + used, out_bytes - used, "%s%s (pid %u)", count > 1 ? ", " : "", target->name,
                                     target->pid);
        }
    }
    if (count > SHOWN_MAX && used < out_bytes) {
        snprintf(out + used, out_bytes - used, " and %zu more", count - SHOWN_MAX);
    }
    return count;
}

/* Where everything may end with the command, its window is safe before. */
static void report_left(struct rooms *r, const char *left)
{
    log_say(&r->shared.log, LOG_INFO,
            "the command has ended; what it left behind goes on being profiled: %s; to end that: kill %u", left,
            proc_own_pid());
    rooms_end_window(r);
    publisher_wait(r->publisher);
    uploads_hurry(&r->uploads);
}

/* Init waits with the command's status. What ends with the command ends the run; what goes on is profiled without init,
 * and without the command's terminal or pipe. */
static void leave_init(struct loop *l)
{
    struct rooms *r = l->rooms;
    struct shared *s = &r->shared;
    uint64_t passed_ns = clock_mono_ns() - l->ended_ns;
    l->pause.hurries = l->ended_ns != 0 && s->init_fd >= 0;
    if (!l->pause.hurries || passed_ns < LAST_MS * NS_PER_MS || polling_all_gone(r->polling)) {
        return;
    }
    if (!l->left_told) {
        char left[256];
        if (describe_left(r, left, sizeof left) == 0 && passed_ns < LEAVE_MOST_MS * NS_PER_MS) {
            return; /* only the command, of whose end the kernel has not told us yet */
        }
        l->left_told = true;
        report_left(r, left);
    }
    if (passed_ns < LEAVE_MOST_MS * NS_PER_MS && uploads_wait(&r->uploads)) {
        return;
    }
    l->command_seen_end = true;
    if (!s->log.owned && (s->log.terminal || console_is_pipe(s->log.fd))) {
        let_go_of_log(s);
    }
    launch_leave(s->init_fd);
    s->init_fd = -1;
}

static void round_of(struct loop *l)
{
    struct rooms *r = l->rooms;
    const struct shared *s = &r->shared;
    pause_round(&l->pause, r);
    l->rounds++;
    l->pause.idle = !records_drain_round(r->records);
    uint64_t now_ns = clock_mono_ns();
    bool rests = s->throttle.suspended && !s->end_told && now_ns < l->full_ns;
    l->full_ns = rests ? l->full_ns : now_ns + REST_MS * NS_PER_MS;
    rows_round(&r->rows, now_ns, rests);
    serve_signals(l);
    leave_init(l);
    let_go_of_pipe(l);
}

/* Not at once: a command of some milliseconds would have it all read in again for its end. */
static void let_go_of_code(struct loop *l)
{
    if (l->code_ns != 0 && clock_mono_ns() >= l->code_ns && publisher_ready(l->rooms->publisher)) {
        l->code_ns = 0;
        proc_let_go_of_code();
    }
}

static void run_windows(struct loop *l)
{
    struct rooms *r = l->rooms;
    struct shared *s = &r->shared;
    bool seldom = s->settings->sampling.window_ns >= SELDOM_S * NS_PER_S;
    l->code_ns = clock_mono_ns() + USED_S * NS_PER_S;
    while (!s->finishing) {
        uint64_t end_ns = s->window.start_ns + s->window.length_ns;
        round_of(l);
        let_go_of_code(l);
        if (polling_all_gone(r->polling)) {
            break;
        }
        if ((clock_mono_ns() >= end_ns || s->throttle.closes_early) && publisher_ready(r->publisher)) {
            if (!s->settings->sampling.continuous) {
                break;
            }
            rooms_end_window(r);
            l->code_ns = seldom ? clock_mono_ns() + USED_S * NS_PER_S : l->code_ns;
        }
    }
}

/* ---- the end ---- */

/* Everything is written and said: whoever waits for the command's status need not wait for what the kernel takes back
 * of this process, which is a millisecond. */
static void let_init_go(struct shared *s)
{
    log_close(&s->log);
    if (s->init_fd >= 0) {
        launch_leave(s->init_fd);
        s->init_fd = -1;
    }
}

unsigned loop_release(struct rooms *r, uint64_t finish_ns)
{
    unsigned failed = publisher_stop(r->publisher);
    bool has_more = r->uploads.uploader != NULL || r->shared.observer != NULL;
    if (!has_more) {
        let_init_go(&r->shared);
    }
    failed += !rooms_release(r);
    if (has_more) {
        uploads_end(&r->uploads, finish_ns); /* nothing is sampled any more: it may take seconds */
        let_init_go(&r->shared);
    }
    return failed;
}

/* The last line of a log that has lines of several windows: that it ended, and as it should. */
static void report_end(struct rooms *r)
{
    const struct windows_sums *sums = windows_sums(r->windows);
    char windows[24], cpu[32], percent[32];
    double cpu_s = (double)sums->cpu_ns / (double)NS_PER_S;
    double unseen = sums->cpu_ns == 0 ? 0.0 : 100.0 * (double)sums->unseen_ns / (double)sums->cpu_ns;
    if (r->shared.log.terminal || sums->windows < 2) {
        return;
    }
    snprintf(windows, sizeof windows, "%llu", (unsigned long long)sums->windows);
    snprintf(cpu, sizeof cpu, "%.2f", cpu_s);
    snprintf(percent, sizeof percent, "%.1f", unseen);
    const struct log_field fields[] = {
        {"windows", str_of(windows)}, {"cpu_s", str_of(cpu)}, {"unseen_percent", str_of(percent)}};
    log_event(&r->shared.log, LOG_INFO, "end", fields, sizeof fields / sizeof fields[0],
              "end: %s windows, %.1f s CPU, %s %% of it without stacks", windows, cpu_s, percent);
}

static int finish(struct rooms *r)
{
    struct shared *s = &r->shared;
    uint64_t finish_ns = clock_mono_ns();
    publisher_expect_last(r->publisher);
    rooms_end_window(r);
    if (s->finishing) {
        signals_default(); /* a second TERM ends at once; init's first must not */
    }
    publisher_end_run(r->publisher);
    report_end(r);
    bool refused = s->access.why.kind != ERR_NONE && windows_sums(r->windows)->any_cpu &&
                   !records_counts(r->records)->any_stack && !waiting_any_stack(r->waiting) &&
                   !collecting_any_stack(r->collecting);
    bool unfit = !find_any_selected(r->find);
    return loop_release(r, finish_ns) > 0 || unfit || refused;
}

int loop_run(struct rooms *r)
{
    struct loop l = {.rooms = r};
    r->shared.first_ns = clock_mono_ns();
    rows_setup(&r->rows);
    if (!r->shared.settings->live.on || r->shared.settings->output.dir != NULL) {
        publisher_try(r->publisher);
    }
    run_windows(&l);
    return finish(r);
}
