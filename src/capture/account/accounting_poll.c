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
    IDLE_POLLS = 10,
    EVALUATE_POLLS = 20,
    SKIPPED_POLLS_MAX = 5, /* a second each */
    THREADS_PER_POLL = 4,
    JOINED_SAMPLES_MIN = 20, /* that stand for what was used before them, too */
    STIRS_PART = 100, /* of the time since it was read: less is a process that sleeps and looks up now and then */
    UNREAD_NEW_MS = 2 * ACCOUNTING_POLL_MS, /* it was found, and gone before its first reading */
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
    target->runtime.timed_ns = parent != NULL && parent->runtime.timed_ns != 0; /* perf may sample it from now on */
    target->parent_pid = stat->ppid;
    target->start_ticks = stat->start_ticks;
    if (stat->start_ticks < a->began_ticks && accounting_adopt(a, target) && target->ended) {
        accounting_adopt_zombie(a, target); /* what it used before us is not this window's */
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
        return known->checks < STRANGER_CHECKS ? SCAN_LATER : a->follow_all ? SCAN_NEVER : SCAN_STRANGER;
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
            uint64_t delta = accounting_thread_ns(a, target, *tid);
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

/* A process whose runtime is read has its time by its samples, native threads' (stacks_add_settled) among them; what
 * they do not explain at the window's end was in threads too short for one. */
static void settle_samples(struct accounting *a, struct profile *p, struct target *target)
{
    uint64_t total_ns = target->account.pending_user_ns + target->account.pending_system_ns;
    uint64_t cpu_ns = beyond(total_ns, target->account.settled_ns), sampled_ns = target->account.sampled_ns;
    target->account.pending_user_ns = target->account.pending_system_ns = 0;
    if (cpu_ns == 0 && sampled_ns == 0) {
        return;
    }
    bool joined = target->account.joined_window == a->targets->window;
    bool stand_for_all = joined && sampled_ns >= target->account.joined_ns + JOINED_SAMPLES_MIN * a->period_ns;
    if (stand_for_all || cpu_ns <= sampled_ns + sampled_ns / 100 * WEIGH_MAX_PERCENT) {
        profile_weigh(p, targets_process_id(a->targets, p, target), sampled_ns, cpu_ns);
    } else {
        profile_account(p, targets_thread_id(a->targets, p, target, target->pid), ACCOUNT_LOST, cpu_ns - sampled_ns);
    }
}

/* Perf's samples of short threads are of their last moments: where they are the smaller part, they would spoil the
 * rest. */
static void forget_few(struct accounting *a, struct profile *p, struct target *target, uint64_t used_ns)
{
    uint32_t process = target->account.sampled_ns < used_ns / 2 ? targets_process_id(a->targets, p, target) : 0;
    if (process != 0) {
        profile_forget_samples(p, process);
        target->account.sampled_ns = 0;
    }
}

/* Of one that was polled until now, what perf's samples of this window stand for is beside what was attributed. */
bool accounting_end_events(struct accounting *a, struct profile *p, struct target *target)
{
    struct target_account *account = &target->account;
    bool on_perf = !accounting_is_polled(target);
    uint64_t used_ns = account->sampled_ns, earlier_ns = cpu_times_sum(&account->before);
    if (on_perf && !accounting_adopt(a, target)) {
        return false;
    }
    if (on_perf) {
        uint64_t told_ns = beyond(cpu_times_sum(&account->last), earlier_ns + target->filter.excluded_ns);
        told_ns = beyond(told_ns, account->renamed_ns);
        used_ns = told_ns > used_ns ? told_ns : used_ns;
        forget_few(a, p, target, used_ns);
    }
    used_ns = target->filter.skipped ? 0 : used_ns;
    if (account->renamed_ns > 0) {
        accounting_add_to_process(a, p, target, account->renamed_ns);
    }
    account->pending_user_ns += used_ns;
    account->attributed_ns += used_ns;
    account->joined_ns = account->sampled_ns;
    account->joined_window = a->targets->window;
    account->since_read_ns = account->renamed_ns = account->carried_ns = 0;
    return true;
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

/* What a target used since it was polled last. */
static void attribute(struct accounting *a, struct target *target, const struct cpu_times *was)
{
    uint64_t user_ns = beyond(target->account.last.user_ns, was->user_ns);
    uint64_t system_ns = beyond(target->account.last.system_ns, was->system_ns);
    uint64_t children_ns = beyond(target->account.last.children_ns, was->children_ns);
    if (a->selection != NULL && a->selection->filters && (a->polls + target->pid) % EVALUATE_POLLS == 0) {
        accounting_evaluate(a, target); /* an exec that leaves the name as it is */
    }
    target->account.idle_polls = user_ns + system_ns > 0 ? 0 : target->account.idle_polls + 1;
    target->account.children.waited_ns += children_ns;
    target->account.lifetime_ns += user_ns + system_ns + children_ns;
    if (targets_is_excluded(target, a->now_ns)) {
        return;
    }
    target->filter.skipped = false;
    target->account.pending_user_ns += user_ns;
    target->account.pending_system_ns += system_ns;
    target->account.attributed_ns += user_ns + system_ns;
}

/* No record tells of an exec here. What waits for its threads to be asked was used under the name of until now. */
static void follow_name(struct accounting *a, struct profile *p, struct target *target, struct str comm)
{
    if (!str_eq(comm, str_of(target->name))) {
        if (target->capture_mode == CAPTURE_PROC) {
            share_out(a, p, target);
        }
        targets_rename(a->targets, target);
        accounting_evaluate(a, target);
    }
}

static void read_target(struct accounting *a, struct profile *p, struct target *target, bool last)
{
    struct cpu_times was = target->account.last;
    uint64_t read_ns = target->account.read_ns;
    uint64_t since_ns = read_ns > 0 ? beyond(a->now_ns, read_ns) : UNREAD_NEW_MS * NS_PER_MS;
    struct str comm;
    target->account.final_known = accounting_update_times(a, target, &comm);
    if (target->account.final_known) {
        follow_name(a, p, target, comm);
        attribute(a, target, &was);
        uint64_t used_ns = beyond(cpu_times_sum(&target->account.last), cpu_times_sum(&was));
        a->stirred_ns = used_ns * STIRS_PART > since_ns ? a->now_ns : a->stirred_ns;
        a->polled_alive = a->polled_alive || !target->ended;
        target->account.read_ns = a->now_ns;
    }
    target->account.ends = target->ended;
    target->account.unread_ns = target->account.final_known ? 0 : since_ns;
    /* of one whose runtime is read there may be samples still */
    if (target->capture_mode == CAPTURE_PROC && (last || target->ended || threads_are_due(a, target))) {
        share_out(a, p, target);
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
        target->account.read_ns = used_ns == 0 ? a->now_ns : target->account.read_ns;
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

/* Somebody has waited for a child: it may be one that was not due, or was read before its parent, or a child of that.
 * Whether it is gone is one system call. */
static void read_gone(struct accounting *a, struct profile *p, bool last)
{
    vec_each(&a->targets->all, slot)
    {
        struct target *child = *slot;
        uint64_t cpu_ns;
        if (accounting_is_polled(child) && !child->ended && !clock_process_cpu_ns(child->pid, &cpu_ns)) {
            read_target(a, p, child, last);
        }
    }
}

/* Parents are read before their children, mostly: a child that its parent's times hold by then is gone when it is read,
 * and is settled first. */
void accounting_poll_all(struct accounting *a, struct profile *p, bool last)
{
    a->polls++;
    a->polled_alive = false;
    a->now_ns = clock_mono_ns();
    bool any_waited = false;
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (accounting_is_polled(target) && !target->ended &&
            (last || (is_due(a, target) && !has_slept(a, target)))) {
            read_target(a, p, target, last);
            any_waited = any_waited || target->account.children.waited_ns > 0;
        }
    }
    if (any_waited && !last) {
        read_gone(a, p, last);
    }
    accounting_leave_all_on_perf(a, any_waited);
    accounting_bury_zombies(a);
    accounting_leave_all_ended(a, p);
    for (size_t i = a->targets->all.len; i-- > 0;) {
        struct target *target = a->targets->all.at[i];
        if (accounting_is_polled(target) && target->account.read_ns == a->now_ns) {
            accounting_settle_children(a, p, target);
        }
        if (last && target->capture_mode == CAPTURE_RUNTIME) {
            settle_samples(a, p, target);
        }
    }
}

void accounting_poll(struct accounting *a, struct profile *p)
{
    accounting_poll_all(a, p, false);
    accounting_tidy(a, p, 0);
}

/* Samples of both kinds explain the whole window together: it counts as if it had had events from its beginning on. */
static void keep_samples(struct accounting *a, struct profile *p, struct target *target)
{
    struct target_account *account = &target->account;
    uint64_t used_ns = beyond(account->pending_user_ns + account->pending_system_ns, account->settled_ns);
    account->before = account->last;
    used_ns -= take(&account->before.user_ns, used_ns); /* which of the two does not matter: the sum does */
    (void)take(&account->before.system_ns, used_ns);
    if (account->settled_ns > 0) {
        accounting_add_to_process(a, p, target, account->settled_ns);
    }
    account->pending_user_ns = account->pending_system_ns = 0;
}

static void keep_polled(struct accounting *a, struct profile *p, struct target *target)
{
    share_out(a, p, target);
    if (target->account.attributed_ns + target->account.sampled_ns > 0) {
        accounting_add_to_process(a, p, target, target->account.attributed_ns + target->account.sampled_ns);
    }
    target->account.sampled_ns = 0;
    target->account.before = target->account.last;
}

void accounting_begin_events(struct accounting *a, struct profile *p, struct target *target)
{
    a->now_ns = clock_mono_ns();
    read_target(a, p, target, false);
    accounting_settle_children(a, p, target);
    if (target->capture_mode == CAPTURE_RUNTIME) {
        keep_samples(a, p, target);
    } else {
        keep_polled(a, p, target);
    }
    target->account.attributed_ns = target->account.settled_ns = target->account.since_read_ns = 0;
    target->account.read_ns = clock_mono_ns();
}
