#include "capture/account/accounting.h"
#include "base/err.h"
#include "base/intern.h"
#include "base/time.h"
#include "capture/account/trees.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    TEXT_MAX = 64 * 1024,
    GLANCE_ALL_MAX = 16,  /* beyond, only targets that were sampled since are read again */
    GLANCE_US_PER_THREAD = 500, /* between two glances at one target */
    GLANCE_AGE_SHARE = 16, /* and so small a part of its life, … */
    GLANCE_MOST_MS = 1000, /* … but at most this: if it ends now, its samples since tell the rest */
    WEIGH_MAX_PERCENT = 15,
    STRANGER_LOOKS = 3,   /* its parent may stand later in the list, or not yet be a target */
    GENERATIONS_MAX = 64,
    SPENT_AFTER_MS = 1000, /* records of a process that ended may still wait in a ring */
    IDLE_POLLS = 10,
    JUDGE_POLLS = 20,
    SKIPPED_POLLS_MAX = 5, /* a second each */
    THREADS_PER_LOOK = 250, /* whose times the kernel adds up at a poll, 0.15 to 0.6 us each */
    THREADS_PER_POLL = 4,
    BURST_SAMPLES_LEAST = 20,
    RATE_TICKS = 10, /* that make a rate: in fewer one tick is too much of it */
};

static bool read_stat(struct accounting *a, uint32_t pid, uint32_t tid, struct proc_stat *out)
{
    return proc_read(pid, tid, "stat", &a->text, NULL) &&
           stat_parse(buf_slice(&a->text), out, NULL);
}

void accounting_init(struct accounting *a, struct targets *targets, uint64_t period_ns,
                   bool follow_all)
{
    *a = (struct accounting){.targets = targets,
                           .tick_ns = proc_tick_ns(),
                           .period_ns = period_ns,
                           .follow_all = follow_all};
    buf_init(&a->text, TEXT_MAX);
    scan_init(&a->scan, targets);
    struct proc_stat own;
    a->began_ticks = read_stat(a, proc_own_pid(), 0, &own) ? own.start_ticks : 0;
}

void accounting_release(struct accounting *a)
{
    buf_release(&a->text);
    vec_release(&a->pids.ids);
    scan_release(&a->scan);
    map_release(&a->folded);
}

static struct cpu_times times_of(const struct accounting *a, const struct proc_stat *stat)
{
    return (struct cpu_times){
        .user_ns = stat->utime_ticks * a->tick_ns,
        .system_ns = stat->stime_ticks * a->tick_ns,
        .children_ns = (stat->cutime_ticks + stat->cstime_ticks) * a->tick_ns,
    };
}

static uint64_t beyond(uint64_t value, uint64_t base)
{
    return value > base ? value - base : 0;
}

static uint64_t sum_of(const struct cpu_times *times)
{
    return times->user_ns + times->system_ns;
}

/* Its CPU time comes from /proc, not from events. */
static bool is_polled(const struct target *target)
{
    return target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
}

static void judge(struct accounting *a, struct target *target)
{
    if (a->selection != NULL) {
        selection_evaluate(a->selection, target, clock_mono_ns());
    }
}

/* Reads the present times; notes the end of the process. A zombie's times are final and readable; what
 * is known to have ended and is no zombie is another process under the same pid. */
static bool update_times(struct accounting *a, struct target *target)
{
    struct proc_stat stat;
    if (targets_find(a->targets, target->pid) != target || !read_stat(a, target->pid, 0, &stat) ||
        !targets_may_be(target, stat.start_ticks) ||
        (target->ended && !stat_has_ended(&stat))) {
        target->ended = target->ended || a->began_ticks != 0;
        return false;
    }
    target->start_ticks = stat.start_ticks;
    target->account.last = times_of(a, &stat);
    target->threads_seen = stat.num_threads;
    target->parent_pid = stat.ppid; /* an orphan's next parent waits for it */
    target->ended = stat_has_ended(&stat);
    if (is_polled(target) && !str_eq(stat.comm, str_of(target->name))) {
        targets_rename(a->targets, target); /* no record tells of an exec here */
        judge(a, target);
    }
    return true;
}

bool accounting_adopt(struct accounting *a, struct target *target)
{
    if (!update_times(a, target)) {
        return false;
    }
    target->account.before = target->account.last;
    target->account.lifetime_ns = sum_of(&target->account.last) + target->account.last.children_ns;
    return true;
}

static bool glance(struct accounting *a, struct target *target, uint64_t now_ns)
{
    uint64_t used_ns = sum_of(&target->account.last), apart_ns = beyond(now_ns, target->account.read_ns);
    if (!update_times(a, target)) {
        return false;
    }
    if (target->account.read_ns != 0 && apart_ns >= RATE_TICKS * a->tick_ns) {
        target->account.ran_permille = beyond(sum_of(&target->account.last), used_ns) * 1000 / apart_ns;
    }
    target->account.read_ns = now_ns;
    target->account.since_read_ns = 0;
    return true;
}

bool accounting_cpu_time(struct accounting *a, struct target *target, uint64_t *cpu_ns)
{
    if (target->ended || !glance(a, target, clock_mono_ns())) {
        return false;
    }
    *cpu_ns = target->account.last.user_ns;
    *cpu_ns += target->capture_mode == CAPTURE_PERF_USER ? 0 : target->account.last.system_ns;
    return true;
}

bool accounting_is_running(struct accounting *a, const struct target *target)
{
    struct proc_stat stat;
    return read_stat(a, target->pid, 0, &stat) && !stat_is_ending(&stat) &&
           (target->start_ticks == 0 || target->start_ticks == stat.start_ticks);
}

bool accounting_any_alive(struct accounting *a)
{
    if (a->polled_alive) {
        a->polled_alive = false;
        return true;
    }
    vec_each(&a->targets->all, target)
    {
        struct proc_stat stat;
        uint32_t pid = (*target)->pid; /* its first thread's alone: nothing is added up */
        if (!(*target)->ended && read_stat(a, pid, pid, &stat) && !stat_has_ended(&stat)) {
            return true;
        }
    }
    return false;
}

/* ---- CAPTURE_PROC: accounting from /proc ---- */

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
    judge(a, target);
    return true;
}

/* A target's child is one even when it is left out: its time must not pass for its parent's. */
static enum scan_answer consider(void *context, const struct proc_stat *stat,
                                 struct scan_known *known)
{
    struct accounting *a = context;
    const struct target *parent = targets_find(a->targets, stat->ppid);
    bool ours = parent != NULL && is_polled(parent);
    if (!ours && (!a->follow_all || stat_has_ended(stat))) {
        return known->looks < STRANGER_LOOKS ? SCAN_LATER : SCAN_NEVER;
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
 * process's books count in ticks. The first thread has the rest, and ended threads' time with it. */
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

/* Time of children that ended between two looks: it stands in the parent's books once they were
 * waited for, beyond what was already attributed to children that were seen. */
static uint64_t unseen_children_ns(struct target *target, const struct cpu_times *was)
{
    uint64_t waited_for = beyond(target->account.last.children_ns, was->children_ns);
    uint64_t known = waited_for < target->account.lost_children_ns ? waited_for : target->account.lost_children_ns;
    target->account.lost_children_ns -= known;
    target->account.lifetime_ns += known; /* it stands in its parent's books in turn */
    return waited_for - known;
}

/* Whose books hold an ended process's time: its parent's, or those of that one's parent. */
static struct target *heir_of(struct accounting *a, const struct target *target)
{
    struct target *heir = targets_find(a->targets, target->parent_pid);
    for (unsigned i = 0; heir != NULL && heir->ended && i < GENERATIONS_MAX; i++) {
        heir = targets_find(a->targets, heir->parent_pid);
    }
    return heir;
}

/* The cost follows what runs: an idle process is looked at ten times more rarely, one of thousands of
 * threads as well, and of a process's threads about forty per second are read. */
static bool is_due(const struct accounting *a, const struct target *target)
{
    uint32_t every = target->threads_seen / THREADS_PER_LOOK + 1;
    every = target->account.idle_polls >= IDLE_POLLS && every < IDLE_POLLS ? (uint32_t)IDLE_POLLS : every;
    return (a->polls + target->pid) % every == 0;
}

static bool threads_are_due(const struct accounting *a, const struct target *target)
{
    uint32_t every = target->threads_seen / THREADS_PER_POLL + 1;
    return target->ended || (a->polls + target->pid) % every == 0;
}

/* What a target used since it was polled last, and children of it that nobody saw. */
static void take_polled(struct accounting *a, struct profile *p, struct target *target,
                        const struct cpu_times *was)
{
    uint64_t user_ns = beyond(target->account.last.user_ns, was->user_ns);
    uint64_t system_ns = beyond(target->account.last.system_ns, was->system_ns);
    uint64_t children_ns = unseen_children_ns(target, was);
    if (a->selection != NULL && a->selection->filters && (a->polls + target->pid) % JUDGE_POLLS == 0) {
        judge(a, target); /* an exec that leaves the name as it is */
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
    bool known = update_times(a, target);
    if (known) {
        take_polled(a, p, target, &was);
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
        /* a zombie has told which children it waited for; of one that is gone all are supposed to be */
        heir->account.lost_children_ns += target->account.lifetime_ns + (known ? 0 : target->account.lost_children_ns);
    }
}

/* One system call in the place of two dozen microseconds of reading. A process that used no CPU time has
 * neither ended nor become another program nor waited for a child; one that hardly runs, and used less than the
 * books tell, is read now and then. */
static bool slept(const struct accounting *a, struct target *target)
{
    bool settled = target->account.pending_user_ns + target->account.pending_system_ns == 0;
    uint64_t now_ns = 0;
    if (target->account.idle_polls == 0 && target->threads_seen >= THREADS_PER_LOOK) {
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

static void poll_all(struct accounting *a, struct profile *p, bool last)
{
    a->polls++;
    a->polled_alive = false;
    a->now_ns = clock_mono_ns();
    /* children first: a parent's books may already hold what a child's end has not yet told */
    for (size_t i = a->targets->all.len; i-- > 0;) {
        struct target *target = a->targets->all.at[i];
        if (is_polled(target) && !target->ended &&
            (last || (is_due(a, target) && !slept(a, target)))) {
            poll_target(a, p, target, last);
        } else if (last && target->ended && target->capture_mode == CAPTURE_RUNTIME) {
            settle_samples(a, p, target);
        }
    }
}

/* ---- those that ended ---- */

/* 0 is no process: the profile is full, and element 0 stays as it is. */
static void add_to_process(struct accounting *a, struct profile *p, struct target *target,
                           uint64_t cpu_ns)
{
    uint32_t process = targets_process_id(a->targets, p, target);
    if (process != 0) {
        p->processes.at[process].cpu_ns += cpu_ns;
    }
}

/* By the samples; of those of bursts there are few, and what it did before the glance says more. */
static uint64_t since_glance_ns(const struct target *target)
{
    return target->bursts.samples == 0
               ? target->account.since_read_ns
               : beyond(target->ended_ns, target->account.read_ns) * target->account.ran_permille / 1000;
}

/* What the books are known to hold of a process that ended: up to the last glance the kernel's own
 * figure, from there on the samples. */
static uint64_t known_ns(const struct target *target)
{
    uint64_t own_ns = target->account.read_ns == 0
                          ? target->account.sampled_ns + target->filter.excluded_ns
                          : beyond(sum_of(&target->account.last), sum_of(&target->account.before)) +
                                since_glance_ns(target);
    return own_ns + target->account.folded_known_ns;
}

/* How much more a process that ended may have used: at most what it lived, and hardly more than one period,
 * because beyond that it would have been sampled again. The books cut both times to whole ticks. */
static uint64_t tail_ns(const struct accounting *a, const struct target *target)
{
    uint64_t lived = beyond(target->ended_ns, target->began_ns);
    uint64_t most = a->period_ns + (target->account.read_ns == 0 ? 0 : 2 * a->tick_ns);
    uint64_t own_ns = most;
    if (target->began_ns != 0) {
        uint64_t left = beyond(lived, known_ns(target) - target->account.folded_known_ns) + 1;
        /* kernel code that is not sampled may run however long */
        own_ns = target->capture_mode == CAPTURE_PERF_USER || left < most ? left : most;
    }
    return own_ns + target->account.folded_tails_ns;
}

/* Of all of one tree and name that came and went unseen between two glances one stands for the others: what they
 * used is known as a sum only, and hundreds per second of them would fill window and profile. */
static bool is_folded(struct accounting *a, struct target *target)
{
    uint64_t key = hash_u64(trees_root(a->targets, target)) ^ str_hash(str_of(target->name)) ^
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
    first->account.folded_tails_ns += tail_ns(a, target);
    first->account.folded_known_ns += known_ns(target);
    a->ended_excluded += target->filter.skipped;
    return true;
}

struct tidying {
    struct accounting *accounting;
    struct profile *profile; /* null: those on perf */
    uint64_t now_ns;
};

static bool is_spent(void *context, struct target *target)
{
    const struct tidying *t = context;
    struct accounting *a = t->accounting;
    bool ran_before = target->start_ticks != 0 && target->start_ticks < a->began_ticks;
    if (ran_before || target->runtime.reader != NULL || target->account.sampled_ns > 0 || target->account.settled_ns > 0) {
        return false;
    }
    if (t->profile != NULL) {
        if (target->capture_mode != CAPTURE_PROC) {
            return false;
        }
        if (target->account.attributed_ns > 0) {
            add_to_process(a, t->profile, target, target->account.attributed_ns);
        }
        /* of age by now, though it slept since */
        a->ended_excluded += target->filter.skipped && targets_is_excluded(target, a->now_ns);
        return true;
    }
    if (target->ended_ns == 0) {
        target->ended_ns = t->now_ns; /* no record told yet */
    }
    return !is_polled(target) && target->account.attributed_ns == 0 && target->window != a->targets->window &&
           t->now_ns >= target->ended_ns + SPENT_AFTER_MS * NS_PER_MS && is_folded(a, target);
}

static void tidy(struct accounting *a, struct profile *p, uint64_t now_ns)
{
    struct tidying context = {a, p, now_ns};
    targets_drop(a->targets, is_spent, &context); /* none that ended at this very look */
    targets_set_aside(a->targets);
}

void accounting_poll(struct accounting *a, struct profile *p)
{
    poll_all(a, p, false);
    tidy(a, p, 0);
}

/* The kernel asks every thread of a process for its time, 0.15 us each: one of thousands is glanced at
 * more rarely. */
static bool may_glance(const struct target *target, uint64_t now_ns)
{
    uint64_t threads_ns = target->threads_seen * (uint64_t)GLANCE_US_PER_THREAD * NS_PER_US;
    uint64_t apart_ns = GLANCE_MOST_MS * NS_PER_MS;
    if (target->began_ns != 0 && beyond(now_ns, target->began_ns) / GLANCE_AGE_SHARE < apart_ns) {
        apart_ns = beyond(now_ns, target->began_ns) / GLANCE_AGE_SHARE;
    }
    apart_ns = threads_ns > apart_ns ? threads_ns : apart_ns;
    return target->account.read_ns == 0 || beyond(now_ns, target->account.read_ns) >= apart_ns;
}

void accounting_refresh(struct accounting *a, uint64_t now_ns, bool last)
{
    bool many = a->targets->all.len > GLANCE_ALL_MAX;
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        bool worth = !many || target->account.since_read_ns > 0 || target->account.read_ns == 0;
        if (!is_polled(target) && !target->ended && worth && (last || may_glance(target, now_ns))) {
            (void)glance(a, target, now_ns);
        }
    }
    tidy(a, NULL, now_ns);
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
        add_to_process(a, p, target, target->account.attributed_ns + target->account.sampled_ns);
    }
    target->account.attributed_ns = target->account.settled_ns = target->account.sampled_ns = target->account.since_read_ns = 0;
    target->account.before = target->account.last;
    target->account.read_ns = clock_mono_ns();
}

/* ---- closing the window ---- */

/* Samples that were taken seldom, for the sake of the profiler's budget, stand for all: whenever the period
 * changes, and at the end, a part of one has no sample of its own, for each thread and each CPU it ran on. */
static bool is_between_samples(const struct accounting *a, const struct target *target, uint64_t rest)
{
    uint64_t threads = target->threads_seen > 0 ? target->threads_seen : 1;
    return target->account.sampled_ns > 0 && a->lost_records == 0 && rest / threads <= a->unsampled_ns;
}

/* The weight of a process's samples against its books. The sampling clock and the books do not run
 * in step: it stands still inside context switches and runs on during interrupts, and both amount to
 * a few per cent of a busy server. Within WEIGH_MAX_PERCENT or the noise, and when nothing was lost, the
 * period is taken as the books measure it; what remains beyond has a name of its own. Samples of bursts
 * (bursts.c) are drawn by lot and stand for all that it did, however much the books say that was. */
static void explain_rest(struct accounting *a, struct profile *p, struct target *target,
                         uint64_t cpu_ns, uint64_t system_ns)
{
    uint64_t sampled_ns = target->account.sampled_ns;
    uint64_t rest = beyond(cpu_ns, sampled_ns);
    uint32_t thread = targets_thread_id(a->targets, p, target, target->pid);
    bool bursts = target->bursts.samples >= BURST_SAMPLES_LEAST;
    if (target->capture_mode == CAPTURE_PERF_USER) {
        uint64_t hidden = bursts && cpu_ns > system_ns ? system_ns : rest < system_ns ? rest : system_ns;
        profile_account(p, thread, ACCOUNT_KERNEL_HIDDEN, hidden);
        rest = beyond(rest, hidden);
        cpu_ns -= hidden;
    }
    /* One period per thread is the noise of sampling; a long window has no more of it. A process that ends
     * leaves the rest of a period unsampled: it did the same then as before. */
    uint64_t threads = target->ended || target->threads_seen == 0 ? 1 : target->threads_seen;
    bool is_noise = rest <= threads * (a->period_ns + a->tick_ns);
    bool in_step = (is_noise && rest <= sampled_ns) ||
                   rest <= sampled_ns / 100 * WEIGH_MAX_PERCENT;
    in_step = (in_step && sampled_ns > 0 && a->lost_records == 0) ||
              is_between_samples(a, target, rest) || bursts;
    if (cpu_ns < sampled_ns || in_step) {
        profile_weigh(p, targets_process_id(a->targets, p, target), sampled_ns, cpu_ns);
    } else if (!is_noise) {
        profile_account(p, thread, ACCOUNT_LOST, rest);
    }
}

static void close_living(struct accounting *a, struct profile *p, struct target *target)
{
    uint64_t user_ns = beyond(target->account.last.user_ns, target->account.before.user_ns);
    uint64_t system_ns = beyond(target->account.last.system_ns, target->account.before.system_ns);
    uint64_t excluded_user_ns = target->filter.excluded_ns < user_ns ? target->filter.excluded_ns : user_ns;
    if (target->filter.skipped) {
        target->account.before = target->account.last;
        target->account.carried_ns = 0;
        return;
    }
    if (target->account.sampled_ns == 0 && user_ns + system_ns <= a->period_ns + a->tick_ns) {
        target->account.carried_ns = user_ns + system_ns; /* too little to be sampled: for the next window */
        return;
    }
    target->account.before = target->account.last;
    target->account.carried_ns = 0;
    system_ns = beyond(system_ns, target->filter.excluded_ns - excluded_user_ns);
    user_ns -= excluded_user_ns;
    add_to_process(a, p, target, user_ns + system_ns);
    explain_rest(a, p, target, user_ns + system_ns, system_ns);
}

static void close_ended(struct accounting *a, struct profile *p, struct target *target,
                        uint64_t share_ns)
{
    uint64_t cpu_ns = beyond(known_ns(target) + share_ns, target->filter.excluded_ns);
    if (target->filter.skipped || cpu_ns == 0) {
        return;
    }
    add_to_process(a, p, target, cpu_ns);
    if (target->account.sampled_ns == 0) {
        profile_account(p, targets_thread_id(a->targets, p, target, target->pid),
                        target->capture_mode == CAPTURE_PERF_USER ? ACCOUNT_KERNEL_HIDDEN : ACCOUNT_LOST,
                        cpu_ns);
        return;
    }
    uint64_t system_ns = beyond(target->account.last.system_ns, target->account.before.system_ns);
    explain_rest(a, p, target, cpu_ns, target->account.read_ns == 0 ? cpu_ns : system_ns + share_ns);
}

/* What is known of it by its samples alone. Where its books were read the counters may have more or less than
 * they, by some per cent of its whole life, as the sampling clock does; that is not time that is missing. */
static uint64_t unglanced_ns(const struct target *target)
{
    return target->account.read_ns == 0 ? target->account.sampled_ns + target->filter.excluded_ns : 0;
}

/* Its part of what its tree has for those that ended: for their tails first. */
static uint64_t share_of(const struct accounting *a, const struct tree *tree,
                         const struct target *target)
{
    double share = (double)tree->to_tails_ns * (double)tail_ns(a, target) / (double)tree->tails_ns;
    uint64_t sampled_ns = unglanced_ns(target);
    if (sampled_ns > 0) {
        share += (double)tree->to_sampled_ns * (double)sampled_ns / (double)tree->sampled_ns;
    }
    return (uint64_t)share;
}

/* Settles the living; adds up what they and all samples of the ended explain. */
static void close_all_living(struct accounting *a, struct profile *p, struct trees *trees)
{
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (is_polled(target)) {
            continue;
        }
        struct tree *tree = trees_of(trees, target);
        bool stands_for_folded = target->account.folded_tails_ns > 0;
        uint64_t earlier_ns = target->account.carried_ns;
        target->account.final_known = !stands_for_folded && update_times(a, target);
        if (target->account.final_known) {
            uint64_t booked_ns = beyond(beyond(sum_of(&target->account.last), sum_of(&target->account.before)), earlier_ns);
            uint64_t sampled_ns = target->account.sampled_ns + target->filter.excluded_ns; /* by the clock that counts */
            tree->explained_ns += booked_ns > sampled_ns ? booked_ns : sampled_ns;
            close_living(a, p, target);
            continue;
        }
        tree->explained_ns += beyond(known_ns(target), earlier_ns);
        tree->sampled_ns += unglanced_ns(target);
        tree->tails_ns += tail_ns(a, target);
    }
}

static void close_on_perf(struct accounting *a, struct profile *p, struct perf *perf,
                          uint64_t counted_ns)
{
    struct trees trees;
    if (!trees_begin(&trees, a->targets, perf)) {
        return;
    }
    close_all_living(a, p, &trees);
    trees_settle(&trees, counted_ns);
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (!is_polled(target) && !target->account.final_known) {
            close_ended(a, p, target, share_of(a, trees_of(&trees, target), target));
        }
    }
    trees_release(&trees);
}

void accounting_close_window(struct accounting *a, struct profile *p, struct perf *perf, uint64_t lost_records)
{
    targets_recall(a->targets);
    map_clear(&a->folded);
    p->meta.lost_records = a->lost_records = lost_records;
    if (perf != NULL) {
        uint64_t now_ns = perf_count_ns(perf);
        close_on_perf(a, p, perf, beyond(now_ns, a->counted_ns));
        a->counted_ns = now_ns;
    }
    poll_all(a, p, true);
    profile_apply_weights(p);
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        /* it may have left perf within the window; without perf samples are part of what was polled */
        uint64_t cpu_ns = target->account.attributed_ns + (perf != NULL ? target->account.sampled_ns : 0);
        if (is_polled(target) && !target->filter.skipped && cpu_ns > 0) {
            add_to_process(a, p, target, cpu_ns);
        }
    }
}
