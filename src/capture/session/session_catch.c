#include "base/time.h"
#include "capture/dumps.h"
#include "capture/family.h"
#include "capture/session/session_private.h"
#include "os/access.h"
#include "os/clock.h"
#include "os/proc.h"

#include <stdio.h>

enum {
    SHARES_LEAST = 50,       /* samples that make a share worth a warning */
    START_S = 5,             /* so long libraries are loaded one after the other */
    MAPS_PER_ROUND = 16,
    CATCH_PER_ROUND = 16,    /* processes that get events for catchers */
    STACK_DEEP_BYTES = PERF_STACK_MAX / 4,
};

void session_follow_newborn(struct session *s)
{
    session_drain(s);
    (void)family_follow_newborn(&s->perf, &s->targets);
}

void session_publish_readers(struct session *s)
{
    size_t count;
    const struct catch_target *table = readers_table(&s->readers, &count);
    if (s->catch == NULL || catch_publish(s->catch, table, count)) {
        readers_sweep(&s->readers);
    }
}

/* Catchers are there from the first process on that has something to catch. */
static bool start_catching(struct session *s)
{
    struct err err = {0};
    if (s->catch != NULL) {
        return true;
    }
    bool has_rings = s->perf_on && perf_open_caught(&s->perf, &err);
    s->catch = s->perf_on && !has_rings ? NULL : catch_init(s->settings->frequency_hz, &err);
    if (s->catch != NULL && !(has_rings ? catch_on_rings(s->catch, &s->perf, &s->format, &err)
                                        : catch_perfless(s->catch, &err))) {
        catch_stop(s->catch);
        s->catch = NULL;
    }
    if (s->catch == NULL) {
        log_once(&s->log, LOG_WARNING, "%s; stacks of interpreters are not read", err.text);
        s->reads_runtimes = false;
    } else if (s->budget.measure != BUDGET_NOTHING) {
        catch_set_frequency(s->catch, s->budget.frequency_hz);
    }
    return s->catch != NULL;
}

static void catch_process(struct session *s, struct target *target)
{
    struct family family;
    uint32_t before = target->stack_bytes;
    target->caught = true;
    if (s->perf.sampling.stack_bytes > 0 && !s->is_coarse) {
        target->stack_bytes = DUMPS_MOST_BYTES;
    }
    bool good = family_list(&s->perf, &s->targets, target, &family) &&
                family_refollow(&s->perf, &family, 0);
    family_release(&family);
    session_follow_newborn(s);
    if (!good) {
        target->caught = false;
        target->stack_bytes = before;
        target->catch_refused = true;
        log_once_for(&s->log, LOG_WARNING, "descriptors to catch",
                     "%s: not enough descriptors to catch its samples one by one; its stacks are native "
                     "only. Raise ulimit -n",
                     target->name);
    }
}

static bool has_long_been_running(const struct session *s, const struct target *target)
{
    uint64_t start_ticks = START_S * NS_PER_S / s->accounts.tick_ns;
    return target->start_ticks != 0 && target->start_ticks + start_ticks < s->accounts.began_ticks;
}

static void say_hidden(struct session *s, const struct target *target)
{
    char why[ACCESS_TEXT_MAX], said[2 * ERR_TEXT_MAX];
    access_refusal(target->pid, ACCESS_LOOK, why);
    snprintf(said, sizeof said, "pid %u (%s) may not be looked into: %s", target->pid, target->name, why);
    log_once_for(&s->log, LOG_WARNING, why, "%s. Its CPU time is counted without stacks", said);
    unseen_note(&s->unseen, UNSEEN_MEMORY, said);
}

/* A process that is just becoming another program refuses for a moment what it allows before and after; then no rule
 * explains the refusal, and it is to be asked again. */
static bool is_passing(const struct target *target)
{
    struct access_verdict verdict;
    access_verdict_of(target->pid, ACCESS_LOOK, &verdict);
    return verdict.gate == ACCESS_GATE_MODULE && !target->was_hidden;
}

/* Without perf no record tells of mappings: those of a process that runs are read again, at first often
 * because it is starting, later for libraries that are loaded late. */
static void refresh_maps(struct session *s, uint64_t now_ns)
{
    unsigned left = MAPS_PER_ROUND;
    vec_each(&s->targets.all, slot)
    {
        struct target *target = *slot;
        bool polled = target->rung == RUNG_PROC || target->rung == RUNG_RUNTIME;
        if (!polled || target->ended || targets_is_left_out(target, now_ns) ||
            target->idle_polls > 0 || now_ns < target->maps_pace.again_ns || left == 0) {
            continue;
        }
        left--;
        bool good = targets_read_maps(&s->targets, target);
        bool hidden = !good && proc_exists(target->pid);
        bool passing = hidden && is_passing(target);
        if (hidden && !passing) {
            say_hidden(s, target);
        }
        target->was_hidden = hidden;
        const struct maps_reading reading = {
            .bytes = good ? s->targets.text.len : 0, /* a refusal leaves another process's text there */
            .is_new = !has_long_been_running(s, target),
            .found = target->caught,
            .passing = passing,
        };
        maps_pace_next(&target->maps_pace, &reading, now_ns);
    }
}

/* Without perf no record tells of an exec: what was found may be of a program that the filters leave out, although
 * the one before it fitted. */
static bool fits_still(struct session *s, struct target *target)
{
    uint64_t now_ns = clock_mono_ns();
    if (target->rung == RUNG_PROC) {
        choose_judge(&s->choose, target, now_ns);
    }
    return !targets_is_left_out(target, now_ns);
}

/* Has the samples of a process with a runtime caught; false when there is nothing to do. */
static bool catch_one(struct session *s, struct target *target)
{
    if (target->ended || target->caught || target->catch_refused || session_is_suspended(s) ||
        !fits_still(s, target) || !start_catching(s)) {
        return false;
    }
    session_publish_readers(s);
    if (target->rung == RUNG_PROC) {
        target->rung = RUNG_RUNTIME;
        target->caught = true;
    } else {
        catch_process(s, target);
    }
    return true;
}

void session_look_for_runtimes(struct session *s, uint64_t now_ns)
{
    if (!s->reads_runtimes) {
        return;
    }
    if (s->any_on_proc) {
        refresh_maps(s, now_ns);
    }
    if (readers_refresh(&s->readers, now_ns)) {
        session_publish_readers(s);
    }
    unsigned count = 0;
    for (size_t i = 0; s->reads_runtimes && i < s->readers.all.len && count < CATCH_PER_ROUND; i++) {
        count += catch_one(s, s->readers.all.at[i]->target);
    }
}

uint64_t session_lost_by_catchers(struct session *s)
{
    uint64_t lost = 0;
    for (size_t i = 0; s->catch != NULL && i < catch_cpu_count(s->catch); i++) {
        struct catch_counts counts;
        catch_counts(s->catch, i, &counts);
        lost += counts.lost;
    }
    return lost;
}

/* A share that is not what it could be has a reason. */
void session_say_trouble(struct session *s)
{
    const uint64_t *shares = s->profile->meta.shares;
    uint64_t all = 0;
    for (unsigned i = 0; i < SHARE_COUNT; i++) {
        all += shares[i];
    }
    const char *trouble = s->catch == NULL ? "" : catch_trouble(s->catch);
    if (all < SHARES_LEAST || shares[SHARE_PROVEN] * 10 >= all * 9 || trouble[0] == '\0') {
        return;
    }
    log_once(&s->log, LOG_WARNING, "%.0f %% of the interpreters' stacks are proven: %s",
             100.0 * (double)shares[SHARE_PROVEN] / (double)all, trouble);
}

/* ---- deep stacks ---- */

static bool is_deep(const struct target *target)
{
    bool on_perf = target->rung == RUNG_PERF || target->rung == RUNG_PERF_USER;
    return on_perf && !target->ended && !target->deep && !target->catch_refused &&
           target->stack_most > STACK_DEEP_BYTES;
}

/* Some stacks are larger than any copy: what lies beyond is read at the sample's moment. A program that
 * comes to a quarter of the largest copy may well pass it, and when it does, it does so for many samples
 * (a compiler's garbage collector recurses along its lists).
 * What one process of a family needs, the next one of its kind will need: compilers that a build starts
 * one by one. */
static void catch_deep(struct session *s, struct target *target)
{
    struct family family;
    bool good = family_list(&s->perf, &s->targets, target, &family) && start_catching(s);
    vec_each(&family.members, one)
    {
        (*one)->deep = (*one)->caught = good;
        (*one)->looked_space = 0;
    }
    good = good && family_refollow(&s->perf, &family, 0);
    target->catch_refused = !good;
    vec_each(&family.members, one)
    {
        (*one)->deep = (*one)->caught = good;
    }
    family_release(&family);
    session_follow_newborn(s);
    log_say(&s->log, LOG_DEBUG, "pid %u (%s): %s", target->pid, target->name,
            good ? "stacks are read beyond their copy from now on" : "deep stacks stay cut");
}

void session_catch_deep_stacks(struct session *s)
{
    for (size_t i = 0; s->reads_runtimes && !s->is_coarse && i < s->targets.all.len; i++) {
        if (is_deep(s->targets.all.at[i])) {
            catch_deep(s, s->targets.all.at[i]);
            return; /* one family per round */
        }
    }
}
