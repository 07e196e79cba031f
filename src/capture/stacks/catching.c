/* Whose samples are caught: processes with a runtime, found by readers.h, and programs with very deep stacks. Without
 * perf it also reads their mappings again, because no record tells of new ones. A process with a runtime whose threads
 * are too short for perf's samples is read by a timer, as without perf. */
#include "capture/stacks/catching.h"
#include "base/time.h"
#include "capture/stacks/remapping.h"
#include "capture/follow/stack_copy.h"
#include "capture/follow/inherit_group.h"
#include "os/access.h"
#include "os/clock.h"
#include "os/proc.h"
#include "unwind/unwind.h"

#include <stdlib.h>

enum {
    SHARES_LEAST = 50,       /* samples that make a share worth a warning */
    CATCH_PER_ROUND = 16,    /* processes that get events for catchers */
    STACK_DEEP_BYTES = PERF_STACK_MAX / 2,
    HELD_STACK_BYTES = 32 * 1024, /* to begin with; 6 µs */
    TIMED_S = 300,           /* by a timer, then perf is tried again: its threads may be other ones */
};

struct catching {
    struct follow *follow;
    struct shared *shared;
    struct accounting *accounting;
    struct readers readers;
    bool reads_runtimes;
    struct catch *rings; /* null: nothing to catch so far */
    struct catch *timer; /* without perf, or where perf's samples come too late; null: nobody is read so */
};

struct catching *catching_new(struct follow *f, struct accounting *accounting)
{
    struct catching *c = calloc(1, sizeof *c);
    struct shared *s = f->shared;
    if (c != NULL) {
        *c = (struct catching){.follow = f, .shared = s, .accounting = accounting, .reads_runtimes = !s->observer};
        readers_init(&c->readers, s->settings, &f->targets, &s->log);
        c->readers.unseen = &s->unseen;
        c->readers.collects = shared_collects(s);
        c->readers.stops = s->stops;
        c->readers.stops_useless = s->stops_useless;
    }
    return c;
}

bool catching_end(struct catching *c)
{
    bool rings = catch_stop(c->rings), timer = catch_stop(c->timer);
    c->rings = c->timer = NULL;
    return rings && timer;
}

/* After catching_end. */
static void release(void *state)
{
    struct catching *c = state;
    readers_release(&c->readers);
    free(c);
}

struct catch *catching_rings(const struct catching *c)
{
    return c->rings;
}

struct catch *catching_timer(const struct catching *c)
{
    return c->timer;
}

struct readers *catching_readers(struct catching *c)
{
    return c->reads_runtimes ? &c->readers : NULL;
}

void catching_forget_images(struct catching *c)
{
    if (c->reads_runtimes) {
        readers_forget_images(&c->readers);
    }
}

static bool publish_to(struct catching *c, struct catch *catch, bool timed)
{
    size_t count;
    const struct catch_target *table = readers_table(&c->readers, timed, &count);
    return catch == NULL || catch_publish(catch, table, count);
}

static void publish(struct catching *c)
{
    bool rings = publish_to(c, c->rings, false), timer = publish_to(c, c->timer, true);
    if (rings && timer) {
        readers_sweep(&c->readers);
    }
}

/* Of what the budget allows, and of what targets are to bear. */
static uint32_t timer_hz(const struct catching *c)
{
    uint32_t hz = c->shared->throttle.active ? c->shared->throttle.frequency_hz : c->shared->frequency_hz;
    return c->shared->stops && c->shared->stops_hz < hz ? c->shared->stops_hz : hz;
}

void catching_set_pace(struct catching *c)
{
    if (c->timer != NULL) {
        catch_set_frequency(c->timer, timer_hz(c));
    }
}

/* Catchers are there from the first process on that has something to catch. Null: they cannot be had. */
static struct catch *start(struct catching *c, bool timed)
{
    struct err err = {0};
    struct shared *s = c->shared;
    bool has_rings = !timed && perf_open_caught(s->perf, &err);
    struct catch *catch = timed || has_rings ? catch_init(s->frequency_hz, &err) : NULL;
    if (catch != NULL) {
        catch_charge(catch, &s->own);
        catch_allow_stops(catch, timed && s->stops ? unwind_perf_mask() : 0);
    }
    if (catch != NULL && !(timed ? catch_perfless(catch, &err) : catch_on_rings(catch, s->perf, &s->format, &err))) {
        (void)catch_stop(catch);
        catch = NULL;
    }
    if (catch == NULL) {
        log_once(&s->log, LOG_WARNING, "%s; stacks of interpreters are not read", err.text);
        c->reads_runtimes = false;
    } else if (s->throttle.active || (timed && s->stops)) {
        catch_set_frequency(catch, timed ? timer_hz(c) : s->throttle.frequency_hz);
    }
    return catch;
}

static bool start_rings(struct catching *c)
{
    c->rings = c->rings != NULL ? c->rings : start(c, false);
    return c->rings != NULL;
}

static bool start_timer(struct catching *c)
{
    c->timer = c->timer != NULL ? c->timer : start(c, true);
    return c->timer != NULL;
}

static void catch_process(struct catching *c, struct target *target)
{
    struct inherit_group group;
    uint32_t before = target->copy.bytes;
    target->runtime.caught = true;
    if (perf_sampling(c->shared->perf)->stack_bytes > 0 && !c->shared->throttle.coarse) {
        target->copy.bytes = STACK_COPY_MAX_BYTES;
    }
    bool good = inherit_group_list(c->shared->perf, &c->follow->targets, target, &group) &&
                inherit_group_refollow(c->shared->perf, &group, 0);
    inherit_group_release(&group);
    follow_newborn(c->follow);
    if (!good) {
        target->runtime.caught = false;
        target->copy.bytes = before;
        target->runtime.refused = true;
        log_once_for(&c->shared->log, LOG_WARNING, "descriptors to catch",
                     "%s: not enough descriptors to catch its samples one by one; its stacks are native only. "
                     "Raise ulimit -n", target->name);
    }
}

/* Without perf no record tells of an exec: what was found may be of a program that the filters leave out, although
 * the one before it fitted. */
static bool fits_still(struct catching *c, struct target *target)
{
    uint64_t now_ns = clock_mono_ns();
    if (target->capture_mode == CAPTURE_PROC) {
        selection_evaluate(&c->follow->selection, target, now_ns);
    }
    return !targets_is_excluded(target, now_ns);
}

/* So much is read of a held thread's stack. */
static void set_held_stack(struct target *target, uint32_t bytes)
{
    target->runtime.stack_bytes = bytes;
    if (target->runtime.stops) {
        target->copy = (struct target_copies){.bytes = bytes, .changes = target->copy.changes + 1};
    }
}

static bool time_process(struct catching *c, struct target *target)
{
    /* without perf in the session none of its samples is perf's */
    bool good = start_timer(c) &&
                (!c->shared->perf_on || accounting_end_events(c->accounting, c->shared->window.profile, target));
    if (good) {
        targets_set_mode(&c->follow->targets, target, CAPTURE_RUNTIME);
        target->runtime.caught = true;
        set_held_stack(target, target->runtime.stack_bytes > 0 ? target->runtime.stack_bytes : HELD_STACK_BYTES);
        publish(c);
    }
    return good; /* else it has ended */
}

/* Has the samples of a process with a runtime caught; false when there is nothing to do. */
static bool catch_one(struct catching *c, struct target *target)
{
    if (target->ended || target->runtime.caught || target->runtime.refused || c->shared->throttle.suspended ||
        !fits_still(c, target)) {
        return false;
    }
    if (target->capture_mode == CAPTURE_PROC) {
        return time_process(c, target);
    }
    if (!readers_walk(target) || !start_rings(c)) { /* who only resolves addresses is sampled like a native program */
        return false;
    }
    publish(c);
    catch_process(c, target);
    return true;
}

void catching_search(struct catching *c, uint64_t now_ns)
{
    if (!c->reads_runtimes) {
        return;
    }
    if (c->follow->targets.any_on_proc) {
        remapping_round(c->follow, c->accounting, now_ns);
    }
    if (readers_refresh(&c->readers, now_ns)) {
        publish(c);
    }
    unsigned count = 0;
    for (size_t i = 0; c->reads_runtimes && i < c->readers.all.len && count < CATCH_PER_ROUND; i++) {
        count += catch_one(c, c->readers.all.at[i]->target);
    }
}

void catching_throttle(struct catching *c)
{
    const struct throttle *throttle = &c->shared->throttle;
    for (size_t i = 0; throttle->suspended && i < c->follow->targets.all.len; i++) {
        struct target *target = c->follow->targets.all.at[i];
        if (follow_is_on_perf(target) && target->runtime.reader != NULL) {
            target->runtime.caught = false;
        }
    }
    if (c->rings != NULL) {
        catch_set_frequency(c->rings, throttle->frequency_hz);
    }
    catching_set_pace(c);
}

static void count_losses(struct window *window, struct catch *catch)
{
    for (size_t i = 0; catch != NULL && i < catch_cpu_count(catch); i++) {
        struct catch_counts counts;
        catch_counts(catch, i, &counts);
        window->lost_records += counts.lost;
        window->broken_calls += counts.broken_calls;
    }
}

/* A share that is not what it could be has a reason. */
static void report_trouble(struct catching *c)
{
    const uint64_t *shares = c->shared->window.profile->meta.shares;
    uint64_t all = 0;
    for (unsigned i = 0; i < SHARE_COUNT; i++) {
        all += shares[i];
    }
    const struct catch *catch = c->rings != NULL ? c->rings : c->timer;
    const char *trouble = catch == NULL ? "" : catch_trouble(catch);
    if (all < SHARES_LEAST || shares[SHARE_PROVEN] * 10 >= all * 9 || trouble[0] == '\0') {
        return;
    }
    log_once(&c->shared->log, LOG_WARNING, "%.0f %% of the interpreters' stacks are proven: %s",
             100.0 * (double)shares[SHARE_PROVEN] / (double)all, trouble);
}

/* ---- deep stacks ---- */

static bool is_deep(const struct target *target)
{
    return follow_is_on_perf(target) && !target->runtime.refused &&
           ((!target->runtime.deep && target->copy.most > STACK_DEEP_BYTES) || stack_copy_has_new_gaps(target));
}

static void set_deep(struct inherit_group *group, bool deep, bool gaps)
{
    vec_each(&group->members, one)
    {
        (*one)->runtime.deep = deep;
        (*one)->runtime.caught = deep || ((*one)->runtime.caught && readers_walk(*one));
        (*one)->runtime.gaps |= gaps;
        (*one)->runtime.space = 0;
        (*one)->copy.seen = (*one)->copy.gaps = (*one)->copy.half = (*one)->copy.most = 0;
    }
}

/* Some stacks are larger than any copy, or the kernel's copy ends early, at a page that was never touched (of a large
 * array): what lies beyond is read at the sample's moment. A program that comes to half of the largest copy may
 * well pass it, and when it does, it does so for many samples (a compiler's garbage collector recurses along its
 * lists).
 * What one process of a group needs, the next one of its kind will need: compilers that a build starts
 * one by one. */
static void catch_deep(struct catching *c, struct target *target)
{
    struct inherit_group group;
    bool good = inherit_group_list(c->shared->perf, &c->follow->targets, target, &group) && start_rings(c);
    set_deep(&group, good, stack_copy_has_new_gaps(target));
    target->runtime.refused = !good || !inherit_group_refollow(c->shared->perf, &group, 0);
    if (target->runtime.refused) {
        set_deep(&group, false, false);
    }
    inherit_group_release(&group);
    follow_newborn(c->follow);
    publish(c);
    log_say(&c->shared->log, LOG_DEBUG, "pid %u (%s): %s", target->pid, target->name,
            target->runtime.refused ? "deep stacks stay cut" : "stacks are read beyond their copy from now on");
}

/* What a program does as it begins, a JVM that loads its classes, may never come again: then nobody need be woken for
 * each of its samples, and their copies may be small. While some stacks are deep it is asked again as many later. */
static bool is_deep_no_more(struct target *target)
{
    if (!target->runtime.deep || target->runtime.gaps || !follow_is_on_perf(target) || readers_walk(target) ||
        target->copy.changes >= STACK_COPY_CHANGES_MAX || target->copy.seen < STACK_COPY_DEEP_PERIOD) {
        return false;
    }
    uint32_t most = target->copy.most;
    target->copy.seen = target->copy.most = 0;
    return most <= STACK_DEEP_BYTES;
}

static void leave_deep(struct catching *c, struct target *target)
{
    struct inherit_group group;
    bool good = inherit_group_list(c->shared->perf, &c->follow->targets, target, &group);
    target->copy.changes++;
    vec_each(&group.members, one)
    {
        good = good && (*one)->copy.most <= STACK_DEEP_BYTES;
    }
    if (good) {
        set_deep(&group, false, false);
        good = inherit_group_refollow(c->shared->perf, &group, 0);
        set_deep(&group, !good, false); /* where it has the old events still, it is caught by them */
        log_say(&c->shared->log, LOG_DEBUG, "pid %u (%s): stacks are %s deep", target->pid, target->name,
                good ? "no longer" : "still taken to be");
    }
    inherit_group_release(&group);
    follow_newborn(c->follow);
    publish(c);
}

static void catch_deep_stacks(struct catching *c)
{
    bool may = c->reads_runtimes && !c->shared->throttle.coarse;
    for (size_t i = 0; may && i < c->follow->targets.all.len; i++) {
        struct target *target = c->follow->targets.all.at[i];
        bool is_new = is_deep(target);
        if (is_new || is_deep_no_more(target)) {
            (is_new ? catch_deep : leave_deep)(c, target);
            return; /* one inherit group per round */
        }
    }
}

static void fit_held_stacks(struct catching *c)
{
    bool any = false;
    vec_each(&c->follow->targets.all, slot)
    {
        struct target *target = *slot;
        uint32_t bytes = stack_copy_held_wanted(target, target->runtime.stack_bytes, CATCH_HELD_STACK_MAX);
        if (target->runtime.stops && bytes != target->runtime.stack_bytes) {
            set_held_stack(target, bytes);
            any = true;
        }
    }
    if (any) {
        publish(c);
    }
}

/* ---- threads that are too short for perf's samples ---- */

/* Its events end; who inherited from it, or it from them, gets events of its own. */
static bool end_events(struct catching *c, struct target *target)
{
    struct inherit_group group = {0};
    bool good = inherit_group_list(c->shared->perf, &c->follow->targets, target, &group) &&
                inherit_group_refollow_but(c->shared->perf, &group, target);
    inherit_group_release(&group);
    follow_newborn(c->follow);
    return good;
}

bool catching_time(struct catching *c, struct target *target)
{
    if (!c->reads_runtimes || c->shared->throttle.suspended || !readers_walk(target) || !start_timer(c) ||
        !end_events(c, target)) {
        return false;
    }
    c->follow->hooks.drain(c->follow->hooks.context);
    (void)targets_read_maps(&c->follow->targets, target);
    (void)time_process(c, target);
    target->runtime.timed_ns = clock_mono_ns() + TIMED_S * NS_PER_S;
    log_once_for(&c->shared->log, LOG_INFO, "timed",
                 "pid %u (%s) starts threads that end before they are sampled: from now on its interpreter's "
                 "stacks are read by a timer; what native and kernel code does stands with the function that called it",
                 target->pid, target->name);
    return true;
}

/* Its threads may be other ones by now. */
static void sample_again(struct catching *c, struct target *target)
{
    struct follow *f = c->follow;
    const struct perf_how how = {.stack_bytes = target->copy.bytes};
    target->runtime.timed_ns = clock_mono_ns() + TIMED_S * NS_PER_S;
    if (!perf_follow_process(c->shared->perf, target->pid, &how, NULL)) {
        return;
    }
    f->hooks.drain(f->hooks.context);
    f->hooks.gets_events(f->hooks.context, target);
    targets_set_mode(&f->targets, target, follow_perf_mode(f));
    target->runtime.timed_ns = 0;
    target->runtime.followed_ns = clock_mono_ns();
    target->runtime.caught = false; /* and is, by its events, at the next search */
    target->bursts = (struct target_bursts){0};
    publish(c);
    perf_enable(c->shared->perf);
    (void)targets_read_maps(&f->targets, target);
}

/* Its time is over, or its runtime is gone: an exec made another program of it. What it starts has no events, and its
 * time is over at once (accounting_poll.c). */
static void end_times(struct catching *c, uint64_t now_ns)
{
    vec_each(&c->follow->targets.all, slot)
    {
        struct target *target = *slot;
        bool over = now_ns >= target->runtime.timed_ns || target->capture_mode == CAPTURE_PROC;
        if (target->runtime.timed_ns != 0 && over && !target->ended) {
            sample_again(c, target);
        }
    }
}

/* ---- the row ---- */

static void search_all(void *state, uint64_t now_ns)
{
    struct catching *c = state;
    catching_search(c, now_ns);
    catch_deep_stacks(c);
    if (c->shared->stops && c->reads_runtimes) {
        fit_held_stacks(c);
    }
    if (c->timer != NULL && c->shared->perf_on && !c->shared->throttle.suspended) {
        end_times(c, now_ns);
    }
}

static void window_end(void *state)
{
    struct catching *c = state;
    report_trouble(c);
    count_losses(&c->shared->window, c->rings);
    count_losses(&c->shared->window, c->timer);
    if (c->reads_runtimes) {
        readers_end_window(&c->readers, c->shared->window.profile);
        publish(c);
    }
}

static uint64_t due_ns(const void *state)
{
    const struct catching *c = state;
    return c->reads_runtimes && !c->shared->throttle.suspended ? c->readers.next_refresh_ns : 0;
}

const struct concern catching_concern = {
    .name = "catching",
    .round = search_all,
    .window_end = window_end,
    .due_ns = due_ns,
    .release = release,
};
