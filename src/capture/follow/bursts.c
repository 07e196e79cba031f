/*
 * Sampling in bursts: who is sampled so, and when slices begin and end. A slice begins at a moment drawn by lot, so
 * that nothing periodic in the program is in step with it.
 */
#include "capture/follow/bursts.h"
#include "base/random.h"
#include "base/time.h"
#include "capture/follow/inherit_group.h"
#include "os/clock.h"

#include <stdlib.h>

enum {
    CHECK_MS = 1000,
    SLICE_MS = 4,
    SHARE_LEAST = 3,     /* one slice in as many: what is sampled nearly as closely needs no bursts */
    BIRTHS_LEAST = 16,   /* threads per check */
    CPU_LEAST_MS = 50,   /* per check */
    MISSING_PERIODS = 3, /* that may be missing anyway */
    CHECKS_TO_BEGIN = 2,
    CHECKS_TO_END = 10,
};

struct bursts {
    struct follow *follow;
    struct shared *shared;
    bool any;                /* some process is sampled in bursts … */
    bool in_slice;           /* … and is so now */
    bool runs_on;            /* some of its events are on although they were stopped … */
    uint64_t slice_end_ns;   /* … then */
    uint64_t share;          /* one slice in as many is, as of the latest one; 0: none was */
    uint64_t check_ns;       /* monotonic: of the next check, … */
    uint64_t slice_ns;       /* … the next begin or end of a slice, … */
    uint64_t after_slice_ns; /* … and the begin of the one after it */
    uint64_t seed;
};

struct bursts *bursts_new(struct follow *f)
{
    struct bursts *b = calloc(1, sizeof *b);
    if (b != NULL) {
        b->follow = f;
        b->shared = f->shared;
        b->seed = clock_mono_ns() | 1;
    }
    return b;
}

bool bursts_in_slice(const struct bursts *b)
{
    return b->in_slice;
}

/* At the frequency of now: the profiler's budget may have lowered it. */
static uint64_t usual_period_ns(const struct bursts *b)
{
    uint32_t hz = perf_sampling(b->shared->perf)->frequency_hz;
    return hz == 0 ? 0 : NS_PER_S / hz;
}

static uint64_t share_now(const struct bursts *b)
{
    return usual_period_ns(b) / PERF_BURST_PERIOD_NS;
}

/* An observed run has none: they are no part of its ring records. */
static bool may_burst(const struct bursts *b)
{
    return b->shared->perf_on && b->shared->observer == NULL && share_now(b) >= SHARE_LEAST;
}

void bursts_note_birth(struct bursts *b, const struct record *fork)
{
    struct target *target =
        fork->pid == fork->as.fork.parent_pid ? targets_find(&b->follow->targets, fork->pid) : NULL;
    if (target != NULL) {
        target->bursts.threads_born++;
    }
}

bool bursts_takes(struct bursts *b, struct record *sample)
{
    bool of_burst = sample->as.sample.period_ns == PERF_BURST_PERIOD_NS && b->share > 0;
    struct target *target = targets_find(&b->follow->targets, sample->pid);
    bool in_bursts = target != NULL && target->bursts.on;
    if (!of_burst && target != NULL) {
        target->bursts.plain_ns += sample->as.sample.period_ns;
    }
    if (of_burst && !b->in_slice && sample->time_ns > b->slice_end_ns) {
        b->runs_on = true;
        return false;
    }
    if (of_burst && in_bursts) {
        sample->as.sample.of_burst = true;
        sample->as.sample.period_ns *= b->share;
        target->bursts.samples++;
    }
    return of_burst == in_bursts;
}

/* ---- who is sampled so ---- */

/* Events that tell of ends bear no others beside them (os/perf.h): those made anew do not tell. */
static bool make_room(struct bursts *b, struct target *target, struct err *err)
{
    struct inherit_group group = {0};
    if (target->runtime.followed_ns != 0) {
        return true;
    }
    bool good = inherit_group_list(b->shared->perf, &b->follow->targets, target, &group) &&
                inherit_group_refollow(b->shared->perf, &group, 0);
    inherit_group_release(&group);
    follow_newborn(b->follow);
    return good || err_set(err, ERR_LIMIT, 0, "no descriptors for other events of pid %u", target->pid);
}

static void begin(struct bursts *b, struct target *target)
{
    struct err err;
    if (b->follow->hooks.timed(b->follow->hooks.context, target)) {
        return;
    }
    if (!make_room(b, target, &err) || !perf_burst_follow(b->shared->perf, target->pid, target->runtime.caught, &err)) {
        target->bursts.refused = true;
        log_once_for(&b->shared->log, LOG_DEBUG, "burst", "%s", err.text);
        return;
    }
    target->bursts.on = b->any = true;
    target->bursts.checks = 0;
    log_once_for(&b->shared->log, LOG_INFO, "burst",
                 "pid %u (%s) starts threads that end before they are sampled: from now on it is sampled "
                 "every %.2f ms, in slices of %d ms",
                 target->pid, target->name, (double)PERF_BURST_PERIOD_NS / 1e6, SLICE_MS);
}

static void end(struct bursts *b, struct target *target)
{
    perf_burst_end(b->shared->perf, target->pid);
    target->bursts.on = false;
    target->bursts.checks = 0;
}

/* One way or the other: is much of what it used since the last check without a sample of the usual kind? */
static bool is_missing(const struct bursts *b, const struct target *target, uint64_t cpu_ns,
                       uint64_t plain_ns)
{
    uint64_t missing_ns = cpu_ns > plain_ns ? cpu_ns - plain_ns : 0;
    return cpu_ns >= CPU_LEAST_MS * NS_PER_MS &&
           missing_ns > MISSING_PERIODS * usual_period_ns(b) &&
           missing_ns > cpu_ns / (target->bursts.on ? 8 : 4);
}

static void check(struct bursts *b, struct target *target)
{
    uint64_t cpu_ns, used_ns = target->bursts.cpu_ns, plain_ns = target->bursts.plain_before_ns;
    bool many = target->bursts.threads_born >= BIRTHS_LEAST;
    target->bursts.threads_born = 0;
    if ((!many && !target->bursts.on) || target->bursts.refused ||
        !b->follow->hooks.used(b->follow->hooks.context, target, &cpu_ns)) {
        target->bursts.checks = 0;
        target->bursts.cpu_ns = 0;
        return;
    }
    target->bursts.cpu_ns = cpu_ns;
    target->bursts.plain_before_ns = target->bursts.plain_ns;
    if (used_ns == 0 || cpu_ns < used_ns) {
        return;
    }
    bool missing = is_missing(b, target, cpu_ns - used_ns, target->bursts.plain_ns - plain_ns);
    target->bursts.checks = missing != target->bursts.on ? target->bursts.checks + 1 : 0;
    if (!target->bursts.on && target->bursts.checks >= CHECKS_TO_BEGIN) {
        begin(b, target);
    } else if (target->bursts.on && target->bursts.checks >= CHECKS_TO_END) {
        end(b, target);
    }
}

static void end_those_that_ended(struct bursts *b)
{
    size_t place = 0;
    for (uint32_t pid; (pid = perf_burst_pid(b->shared->perf, place)) != 0;) {
        const struct target *target = targets_find(&b->follow->targets, pid);
        if (target == NULL || target->ended || !target->bursts.on) {
            perf_burst_end(b->shared->perf, pid); /* another takes its place */
        } else {
            place++;
        }
    }
}

static void end_all(struct bursts *b)
{
    for (size_t i = 0; b->any && i < b->follow->targets.all.len; i++) {
        end(b, b->follow->targets.all.at[i]);
    }
    b->any = false;
}

static void check_all(struct bursts *b)
{
    b->any = false;
    vec_each(&b->follow->targets.all, slot)
    {
        struct target *target = *slot;
        if (follow_is_on_perf(target)) {
            check(b, target);
        }
        b->any = b->any || (target->bursts.on && !target->ended);
    }
    end_those_that_ended(b);
}

/* ---- the slices ---- */

/* A process that was caught since has rings of its own. */
static void follow_rings(struct bursts *b)
{
    vec_each(&b->follow->targets.all, slot)
    {
        struct target *target = *slot;
        struct err err;
        if (target->bursts.on && !perf_burst_is_followed(b->shared->perf, target->pid, target->runtime.caught) &&
            !perf_burst_follow(b->shared->perf, target->pid, target->runtime.caught, &err)) {
            end(b, target);
        }
    }
}

static void begin_slice(struct bursts *b, uint64_t now_ns)
{
    follow_rings(b);
    b->share = share_now(b);
    b->after_slice_ns = random_next_ns(now_ns, b->share * SLICE_MS * NS_PER_MS, &b->seed);
    b->slice_ns = now_ns + SLICE_MS * NS_PER_MS;
    b->in_slice = true;
    perf_burst_set(b->shared->perf, true);
}

static void end_slice(struct bursts *b)
{
    perf_burst_set(b->shared->perf, false);
    b->slice_end_ns = clock_mono_ns();
    b->in_slice = false;
    b->slice_ns = b->after_slice_ns;
}

static void stop_again(struct bursts *b)
{
    if (b->runs_on && !b->in_slice) {
        perf_burst_set(b->shared->perf, false);
    }
    b->runs_on = false;
}

static void slices(void *state, uint64_t now_ns)
{
    struct bursts *b = state;
    if (b->in_slice) {
        if (now_ns >= b->slice_ns) {
            end_slice(b);
        }
        return;
    }
    stop_again(b);
    if (!may_burst(b)) {
        end_all(b);
        return;
    }
    if (now_ns >= b->check_ns) {
        b->check_ns = now_ns + CHECK_MS * NS_PER_MS;
        check_all(b);
    }
    if (b->any && now_ns >= b->slice_ns) {
        begin_slice(b, now_ns);
    }
}

static uint64_t due_ns(const void *state)
{
    const struct bursts *b = state;
    return b->in_slice || (b->any && may_burst(b)) ? b->slice_ns : 0;
}

const struct concern bursts_concern = {
    .name = "bursts",
    .while_suspended = true,
    .round = slices,
    .due_ns = due_ns,
    .release = free,
};
