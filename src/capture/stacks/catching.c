/*
 * Whose samples are caught: processes with a runtime, found by readers.h, and programs with very deep stacks. Without
 * perf it also reads their mappings again, because no record tells of new ones.
 */
#include "capture/stacks/catching.h"
#include "base/time.h"
#include "capture/follow/stack_copy.h"
#include "capture/follow/inherit_group.h"
#include "os/access.h"
#include "os/clock.h"
#include "os/proc.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SHARES_LEAST = 50,       /* samples that make a share worth a warning */
    START_S = 5,             /* so long libraries are loaded one after the other */
    MAPS_PER_ROUND = 16,
    CATCH_PER_ROUND = 16,    /* processes that get events for catchers */
    STACK_DEEP_BYTES = PERF_STACK_MAX / 4,
};

struct catching {
    struct follow *follow;
    struct shared *shared;
    struct accounting *accounting;
    struct readers readers;
    bool reads_runtimes;
    struct catch *catch; /* null: nothing to catch so far */
};

struct catching *catching_new(struct follow *f, struct accounting *accounting)
{
    struct catching *c = calloc(1, sizeof *c);
    struct shared *s = f->shared;
    if (c != NULL) {
        *c = (struct catching){
            .follow = f, .shared = s, .accounting = accounting, .reads_runtimes = s->observer == NULL};
        readers_init(&c->readers, s->settings, &f->targets, &s->log);
        c->readers.unseen = &s->unseen;
    }
    return c;
}

static void release(void *state)
{
    struct catching *c = state;
    if (c->catch != NULL) {
        catch_stop(c->catch);
    }
    readers_release(&c->readers);
    free(c);
}

struct catch *catching_catchers(const struct catching *c)
{
    return c->catch;
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

static void publish(struct catching *c)
{
    size_t count;
    const struct catch_target *table = readers_table(&c->readers, &count);
    if (c->catch == NULL || catch_publish(c->catch, table, count)) {
        readers_sweep(&c->readers);
    }
}

/* Catchers are there from the first process on that has something to catch. */
static bool start_catching(struct catching *c)
{
    struct err err = {0};
    if (c->catch != NULL) {
        return true;
    }
    struct shared *s = c->shared;
    bool has_rings = s->perf_on && perf_open_caught(s->perf, &err);
    c->catch = s->perf_on && !has_rings ? NULL : catch_init(s->settings->sampling.frequency_hz, &err);
    if (c->catch != NULL) {
        catch_charge(c->catch, &s->own);
    }
    if (c->catch != NULL && !(has_rings ? catch_on_rings(c->catch, s->perf, &s->format, &err)
                                        : catch_perfless(c->catch, &err))) {
        catch_stop(c->catch);
        c->catch = NULL;
    }
    if (c->catch == NULL) {
        log_once(&c->shared->log, LOG_WARNING, "%s; stacks of interpreters are not read", err.text);
        c->reads_runtimes = false;
    } else if (c->shared->throttle.active) {
        catch_set_frequency(c->catch, c->shared->throttle.frequency_hz);
    }
    return c->catch != NULL;
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
                     "%s: not enough descriptors to catch its samples one by one; its stacks are native "
                     "only. Raise ulimit -n",
                     target->name);
    }
}

static bool has_long_been_running(const struct catching *c, const struct target *target)
{
    uint64_t start_ticks = START_S * NS_PER_S / c->accounting->tick_ns;
    return target->start_ticks != 0 && target->start_ticks + start_ticks < c->accounting->began_ticks;
}

static void report_hidden(struct catching *c, const struct target *target)
{
    char why[ACCESS_TEXT_MAX], said[2 * ERR_TEXT_MAX];
    access_refusal(target->pid, ACCESS_LOOK, why);
    snprintf(said, sizeof said, "pid %u (%s) may not be looked into: %s", target->pid, target->name, why);
    log_once_for(&c->shared->log, LOG_WARNING, why, "%s. Its CPU time is counted without stacks", said);
    unseen_note(&c->shared->unseen, UNSEEN_MEMORY, said);
}

/* A process that is just becoming another program refuses for a moment what it allows before and after; then no rule
 * explains the refusal, and it is to be asked again. */
static bool is_passing(const struct target *target)
{
    struct access_verdict verdict;
    access_verdict_of(target->pid, ACCESS_LOOK, &verdict);
    return verdict.gate == ACCESS_GATE_MODULE && !target->reread.was_hidden;
}

/* Without perf no record tells of mappings: those of a process that runs are read again, at first often
 * because it is starting, later for libraries that are loaded late. */
static void refresh_maps(struct catching *c, uint64_t now_ns)
{
    unsigned left = MAPS_PER_ROUND;
    vec_each(&c->follow->targets.all, slot)
    {
        struct target *target = *slot;
        bool polled = target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
        if (!polled || target->ended || targets_is_excluded(target, now_ns) ||
            target->account.idle_polls > 0 || now_ns < target->reread.pace.again_ns || left == 0) {
            continue;
        }
        left--;
        bool good = targets_read_maps(&c->follow->targets, target);
        bool hidden = !good && proc_exists(target->pid);
        bool passing = hidden && is_passing(target);
        if (hidden && !passing) {
            report_hidden(c, target);
        }
        target->reread.was_hidden = hidden;
        const struct maps_reading reading = {
            .bytes = good ? c->follow->targets.text.len : 0, /* a refusal leaves another process's text there */
            .is_new = !has_long_been_running(c, target),
            .found = target->runtime.caught,
            .passing = passing,
        };
        maps_pace_next(&target->reread.pace, &reading, now_ns);
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

/* Has the samples of a process with a runtime caught; false when there is nothing to do. */
static bool catch_one(struct catching *c, struct target *target)
{
    if (target->ended || target->runtime.caught || target->runtime.refused || c->shared->throttle.suspended ||
        !fits_still(c, target) || !start_catching(c)) {
        return false;
    }
    publish(c);
    if (target->capture_mode == CAPTURE_PROC) {
        targets_set_mode(&c->follow->targets, target, CAPTURE_RUNTIME);
        target->runtime.caught = true;
    } else {
        catch_process(c, target);
    }
    return true;
}

void catching_search(struct catching *c, uint64_t now_ns)
{
    if (!c->reads_runtimes) {
        return;
    }
    if (c->follow->targets.any_on_proc) {
        refresh_maps(c, now_ns);
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
    if (c->catch != NULL) {
        catch_set_frequency(c->catch, throttle->frequency_hz);
    }
}

static uint64_t lost_by_catchers(struct catching *c)
{
    uint64_t lost = 0;
    for (size_t i = 0; c->catch != NULL && i < catch_cpu_count(c->catch); i++) {
        struct catch_counts counts;
        catch_counts(c->catch, i, &counts);
        lost += counts.lost;
    }
    return lost;
}

/* A share that is not what it could be has a reason. */
static void report_trouble(struct catching *c)
{
    const uint64_t *shares = c->shared->window.profile->meta.shares;
    uint64_t all = 0;
    for (unsigned i = 0; i < SHARE_COUNT; i++) {
        all += shares[i];
    }
    const char *trouble = c->catch == NULL ? "" : catch_trouble(c->catch);
    if (all < SHARES_LEAST || shares[SHARE_PROVEN] * 10 >= all * 9 || trouble[0] == '\0') {
        return;
    }
    log_once(&c->shared->log, LOG_WARNING, "%.0f %% of the interpreters' stacks are proven: %s",
             100.0 * (double)shares[SHARE_PROVEN] / (double)all, trouble);
}

/* ---- deep stacks ---- */

static bool has_new_gaps(const struct target *target)
{
    return !target->runtime.gaps && target->copy.gaps >= STACK_COPY_CUT_FEW;
}

static bool is_deep(const struct target *target)
{
    return follow_is_on_perf(target) && !target->runtime.refused &&
           ((!target->runtime.deep && target->copy.most > STACK_DEEP_BYTES) || has_new_gaps(target));
}

/* Some stacks are larger than any copy, or the kernel's copy ends early, at a page that was never touched (of a large
 * array): what lies beyond is read at the sample's moment. A program that comes to a quarter of the largest copy may
 * well pass it, and when it does, it does so for many samples (a compiler's garbage collector recurses along its
 * lists).
 * What one process of a group needs, the next one of its kind will need: compilers that a build starts
 * one by one. */
static void catch_deep(struct catching *c, struct target *target)
{
    struct inherit_group group;
    bool good = inherit_group_list(c->shared->perf, &c->follow->targets, target, &group) && start_catching(c);
    bool gaps = has_new_gaps(target);
    vec_each(&group.members, one)
    {
        (*one)->runtime.deep = (*one)->runtime.caught = good;
        (*one)->runtime.gaps |= gaps;
        (*one)->runtime.space = 0;
    }
    good = good && inherit_group_refollow(c->shared->perf, &group, 0);
    target->runtime.refused = !good;
    vec_each(&group.members, one)
    {
        (*one)->runtime.deep = (*one)->runtime.caught = good;
    }
    inherit_group_release(&group);
    follow_newborn(c->follow);
    publish(c);
    log_say(&c->shared->log, LOG_DEBUG, "pid %u (%s): %s", target->pid, target->name,
            good ? "stacks are read beyond their copy from now on" : "deep stacks stay cut");
}

static void catch_deep_stacks(struct catching *c)
{
    for (size_t i = 0; c->reads_runtimes && !c->shared->throttle.coarse && i < c->follow->targets.all.len; i++) {
        if (is_deep(c->follow->targets.all.at[i])) {
            catch_deep(c, c->follow->targets.all.at[i]);
            return; /* one inherit group per round */
        }
    }
}

/* ---- the row ---- */

static void search_all(void *state, uint64_t now_ns)
{
    catching_search(state, now_ns);
    catch_deep_stacks(state);
}

static void window_end(void *state)
{
    struct catching *c = state;
    struct shared *s = c->shared;
    report_trouble(c);
    s->window.lost_records += lost_by_catchers(c);
    if (c->reads_runtimes) {
        readers_end_window(&c->readers, s->window.profile);
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
