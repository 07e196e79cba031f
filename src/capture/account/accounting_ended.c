/* accounting_ended: processes that ended, and cannot be asked any more. What is known of them, what they may have used
 * beyond that, and which of them are dropped before the window ends: of those that came and went without a sample one
 * per process tree and name stands for all, so that churn costs no memory. */
#include "capture/account/accounting_private.h"
#include "base/time.h"
#include "os/clock.h"

#include <string.h>

enum {
    DROP_AFTER_MS = 1000, /* records of a process that ended may still wait in a ring */
    LATE_MS = 4, /* the kernel brings the time of who runs up to date at each of its own ticks */
    EXEC_PERIODS_MIN = 2, /* for which a process is read when its name changes */
    RENAME_APART_MS = 50, /* without an exec, since it was read last */
};

/* 0 is no process: the profile is full, and element 0 stays as it is. */
void accounting_add_to_process(struct accounting *a, struct profile *p, struct target *target,
                           uint64_t cpu_ns)
{
    uint32_t process = targets_process_id(a->targets, p, target);
    if (process != 0) {
        p->processes.at[process].cpu_ns += cpu_ns;
    }
}

/* What it used in this window before time_ns, of which it is known only later: what it used between the two readings
 * around it is shared out by time; after it, it ran at most all the time. */
static uint64_t used_before_ns(struct accounting *a, struct target *target, uint64_t time_ns)
{
    uint64_t earlier_ns = cpu_times_sum(&target->account.before), now_ns = clock_mono_ns();
    uint64_t known_ns = beyond(cpu_times_sum(&target->account.last), earlier_ns);
    uint64_t from_ns = target->account.read_ns != 0 ? target->account.read_ns : target->began_ns;
    if (!accounting_read(a, target, now_ns)) {
        return known_ns;
    }
    uint64_t used_ns = beyond(cpu_times_sum(&target->account.last), earlier_ns + known_ns);
    uint64_t least_ns = beyond(used_ns, beyond(now_ns, time_ns)), part_ns = 0;
    if (from_ns != 0 && from_ns < time_ns && time_ns < now_ns) {
        part_ns = (uint64_t)((double)used_ns * (double)(time_ns - from_ns) / (double)(now_ns - from_ns));
    }
    return known_ns + (part_ns > least_ns ? part_ns : least_ns);
}

/* Some show by their name what they do, and change it a thousand times a second: no exec is so frequent. */
static bool is_new_name(const struct target *target, const struct record *record)
{
    bool recent = beyond(record->time_ns, target->account.read_ns) < RENAME_APART_MS * NS_PER_MS;
    return record->as.comm.exec || (!recent && !str_eq(record->as.comm.name, str_of(target->name)));
}

/* Samples of bursts, if there are enough, stand for all that it did by this name, and for nothing that it does by
 * another after an exec. */
static void settle_bursts(struct accounting *a, struct profile *p, struct target *target, uint64_t used_ns)
{
    uint64_t sampled_ns = target->account.sampled_ns;
    bool few = target->bursts.samples < BURST_SAMPLES_MIN && used_ns > sampled_ns;
    uint32_t thread = targets_thread_id(a->targets, p, target, target->pid);
    profile_settle(p, targets_process_id(a->targets, p, target), sampled_ns, few ? sampled_ns : used_ns);
    profile_account(p, thread, ACCOUNT_LOST, few ? used_ns - sampled_ns : 0);
    target->account.renamed_ns += used_ns;
    target->account.sampled_ns = target->bursts.samples = 0;
}

static bool settles_bursts(const struct accounting *a, const struct target *target, const struct record *record)
{
    return record->as.comm.exec && target->bursts.samples > 0 && target->account.sampled_ns > 0 &&
           target->account.read_ns != 0 && a->unsampled_ns == 0 && target->capture_mode == CAPTURE_PERF &&
           !str_eq(record->as.comm.name, str_of(target->name));
}

/* Most do it right after their birth, and are not read for it. */
void accounting_note_rename(struct accounting *a, struct profile *p, const struct record *record)
{
    uint64_t time_ns = record->time_ns;
    struct target *target = targets_find(a->targets, record->pid);
    if (target == NULL || accounting_is_polled(target) || target->filter.skipped || !is_new_name(target, record) ||
        (target->began_ns == 0 && cpu_times_sum(&target->account.before) == 0)) { /* the command: a copy of us */
        return;
    }
    uint64_t threads = accounting_threads(target);
    uint64_t most_ns = target->began_ns == 0 ? UINT64_MAX : beyond(time_ns, target->began_ns) * threads;
    uint64_t explained_ns = target->account.sampled_ns + target->filter.excluded_ns + target->account.renamed_ns;
    if (most_ns < explained_ns + EXEC_PERIODS_MIN * a->period_ns) {
        return;
    }
    uint64_t read_ns = target->account.read_ns, used_ns = used_before_ns(a, target, time_ns);
    used_ns = used_ns < most_ns ? used_ns : most_ns;
    uint64_t rest_ns = beyond(used_ns, explained_ns);
    uint64_t by_name_ns = beyond(used_ns, explained_ns - target->account.sampled_ns);
    bool is_read = read_ns < time_ns && target->account.read_ns >= time_ns; /* or it has ended, or is renamed again */
    if (is_read && by_name_ns > 0 && settles_bursts(a, target, record)) {
        settle_bursts(a, p, target, by_name_ns);
        return;
    }
    bool stands_for_all = a->unsampled_ns > 0 || target->bursts.samples > 0; /* samples that were taken seldom */
    if (rest_ns > 0 && !stands_for_all && !accounting_is_in_step(a, target, rest_ns)) {
        target->account.renamed_ns += rest_ns;
        uint32_t thread = targets_thread_id(a->targets, p, target, target->pid);
        profile_account(p, thread, accounting_rest_kind(target), rest_ns);
    }
}

/* By the samples; of those of bursts there are few, and what it did before the last refresh says more. */
static uint64_t since_refresh_ns(const struct target *target)
{
    return target->bursts.samples == 0
               ? target->account.since_read_ns
               : beyond(target->ended_ns, target->account.read_ns) * target->account.ran_permille / 1000;
}

/* Up to the last refresh the kernel's own figure, from there on the samples. */
static uint64_t known_alone_ns(const struct target *target)
{
    uint64_t read_ns = beyond(cpu_times_sum(&target->account.last), cpu_times_sum(&target->account.before));
    return target->account.read_ns == 0 ? target->account.sampled_ns + target->filter.excluded_ns
                                        : read_ns + since_refresh_ns(target);
}

uint64_t accounting_known_ns(const struct target *target)
{
    return known_alone_ns(target) + target->account.folded_known_ns;
}

/* How much more a process that ended may have used, at most: what its threads can have run since it began or was read,
 * and hardly more than one period of each, because beyond that they would have been sampled again. */
static uint64_t tail_most_ns(const struct accounting *a, const struct target *target)
{
    const struct target_account *account = &target->account;
    bool is_read = account->read_ns != 0, hides = target->capture_mode == CAPTURE_PERF_USER;
    uint64_t threads = accounting_threads(target), from_ns = is_read ? account->read_ns : target->began_ns;
    uint64_t cut_ns = !is_read ? 0 : accounting_is_exact(target) ? LATE_MS * NS_PER_MS : 2 * a->tick_ns;
    uint64_t most_ns = threads * a->period_ns + cut_ns;
    if (from_ns == 0) {
        return most_ns;
    }
    uint64_t at_once = a->processors != 0 && a->processors < threads ? a->processors : threads;
    uint64_t known_ns = is_read ? account->since_read_ns : known_alone_ns(target);
    uint64_t ran_ns = beyond(beyond(target->ended_ns, from_ns) * at_once + cut_ns, known_ns) + 1;
    return hides || ran_ns < most_ns ? ran_ns : most_ns; /* kernel code that is not sampled may run however long */
}

/* What it did before it did since. */
static uint64_t as_before_ns(const struct target *target)
{
    uint64_t since_ns = beyond(target->ended_ns, target->account.read_ns);
    return beyond(since_ns * target->account.ran_permille / 1000, target->account.since_read_ns);
}

/* A process of one thread that has a child waits for it: most are shells. */
static uint64_t alone_ns(const struct target *target)
{
    if (target->began_ns == 0) {
        return UINT64_MAX;
    }
    if (accounting_threads(target) > 1) {
        return target->account.ran_permille == 0 ? UINT64_MAX : 0;
    }
    uint64_t lived_ns = beyond(beyond(target->ended_ns, target->began_ns), target->account.waited.ns);
    return beyond(lived_ns, known_alone_ns(target)) + 1;
}

struct tail accounting_tail(const struct accounting *a, const struct target *target)
{
    uint64_t up_to_ns[TAIL_PARTS] = {[TAIL_AS_BEFORE] = as_before_ns(target), [TAIL_ALONE] = alone_ns(target)};
    uint64_t most_ns = tail_most_ns(a, target), given_ns = 0;
    up_to_ns[TAIL_AT_MOST] = most_ns;
    struct tail tail = target->account.folded_tail;
    for (unsigned i = 0; i < TAIL_PARTS; i++) {
        uint64_t part_ns = beyond(up_to_ns[i] < most_ns ? up_to_ns[i] : most_ns, given_ns);
        tail.ns[i] += part_ns;
        given_ns += part_ns;
    }
    return tail;
}

/* Of all of one tree and name that came and went unseen between two refreshes one stands for the others: what they
 * used is known as a sum only, and hundreds per second of them would fill window and profile. */
static bool is_folded(struct accounting *a, struct target *target)
{
    uint64_t key = hash_u64(target->tree) ^ str_hash(str_of(target->name)) ^
                   target->capture_mode ^ (uint64_t)target->filter.skipped << 32;
    struct map_slot *slot = map_find(&a->folded, key);
    struct target *first = slot == NULL ? NULL : (struct target *)(uintptr_t)slot->value;
    if (first == NULL) {
        (void)map_put(&a->folded, key, (uintptr_t)target);
        return false;
    }
    if (first == target || strcmp(first->name, target->name) != 0) {
        return false;
    }
    first->account.folded = true;
    struct tail tail = accounting_tail(a, target);
    tail_add(&first->account.folded_tail, &tail);
    first->account.folded_known_ns += accounting_known_ns(target);
    a->ended_excluded += target->filter.skipped;
    return true;
}

struct drop_context {
    struct accounting *accounting;
    struct profile *profile; /* null: those on perf */
    uint64_t now_ns;
};

/* What counts for it counts for all that it started since, under its pid. */
static bool has_own_events(const struct target *target)
{
    return target->runtime.followed_ns != 0 || target->began_ns == 0;
}

static bool is_done(void *context, struct target *target)
{
    const struct drop_context *t = context;
    struct accounting *a = t->accounting;
    bool ran_before = target->start_ticks != 0 && target->start_ticks < a->began_ticks;
    if (ran_before || target->runtime.reader != NULL || target->account.sampled_ns > 0 ||
        target->account.settled_ns > 0 || target->account.renamed_ns > 0) {
        return false;
    }
    if (t->profile != NULL) {
        if (target->capture_mode != CAPTURE_PROC) {
            return false;
        }
        if (target->account.attributed_ns > 0) {
            accounting_add_to_process(a, t->profile, target, target->account.attributed_ns);
        }
        /* of age by now, though it slept since */
        a->ended_excluded += target->filter.skipped && targets_is_excluded(target, a->now_ns);
        return true;
    }
    if (target->ended_ns == 0) {
        target->ended_ns = t->now_ns; /* no record has come yet */
    }
    return !accounting_is_polled(target) && !has_own_events(target) && target->account.attributed_ns == 0 &&
           target->window != a->targets->window &&
           t->now_ns >= target->ended_ns + DROP_AFTER_MS * NS_PER_MS && is_folded(a, target);
}

void accounting_tidy(struct accounting *a, struct profile *p, uint64_t now_ns)
{
    struct drop_context context = {a, p, now_ns};
    targets_drop(a->targets, is_done, &context); /* none that ended at this very reading */
    targets_set_aside(a->targets);
}
