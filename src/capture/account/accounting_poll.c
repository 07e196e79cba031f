/* accounting_poll: CPU accounting without perf events. Ten times a second the times of the targets in CAPTURE_PROC and
 * CAPTURE_RUNTIME are read, and what they used since is attributed: shared out among the threads, or left to the
 * samples of a runtime's stacks. Reading is what costs here, so who sleeps or has many threads is read more rarely. */
#include "capture/account/accounting_private.h"
#include "base/time.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    STRANGER_CHECKS = 3,   /* its parent may stand later in the list, or not yet be a target */
    GENERATIONS_MAX = 64,
    IDLE_POLLS = 10,
    EVALUATE_POLLS = 20,
    SKIPPED_POLLS_MAX = 5, /* a second each */
    THREADS_AT_ONCE = 250, /* whose times the kernel adds up at a poll, 0.15 to 0.6 us each */
    THREADS_PER_POLL = 4,
};

static bool begin_polled(struct accounting *a, const struct proc_stat *stat)
{
    struct target *target = targets_begin(a->targets, stat->pid);
    if (target == NULL) {
        return false;
    }
    const struct target *parent = targets_find(a->targets, stat->ppid);
    target->capture_mode = CAPTURE_PROC;
    target->unsampled.is = parent != NULL && parent->unsampled.is;
    target->parent_pid = stat->ppid;
    target->start_ticks = stat->start_ticks;
    if (stat->start_ticks < a->began_ticks) {
        (void)accounting_adopt(a, target); /* what it used before us is not this window's */
    }
    accounting_evaluate(a, target);
    return true;
}

/* A target's child is one even when it is excluded: its time must not pass for its parent's. */
static enum scan_answer consider(void *context, const struct proc_stat *stat,
                                 struct scan_known *known)
{
    struct accounting *a = context;
    const struct target *parent = targets_find(a->targets, stat->ppid);
    bool ours = parent != NULL && accounting_is_polled(parent);
    if (!ours && (!a->follow_all || stat_has_ended(stat))) {
        return known->checks < STRANGER_CHECKS ? SCAN_LATER : SCAN_NEVER;
    }
    if (!ours && a->selection != NULL && !selection_accepts(a->selection, stat, known)) {
        return SCAN_LATER;
    }
    return begin_polled(a, stat) ? SCAN_TAKEN : SCAN_LATER;
}

void accounting_discover(struct accounting *a, uint64_t now_ns)
{
    scan_round(&a->scan, now_ns, consider, a);
}

static void account_thread(struct accounting *a, struct profile *p, struct target *target,
                           uint32_t tid, uint64_t user_ns, uint64_t system_ns)
{
    uint32_t thread = targets_thread_id(a->targets, p, target, tid);
    profile_account(p, thread, ACCOUNT_NATIVE_NO_PERF, user_ns);
    profile_account(p, thread, ACCOUNT_KERNEL_HIDDEN, system_ns);
}

/* A thread's CPU time since it was read last. */
static uint64_t thread_delta_ns(struct accounting *a, const struct target *target, uint32_t tid)
{
    struct target_thread *thread = targets_thread(a->targets, target->pid, tid);
    struct proc_schedstat sched = {0};
    if (thread == NULL || !proc_read(target->pid, tid, "schedstat", &a->text, NULL) ||
        !schedstat_parse(buf_slice(&a->text), &sched, NULL)) {
        return 0;
    }
    uint64_t delta = beyond(sched.cpu_ns, thread->cpu_ns);
    thread->cpu_ns = sched.cpu_ns;
    return delta;
}

/* Shares the process's new time out among its threads by their own clocks, which are exact where the
 * process's accounting counts in ticks. The first thread has the rest, and ended threads' time with it. */
static void share_out(struct accounting *a, struct profile *p, struct target *target)
{
    uint64_t user_ns = target->account.pending_user_ns, left_user = user_ns;
    uint64_t system_ns = target->account.pending_system_ns, left_system = system_ns;
    uint64_t total_ns = user_ns + system_ns;
    target->account.pending_user_ns = target->account.pending_system_ns = 0;
    if (total_ns == 0) {
        return;
    }
    if (target->threads_seen > 1 && proc_list_threads(target->pid, &a->pids, NULL)) {
        vec_each(&a->pids.ids, tid)
        {
            if (*tid == target->pid) {
                continue;
            }
            uint64_t delta = thread_delta_ns(a, target, *tid);
            delta = delta < total_ns ? delta : total_ns;
            uint64_t user = (uint64_t)((double)user_ns * (double)delta / (double)total_ns);
            uint64_t system = delta - user;
            user = user < left_user ? user : left_user;
            system = system < left_system ? system : left_system;
            account_thread(a, p, target, *tid, user, system);
            left_user -= user;
            left_system -= system;
        }
    }
    account_thread(a, p, target, target->pid, left_user, left_system);
}

/* A process whose runtime is read has its time by its samples; what they do not explain at the window's
 * end has a name. */
static void settle_samples(struct accounting *a, struct profile *p, struct target *target)
{
    uint64_t total_ns = target->account.pending_user_ns + target->account.pending_system_ns;
    uint64_t cpu_ns = beyond(total_ns, target->account.settled_ns), sampled_ns = target->account.sampled_ns;
    target->account.pending_user_ns = target->account.pending_system_ns = 0;
    if (cpu_ns == 0 && sampled_ns == 0) {
        return;
    }
    if (cpu_ns <= sampled_ns + sampled_ns / 100 * WEIGH_MAX_PERCENT) {
        profile_weigh(p, targets_process_id(a->targets, p, target), sampled_ns, cpu_ns);
    } else {
        account_thread(a, p, target, target->pid, cpu_ns - sampled_ns, 0);
    }
}

/* Time of children that ended between two polls: it stands in the parent's times once they were
 * waited for, beyond what was already attributed to children that were seen. */
static uint64_t unseen_children_ns(struct target *target, const struct cpu_times *was)
{
    uint64_t waited_for = beyond(target->account.last.children_ns, was->children_ns);
    uint64_t lost = target->account.lost_children_ns, known = waited_for < lost ? waited_for : lost;
    target->account.lost_children_ns -= known;
    target->account.lifetime_ns += known; /* it stands in its parent's times in turn */
    return waited_for - known;
}

/* Whose times hold an ended process's: its parent's, or those of that one's parent. */
static struct target *heir_of(struct accounting *a, const struct target *target)
{
    struct target *heir = targets_find(a->targets, target->parent_pid);
    for (unsigned i = 0; heir != NULL && heir->ended && i < GENERATIONS_MAX; i++) {
        heir = targets_find(a->targets, heir->parent_pid);
    }
    return heir;
}

/* The cost follows what runs: an idle process is read ten times more rarely, one of thousands of
 * threads as well, and of a process's threads about forty per second are read. */
static bool is_due(const struct accounting *a, const struct target *target)
{
    uint32_t every = target->threads_seen / THREADS_AT_ONCE + 1;
    every = target->account.idle_polls >= IDLE_POLLS && every < IDLE_POLLS ? (uint32_t)IDLE_POLLS : every;
    return (a->polls + target->pid) % every == 0;
}

static bool threads_are_due(const struct accounting *a, const struct target *target)
{
    uint32_t every = target->threads_seen / THREADS_PER_POLL + 1;
    return target->ended || (a->polls + target->pid) % every == 0;
}

/* What a target used since it was polled last, and children of it that nobody saw. */
static void attribute(struct accounting *a, struct profile *p, struct target *target,
                        const struct cpu_times *was)
{
    uint64_t user_ns = beyond(target->account.last.user_ns, was->user_ns);
    uint64_t system_ns = beyond(target->account.last.system_ns, was->system_ns);
    uint64_t children_ns = unseen_children_ns(target, was);
    if (a->selection != NULL && a->selection->filters && (a->polls + target->pid) % EVALUATE_POLLS == 0) {
        accounting_evaluate(a, target); /* an exec that leaves the name as it is */
    }
    target->account.idle_polls = user_ns + system_ns > 0 ? 0 : target->account.idle_polls + 1;
    target->account.lifetime_ns += user_ns + system_ns + children_ns;
    if (targets_is_excluded(target, a->now_ns)) {
        return;
    }
    target->filter.skipped = false;
    target->account.pending_user_ns += user_ns;
    target->account.pending_system_ns += system_ns;
    children_ns = a->selection != NULL && a->selection->active ? 0 : children_ns;
    if (children_ns > 0) {
        account_thread(a, p, target, target->pid, children_ns, 0);
    }
    target->account.attributed_ns += user_ns + system_ns + children_ns;
}

static void poll_target(struct accounting *a, struct profile *p, struct target *target, bool last)
{
    struct cpu_times was = target->account.last;
    bool known = accounting_update_times(a, target);
    if (known) {
        attribute(a, p, target, &was);
        a->polled_alive = a->polled_alive || !target->ended;
    }
    if (target->capture_mode == CAPTURE_RUNTIME) {
        /* of one that has ended there may be samples still */
        last ? settle_samples(a, p, target) : (void)0;
    } else if (last || target->ended || threads_are_due(a, target)) {
        share_out(a, p, target);
    }
    struct target *heir = target->ended ? heir_of(a, target) : NULL;
    if (heir != NULL) {
        /* a zombie's times hold the children it waited for; of one that is gone all are supposed to be */
        heir->account.lost_children_ns += target->account.lifetime_ns;
        heir->account.lost_children_ns += known ? 0 : target->account.lost_children_ns;
    }
}

/* One system call in the place of two dozen microseconds of reading. A process that used no CPU time has
 * neither ended nor become another program nor waited for a child; one that hardly runs, and used less than a
 * tick, is read now and then. */
static bool has_slept(const struct accounting *a, struct target *target)
{
    bool settled = target->account.pending_user_ns + target->account.pending_system_ns == 0;
    uint64_t now_ns = 0;
    if (target->account.idle_polls == 0 && target->threads_seen >= THREADS_AT_ONCE) {
        return false; /* it ran just now, and the kernel would add up its threads' times twice */
    }
    if ((!settled && target->capture_mode != CAPTURE_RUNTIME) ||
        !clock_process_cpu_ns(target->pid, &now_ns)) {
        return false;
    }
    uint64_t used_ns = beyond(now_ns, target->account.clock_ns);
    bool little = target->account.idle_polls >= IDLE_POLLS && used_ns < a->tick_ns &&
                  target->account.skipped_polls < SKIPPED_POLLS_MAX;
    if (target->account.clock_ns != 0 && (used_ns == 0 || little)) {
        target->account.idle_polls++;
        target->account.skipped_polls++;
        /* it lives, and may end asleep: of age it was in, though it has no CPU time */
        target->filter.skipped = target->filter.skipped && targets_is_excluded(target, a->now_ns);
        return true;
    }
    target->account.clock_ns = now_ns;
    target->account.skipped_polls = 0;
    return false;
}

void accounting_poll_all(struct accounting *a, struct profile *p, bool last)
{
    a->polls++;
    a->polled_alive = false;
    a->now_ns = clock_mono_ns();
    /* children first: a parent's times may already hold those of a child that has just ended */
    for (size_t i = a->targets->all.len; i-- > 0;) {
        struct target *target = a->targets->all.at[i];
        if (accounting_is_polled(target) && !target->ended &&
            (last || (is_due(a, target) && !has_slept(a, target)))) {
            poll_target(a, p, target, last);
        } else if (last && target->ended && target->capture_mode == CAPTURE_RUNTIME) {
            settle_samples(a, p, target);
        }
    }
}
void accounting_poll(struct accounting *a, struct profile *p)
{
    accounting_poll_all(a, p, false);
    accounting_tidy(a, p, 0);
}
void accounting_begin_events(struct accounting *a, struct profile *p, struct target *target)
{
    poll_target(a, p, target, false);
    if (target->capture_mode == CAPTURE_RUNTIME) {
        settle_samples(a, p, target);
    } else {
        share_out(a, p, target);
    }
    if (target->account.attributed_ns + target->account.sampled_ns > 0) {
        accounting_add_to_process(a, p, target, target->account.attributed_ns + target->account.sampled_ns);
    }
    target->account.attributed_ns = target->account.settled_ns = 0;
    target->account.sampled_ns = target->account.since_read_ns = 0;
    target->account.before = target->account.last;
    target->account.read_ns = clock_mono_ns();
}
