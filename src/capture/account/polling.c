/*
 * When CPU accounting reads what: polls of what has no events, readings of what has, searches for new processes
 * without perf, and the end of a window. accounting.h does the work.
 */
#include "capture/account/polling.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/file.h"
#include "target/usage.h"

#include <stdlib.h>

enum {
    REFRESH_MS = 100,
    SCAN_MS = 1000,       /* between two checks for ended followers, and two lists of /proc at the most */
    MANY_FOLLOWERS = 64,
    SCAN_MANY_MS = 5000,
    CALM_MS = 15000,      /* without a new process, or without any that runs: what one used since the last poll goes
                           * with it */
    STAT_MAX = 1 << 20,   /* /proc/stat has a line per CPU, and one per interrupt */
    REST_MS = 60000,
    EXCESS_MS = 50,       /* less would be "0.0 s" */
    POLL_REST_MS = 500,   /* between two polls when nobody has run for so long, … */
    POLL_CALM_MS = 250,   /* … or when interpreters' stacks tell of all CPU time, or there is none */
};

struct polling {
    struct follow *follow;
    struct shared *shared;
    struct accounting accounting;
    uint64_t poll_ns, discover_ns, refresh_ns, reap_ns; /* monotonic: when each is next */
    uint64_t pause_ns;     /* between two polls, at present */
    uint64_t changed_ns;   /* when the number of targets changed last, … */
    size_t targets;        /* … as it was then */
    unsigned processors;   /* of the machine; 0: not known */
};

/* 0: the kernel does not tell. */
static unsigned processors(void)
{
    struct usage_machine machine = {0};
    struct buf text;
    if (file_read_all("/proc/stat", STAT_MAX, &text, NULL)) {
        (void)usage_of_stat(buf_slice(&text), &machine);
        buf_release(&text);
    }
    return machine.processors;
}

struct polling *polling_new(struct follow *f)
{
    struct polling *p = calloc(1, sizeof *p);
    const struct settings *settings = f->shared->settings;
    if (p != NULL) {
        p->follow = f;
        p->shared = f->shared;
        accounting_init(&p->accounting, &f->targets, NS_PER_S / f->shared->frequency_hz,
                      settings->scope.mode == TARGET_ALL && !f->shared->perf_on);
        p->accounting.selection = &f->selection;
        p->accounting.follows_all = settings->scope.mode == TARGET_COMMAND ||
                                    (settings->scope.mode == TARGET_PIDS && settings->scope.children);
        p->processors = p->accounting.processors = processors();
    }
    return p;
}

static void release(void *state)
{
    struct polling *p = state;
    accounting_release(&p->accounting);
    free(p);
}

struct accounting *polling_accounting(struct polling *p)
{
    return &p->accounting;
}

uint64_t polling_pause_ns(const struct polling *p)
{
    return p->pause_ns;
}

/* ---- polls ---- */

/* What is only polled gets its CPU time by polling, so that is done often while it runs; also while processes come. */
static uint64_t pause_ns(struct polling *p, uint64_t now_ns)
{
    const struct targets *targets = &p->follow->targets;
    bool any_polled = false;
    vec_each(&targets->all, target)
    {
        any_polled = any_polled || ((*target)->capture_mode == CAPTURE_PROC && !(*target)->ended);
    }
    if (targets->all.len != p->targets) {
        p->targets = targets->all.len;
        p->changed_ns = now_ns;
    }
    uint64_t stirred_ns = p->accounting.stirred_ns > p->changed_ns ? p->accounting.stirred_ns : p->changed_ns;
    bool calm = now_ns - (any_polled ? stirred_ns : p->changed_ns) > CALM_MS * NS_PER_MS;
    bool rests = now_ns - stirred_ns > REST_MS * NS_PER_MS;
    return (rests ? (uint64_t)POLL_REST_MS : calm ? (uint64_t)POLL_CALM_MS : (uint64_t)ACCOUNTING_POLL_MS) * NS_PER_MS;
}

static void refresh(struct polling *p, uint64_t now_ns, bool ended)
{
    accounting_refresh(&p->accounting, now_ns, ended);
    p->refresh_ns = now_ns + REFRESH_MS * NS_PER_MS;
}

void polling_note_end(struct polling *p)
{
    refresh(p, clock_mono_ns(), true);
}

/* After the rings were read: it knows what began since. */
static void poll(void *state, uint64_t now_ns)
{
    struct polling *p = state;
    if (now_ns >= p->refresh_ns) {
        refresh(p, now_ns, false);
    }
    if (!p->follow->targets.any_on_proc || now_ns < p->poll_ns) {
        return;
    }
    p->pause_ns = pause_ns(p, now_ns);
    p->poll_ns = now_ns + p->pause_ns;
    if (now_ns >= p->discover_ns) { /* a list of /proc is dear where many processes begin */
        accounting_discover(&p->accounting, now_ns);
        p->discover_ns = now_ns +
                         shared_stretched_ns(p->shared, ACCOUNTING_POLL_MS * NS_PER_MS, SCAN_MS * NS_PER_MS) -
                         ACCOUNTING_POLL_MS * NS_PER_MS;
    }
    accounting_poll(&p->accounting, p->shared->window.profile);
}

/* ---- what ended ---- */

/* The kernel takes events away from a program that may not be read (a set-uid file): it goes on
 * without stacks. */
static void keep_protected(struct polling *p)
{
    struct follow *f = p->follow;
    vec_each(&f->targets.all, slot)
    {
        struct target *target = *slot;
        if (follow_is_on_perf(target) && accounting_is_running(&p->accounting, target) &&
            accounting_adopt(&p->accounting, target) && !target->ended) {
            targets_set_mode(&f->targets, target, CAPTURE_PROC);
            follow_report_protected(f, target);
        }
    }
}

static void reap(void *state, uint64_t now_ns)
{
    struct polling *p = state;
    struct shared *s = p->shared;
    bool due = now_ns >= p->reap_ns;
    bool single = s->perf_on && (perf_follower_count(s->perf) <= 1 || s->end_told);
    if (!due && !single) {
        return;
    }
    bool many = s->perf_on && perf_follower_count(s->perf) > MANY_FOLLOWERS;
    p->reap_ns = due ? now_ns + (many ? SCAN_MANY_MS : SCAN_MS) * NS_PER_MS : p->reap_ns;
    if (s->perf_on && perf_reap(s->perf) == 0 && s->settings->scope.mode != TARGET_ALL) {
        p->follow->hooks.drain(p->follow->hooks.context);
        keep_protected(p);
    }
}

bool polling_all_gone(struct polling *p)
{
    const struct shared *s = p->shared;
    if (s->settings->scope.mode == TARGET_ALL || (s->perf_on && perf_follower_count(s->perf) > 0)) {
        return false;
    }
    return !p->follow->targets.any_on_proc || !accounting_any_alive(&p->accounting);
}

/* ---- windows ---- */

static void report_excess(struct polling *p)
{
    struct shared *s = p->shared;
    uint64_t there_ns = (clock_mono_ns() - s->window.start_ns) * p->processors;
    uint64_t excess_ns = accounting_excess_ns(&p->accounting, s->window.profile, there_ns);
    if (p->processors > 0 && s->window.start_ns > 0 && excess_ns >= EXCESS_MS * NS_PER_MS) {
        log_once(&s->log, LOG_WARNING,
                 "%.1f s of CPU time are counted that cannot have been used (%u CPUs): %s",
                 (double)excess_ns / (double)NS_PER_S, p->processors,
                 s->own.by_time ? "this system counts it in ticks, of threads that wait for a CPU, too (gVisor)"
                                : "a defect of pillion, please report it with what was profiled");
    }
}

static void close_window(void *state)
{
    struct polling *p = state;
    struct shared *s = p->shared;
    if (p->follow->selection.active) {
        s->window.profile->meta.excluded += scan_excluded(&p->accounting.scan) + p->accounting.ended_excluded;
        p->accounting.ended_excluded = 0;
        scan_end_window(&p->accounting.scan);
    }
    accounting_close_window(&p->accounting, s->window.profile, s->perf_on ? s->perf : NULL, s->window.lost_records);
    report_excess(p);
    p->accounting.unsampled_ns = 0;
}

const struct concern polling_concern = {
    .name = "polling",
    .while_suspended = true,
    .round = poll,
};

const struct concern reaping_concern = {
    .name = "reaping",
    .round = reap,
};

const struct concern closing_concern = {
    .name = "accounting",
    .window_end = close_window,
    .release = release,
};
