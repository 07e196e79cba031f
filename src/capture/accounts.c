#include "capture/accounts.h"
#include "base/err.h"
#include "base/time.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    TEXT_MAX = 64 * 1024,
    GLANCE_ALL_MAX = 16,  /* beyond, only targets that were sampled since are read again */
    WEIGH_MAX_PERCENT = 15,
    STRANGERS_KEPT_S = 5, /* pids are reused: what was no child may become one */
    GENERATIONS_MAX = 64,
    IDLE_POLLS = 10,
    THREADS_PER_POLL = 4,
};

static bool read_stat(struct accounts *a, uint32_t pid, uint32_t tid, struct proc_stat *out)
{
    return proc_read(pid, tid, "stat", &a->text, NULL) &&
           stat_parse(buf_slice(&a->text), out, NULL);
}

void accounts_init(struct accounts *a, struct targets *targets, uint64_t period_ns,
                   bool follow_all)
{
    *a = (struct accounts){.targets = targets,
                           .tick_ns = proc_tick_ns(),
                           .period_ns = period_ns,
                           .follow_all = follow_all};
    buf_init(&a->text, TEXT_MAX);
    struct proc_stat own;
    a->began_ticks = read_stat(a, proc_own_pid(), 0, &own) ? own.start_ticks : 0;
}

void accounts_release(struct accounts *a)
{
    buf_release(&a->text);
    vec_release(&a->pids.ids);
    map_release(&a->strangers);
}

/* A first thread that has ended is shown as a zombie while the others run on. */
static bool has_ended(const struct proc_stat *stat)
{
    return stat->state == 'X' || (stat->state == 'Z' && stat->num_threads <= 1);
}

static struct cpu_times times_of(const struct accounts *a, const struct proc_stat *stat)
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

/* Reads the present times; notes the end of the process. A zombie's times are final and readable; what
 * is known to have ended and is no zombie is another process under the same pid. */
static bool update_times(struct accounts *a, struct target *target)
{
    struct proc_stat stat;
    if (targets_find(a->targets, target->pid) != target || !read_stat(a, target->pid, 0, &stat) ||
        (target->start_ticks != 0 && stat.start_ticks != target->start_ticks) ||
        (target->ended && !has_ended(&stat))) {
        target->ended = target->ended || a->began_ticks != 0;
        return false;
    }
    target->start_ticks = stat.start_ticks;
    target->last = times_of(a, &stat);
    target->threads_seen = stat.num_threads;
    target->parent_pid = stat.ppid; /* an orphan's next parent waits for it */
    target->ended = has_ended(&stat);
    if (target->rung == RUNG_PROC && !str_eq(stat.comm, str_of(target->name))) {
        targets_rename(a->targets, target); /* no record tells of an exec here */
    }
    return true;
}

bool accounts_adopt(struct accounts *a, struct target *target)
{
    if (!update_times(a, target)) {
        return false;
    }
    target->before = target->last;
    target->lifetime_ns = sum_of(&target->last) + target->last.children_ns;
    return true;
}

bool accounts_any_alive(struct accounts *a)
{
    vec_each(&a->targets->all, target)
    {
        struct proc_stat stat;
        if (!(*target)->ended && read_stat(a, (*target)->pid, 0, &stat) && !has_ended(&stat)) {
            return true;
        }
    }
    return false;
}

/* ---- rung 4: accounting from /proc ---- */

static void consider(struct accounts *a, uint32_t pid)
{
    struct proc_stat stat;
    if (targets_find(a->targets, pid) != NULL || map_find(&a->strangers, pid) != NULL ||
        pid == proc_own_pid() || !read_stat(a, pid, 0, &stat)) {
        return;
    }
    struct target *parent = targets_find(a->targets, stat.ppid);
    bool ours = parent != NULL && parent->rung == RUNG_PROC;
    if ((!ours && !a->follow_all) || stat_is_kernel_thread(&stat)) {
        (void)map_put(&a->strangers, pid, 1);
        return;
    }
    struct target *target = targets_get(a->targets, pid);
    if (target == NULL) {
        return;
    }
    target->rung = RUNG_PROC;
    target->parent_pid = stat.ppid;
    target->start_ticks = stat.start_ticks;
    if (stat.start_ticks < a->began_ticks) {
        (void)accounts_adopt(a, target); /* what it used before us is not this window's */
    }
}

void accounts_discover(struct accounts *a, uint64_t now_ns)
{
    if (now_ns >= a->strangers_until_ns) {
        map_clear(&a->strangers);
        a->strangers_until_ns = now_ns + STRANGERS_KEPT_S * NS_PER_S;
    }
    if (proc_list_processes(&a->pids, NULL)) {
        vec_each(&a->pids.ids, pid)
        {
            consider(a, *pid);
        }
    }
}

static void account_thread(struct accounts *a, struct profile *p, struct target *target,
                           uint32_t tid, uint64_t user_ns, uint64_t system_ns)
{
    uint32_t thread = targets_thread_id(a->targets, p, target, tid);
    profile_account(p, thread, ACCOUNT_NATIVE_NO_PERF, user_ns);
    profile_account(p, thread, ACCOUNT_KERNEL_HIDDEN, system_ns);
}

/* A thread's CPU time since it was read last. */
static uint64_t thread_delta_ns(struct accounts *a, const struct target *target, uint32_t tid)
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
static void share_out(struct accounts *a, struct profile *p, struct target *target)
{
    uint64_t user_ns = target->pending_user_ns, left_user = user_ns;
    uint64_t system_ns = target->pending_system_ns, left_system = system_ns;
    uint64_t total_ns = user_ns + system_ns;
    target->pending_user_ns = target->pending_system_ns = 0;
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

/* Time of children that ended between two looks: it stands in the parent's books once they were
 * waited for, beyond what was already attributed to children that were seen. */
static uint64_t unseen_children_ns(struct target *target, const struct cpu_times *was)
{
    uint64_t waited_for = beyond(target->last.children_ns, was->children_ns);
    uint64_t known = waited_for < target->lost_children_ns ? waited_for : target->lost_children_ns;
    target->lost_children_ns -= known;
    target->lifetime_ns += known; /* it stands in its parent's books in turn */
    return waited_for - known;
}

/* Whose books hold an ended process's time: its parent's, or those of that one's parent. */
static struct target *heir_of(struct accounts *a, const struct target *target)
{
    struct target *heir = targets_find(a->targets, target->parent_pid);
    for (unsigned i = 0; heir != NULL && heir->ended && i < GENERATIONS_MAX; i++) {
        heir = targets_find(a->targets, heir->parent_pid);
    }
    return heir;
}

/* The cost follows what runs: an idle process is looked at ten times more rarely, and of a process's
 * threads about forty per second are read. */
static bool is_due(const struct accounts *a, const struct target *target)
{
    return target->idle_polls < IDLE_POLLS || (a->polls + target->pid) % IDLE_POLLS == 0;
}

static bool threads_are_due(const struct accounts *a, const struct target *target)
{
    uint32_t every = target->threads_seen / THREADS_PER_POLL + 1;
    return target->ended || (a->polls + target->pid) % every == 0;
}

static void poll_target(struct accounts *a, struct profile *p, struct target *target, bool last)
{
    struct cpu_times was = target->last;
    bool known = update_times(a, target);
    if (known) {
        uint64_t user_ns = beyond(target->last.user_ns, was.user_ns);
        uint64_t system_ns = beyond(target->last.system_ns, was.system_ns);
        uint64_t children_ns = unseen_children_ns(target, &was);
        target->idle_polls = user_ns + system_ns > 0 ? 0 : target->idle_polls + 1;
        target->pending_user_ns += user_ns;
        target->pending_system_ns += system_ns;
        if (children_ns > 0) {
            account_thread(a, p, target, target->pid, children_ns, 0);
        }
        target->accounted_ns += user_ns + system_ns + children_ns;
        target->lifetime_ns += user_ns + system_ns + children_ns;
    }
    if (last || threads_are_due(a, target)) {
        share_out(a, p, target);
    }
    struct target *heir = target->ended ? heir_of(a, target) : NULL;
    if (heir != NULL) {
        /* a zombie has told which children it waited for; of one that is gone all are supposed to be */
        heir->lost_children_ns += target->lifetime_ns + (known ? 0 : target->lost_children_ns);
    }
}

static void poll_all(struct accounts *a, struct profile *p, bool last)
{
    a->polls++;
    /* children first: a parent's books may already hold what a child's end has not yet told */
    for (size_t i = a->targets->all.len; i-- > 0;) {
        struct target *target = a->targets->all.at[i];
        if (target->rung == RUNG_PROC && !target->ended && (last || is_due(a, target))) {
            poll_target(a, p, target, last);
        }
    }
}

void accounts_poll(struct accounts *a, struct profile *p)
{
    poll_all(a, p, false);
}

void accounts_glance(struct accounts *a, uint64_t now_ns)
{
    bool many = a->targets->all.len > GLANCE_ALL_MAX;
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        bool worth = !many || target->since_glance_ns > 0 || target->glanced_at_ns == 0;
        if (target->rung != RUNG_PROC && !target->ended && worth && update_times(a, target)) {
            target->glanced_at_ns = now_ns;
            target->since_glance_ns = 0;
        }
    }
}

/* ---- closing the window ---- */

/* The weight of a process's samples against its books. The sampling clock and the books do not run
 * in step: it stands still inside context switches and runs on during interrupts, and both amount to
 * a few per cent of a busy server. Within WEIGH_MAX_PERCENT, and when nothing was lost, the period is
 * taken as the books measure it; what remains beyond has a name of its own. */
static void explain_rest(struct accounts *a, struct profile *p, struct target *target,
                         uint64_t cpu_ns, uint64_t system_ns)
{
    uint64_t sampled_ns = target->sampled_ns;
    uint64_t rest = beyond(cpu_ns, sampled_ns);
    uint32_t thread = targets_thread_id(a->targets, p, target, target->pid);
    if (target->rung == RUNG_PERF_USER) {
        uint64_t hidden = rest < system_ns ? rest : system_ns;
        profile_account(p, thread, ACCOUNT_KERNEL_HIDDEN, hidden);
        rest -= hidden;
        cpu_ns -= hidden;
    }
    bool in_step = rest <= sampled_ns / 100 * WEIGH_MAX_PERCENT && a->lost_records == 0;
    if (cpu_ns < sampled_ns || in_step) {
        profile_weigh(p, targets_process_id(a->targets, p, target), sampled_ns, cpu_ns);
        return;
    }
    /* one period per thread is the noise of sampling; a long window has no more of it */
    uint64_t threads = target->threads_seen > 0 ? target->threads_seen : 1;
    if (rest > threads * (a->period_ns + a->tick_ns)) {
        profile_account(p, thread, ACCOUNT_LOST, rest);
    }
}

/* 0 is no process: the profile is full, and element 0 stays as it is. */
static void add_to_process(struct accounts *a, struct profile *p, struct target *target,
                           uint64_t cpu_ns)
{
    uint32_t process = targets_process_id(a->targets, p, target);
    if (process != 0) {
        p->processes.at[process].cpu_ns += cpu_ns;
    }
}

static void close_living(struct accounts *a, struct profile *p, struct target *target)
{
    uint64_t user_ns = beyond(target->last.user_ns, target->before.user_ns);
    uint64_t system_ns = beyond(target->last.system_ns, target->before.system_ns);
    target->before = target->last;
    if (user_ns + system_ns == 0 && target->sampled_ns == 0) {
        return;
    }
    add_to_process(a, p, target, user_ns + system_ns);
    explain_rest(a, p, target, user_ns + system_ns, system_ns);
}

/* How much a process that ended without a sample may have used: at most what it lived, and hardly
 * more than one period, because beyond that it would have been sampled. */
static uint64_t short_life_ns(const struct accounts *a, const struct target *target)
{
    uint64_t lived = beyond(target->ended_ns, target->began_ns);
    if (target->rung == RUNG_PERF_USER && lived > 0) {
        return lived; /* kernel code is not sampled however long it runs */
    }
    return target->began_ns == 0 || lived > a->period_ns ? a->period_ns : lived + 1;
}

/* What the books are known to hold of a process that ended: up to the last glance the kernel's own
 * figure, from there on the samples. */
static uint64_t known_ns(const struct target *target)
{
    return target->glanced_at_ns == 0 ? target->sampled_ns
                                      : beyond(sum_of(&target->last), sum_of(&target->before)) +
                                            target->since_glance_ns;
}

static void close_ended(struct accounts *a, struct profile *p, struct target *target,
                        uint64_t share_ns)
{
    uint64_t cpu_ns = known_ns(target) + share_ns;
    if (cpu_ns == 0) {
        return;
    }
    add_to_process(a, p, target, cpu_ns);
    if (target->sampled_ns == 0) {
        profile_account(p, targets_thread_id(a->targets, p, target, target->pid),
                        target->rung == RUNG_PERF_USER ? ACCOUNT_KERNEL_HIDDEN : ACCOUNT_LOST,
                        cpu_ns);
        return;
    }
    uint64_t system_ns = beyond(target->last.system_ns, target->before.system_ns);
    explain_rest(a, p, target, cpu_ns, target->glanced_at_ns == 0 ? cpu_ns : system_ns + share_ns);
}

/* Processes that ended before anybody looked at their books, which are known only as a sum: what the
 * counters have beyond the others. */
struct ended {
    uint64_t sampled_ns; /* of those with samples */
    uint64_t lives_ns;   /* of those without, at most */
    uint64_t to_short_ns, to_sampled_ns;
};

static void divide_rest(struct ended *e, uint64_t rest_ns)
{
    e->to_short_ns = rest_ns < e->lives_ns ? rest_ns : e->lives_ns;
    e->to_sampled_ns = e->sampled_ns == 0 ? 0 : rest_ns - e->to_short_ns;
}

static uint64_t share_of(const struct accounts *a, const struct ended *e,
                         const struct target *target)
{
    if (target->glanced_at_ns != 0) {
        return 0;
    }
    if (target->sampled_ns > 0) {
        return (uint64_t)((double)e->to_sampled_ns * (double)target->sampled_ns /
                          (double)e->sampled_ns);
    }
    return (uint64_t)((double)e->to_short_ns * (double)short_life_ns(a, target) /
                      (double)e->lives_ns);
}

/* Settles the living; returns the time that they and all samples of the ended explain. */
static uint64_t close_all_living(struct accounts *a, struct profile *p, struct ended *e)
{
    uint64_t explained_ns = 0;
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (target->rung == RUNG_PROC) {
            continue;
        }
        target->final_known = update_times(a, target);
        if (target->final_known) {
            explained_ns += beyond(sum_of(&target->last), sum_of(&target->before));
            close_living(a, p, target);
            continue;
        }
        explained_ns += known_ns(target);
        if (target->glanced_at_ns == 0) {
            e->sampled_ns += target->sampled_ns;
            e->lives_ns += target->sampled_ns == 0 ? short_life_ns(a, target) : 0;
        }
    }
    return explained_ns;
}

static void close_on_perf(struct accounts *a, struct profile *p, uint64_t counted_ns)
{
    struct ended e = {0};
    uint64_t explained_ns = close_all_living(a, p, &e);
    divide_rest(&e, beyond(counted_ns, explained_ns));
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        if (target->rung != RUNG_PROC && !target->final_known) {
            close_ended(a, p, target, share_of(a, &e, target));
        }
    }
}

void accounts_close(struct accounts *a, struct profile *p, struct perf *perf, uint64_t lost_records)
{
    p->meta.lost_records = a->lost_records = lost_records;
    if (perf != NULL) {
        uint64_t now_ns = perf_count_ns(perf);
        close_on_perf(a, p, beyond(now_ns, a->counted_ns));
        a->counted_ns = now_ns;
    }
    profile_apply_weights(p);
    poll_all(a, p, true);
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        uint64_t cpu_ns = target->accounted_ns + target->sampled_ns; /* it may have changed the rung */
        if (target->rung == RUNG_PROC && cpu_ns > 0) {
            add_to_process(a, p, target, cpu_ns);
        }
    }
}
