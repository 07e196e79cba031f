/* accounting: the times of one process as /proc has them, and when they are read. Polling without perf, the processes
 * that ended and the end of a window are the other files' (accounting_private.h). Nothing is attributed here: what is
 * read stands in the target's `account`. */
#include "capture/account/accounting_private.h"
#include "base/time.h"
#include "os/clock.h"
#include "target/stat.h"

#include <stdlib.h>

enum {
    TEXT_MAX = 64 * 1024,
    REFRESH_ALL_MAX = 16,  /* beyond, only targets that ran since, as far as can be seen, are read again, … */
    YOUNG_MS = 2000,       /* … and those that began a moment ago */
    REFRESH_US_PER_THREAD = 500, /* between two readings of one target */
    SPARSE_US_PER_THREAD = 150,  /* … whose samples say little */
    REFRESH_AGE_SHARE = 16, /* and so small a part of its life, … */
    REFRESH_PAUSE_MAX_MS = 1000, /* … but at most this: if it ends now, its samples since tell the rest */
    SPARSE_TICKS = 3, /* that it may be off by */
    RATE_TICKS = 10, /* that make a rate: in fewer one tick is too much of it */
    RATE_MS = 10,    /* where no tick cuts it */
};

bool accounting_read_stat(struct accounting *a, uint32_t pid, uint32_t tid, struct proc_stat *out)
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
    a->began_ticks = accounting_read_stat(a, proc_own_pid(), 0, &own) ? own.start_ticks : 0;
}

void accounting_release(struct accounting *a)
{
    buf_release(&a->text);
    vec_release(&a->pids.ids);
    scan_release(&a->scan);
    vec_release(&a->zombies);
    vec_release(&a->ending);
    map_release(&a->folded);
    map_release(&a->followed);
}

static struct cpu_times times_of(const struct accounting *a, const struct proc_stat *stat)
{
    return (struct cpu_times){
        .user_ns = stat->utime_ticks * a->tick_ns,
        .system_ns = stat->stime_ticks * a->tick_ns,
        .children_ns = (stat->cutime_ticks + stat->cstime_ticks) * a->tick_ns,
    };
}

/* Neither user nor system time is less than it was: of each the part below a tick is a guess. */
static void keep_order(const struct cpu_times *last, struct cpu_times *times)
{
    uint64_t sum_ns = cpu_times_sum(times), most_ns = beyond(sum_ns, last->user_ns);
    uint64_t system_ns = times->system_ns > last->system_ns ? times->system_ns : last->system_ns;
    times->system_ns = system_ns < most_ns ? system_ns : most_ns;
    times->user_ns = sum_ns - times->system_ns;
}

/* /proc cuts both times to whole ticks, the process's clock does not. What a clock had is never taken back. */
static void refine(const struct accounting *a, const struct target *target, struct cpu_times *times)
{
    uint64_t cut_ns = cpu_times_sum(times), used_ns = cut_ns, before_ns = cpu_times_sum(&target->account.last);
    if (!accounting_is_exact(target) || !clock_process_cpu_ns(target->pid, &used_ns)) {
        used_ns = cut_ns;
    }
    used_ns = used_ns > cut_ns + 2 * a->tick_ns ? cut_ns + 2 * a->tick_ns : used_ns;
    uint64_t more_ns = beyond(used_ns > before_ns ? used_ns : before_ns, cut_ns);
    times->user_ns += more_ns / 2;
    times->system_ns += more_ns - more_ns / 2;
    keep_order(&target->account.last, times);
}

void accounting_evaluate(struct accounting *a, struct target *target)
{
    if (a->selection != NULL) {
        selection_evaluate(a->selection, target, clock_mono_ns());
    }
}

/* Reads the present times; notes the end of the process. A zombie's times are final and readable; what
 * is known to have ended and is no zombie is another process under the same pid. */
bool accounting_update_times(struct accounting *a, struct target *target, struct str *comm)
{
    struct proc_stat stat;
    if (targets_find(a->targets, target->pid) != target || !accounting_read_stat(a, target->pid, 0, &stat) ||
        !targets_may_be(target, stat.start_ticks) ||
        (target->ended && !stat_has_ended(&stat))) {
        target->ended = target->ended || a->began_ticks != 0;
        return false;
    }
    target->start_ticks = stat.start_ticks;
    struct cpu_times times = times_of(a, &stat);
    target->threads_seen = stat.num_threads;
    refine(a, target, &times);
    target->account.last = times;
    target->threads_ended = target->account.waited.begun = 0;
    target->parent_pid = stat.ppid; /* an orphan's next parent waits for it */
    target->ended = stat_has_ended(&stat);
    if (comm != NULL) {
        *comm = stat.comm;
    }
    return true;
}

/* So far. A kernel without schedstat (gVisor) has it in ticks. */
static bool read_thread_ns(struct accounting *a, uint32_t pid, uint32_t tid, uint64_t *cpu_ns)
{
    struct proc_schedstat sched;
    struct proc_stat stat;
    if (proc_read(pid, tid, "schedstat", &a->text, NULL) && schedstat_parse(buf_slice(&a->text), &sched, NULL)) {
        *cpu_ns = sched.cpu_ns;
        return true;
    }
    bool known = accounting_read_stat(a, pid, tid, &stat);
    *cpu_ns = known ? (stat.utime_ticks + stat.stime_ticks) * a->tick_ns : 0;
    return known;
}

uint64_t accounting_thread_ns(struct accounting *a, const struct target *target, uint32_t tid)
{
    struct target_thread *thread = targets_thread(a->targets, target->pid, tid);
    uint64_t cpu_ns;
    if (thread == NULL || !read_thread_ns(a, target->pid, tid, &cpu_ns)) {
        return 0;
    }
    uint64_t delta = beyond(cpu_ns, thread->cpu_ns);
    thread->cpu_ns = cpu_ns;
    return delta;
}

/* What its threads have used until now is not to be shared out. */
static void note_threads(struct accounting *a, struct target *target)
{
    if (target->threads_seen > 1 && proc_list_threads(target->pid, &a->pids, NULL)) {
        vec_each(&a->pids.ids, tid)
        {
            (void)accounting_thread_ns(a, target, *tid);
        }
    }
}

bool accounting_adopt(struct accounting *a, struct target *target)
{
    if (!accounting_update_times(a, target, NULL)) {
        return false;
    }
    target->account.before = target->account.last;
    target->account.lifetime_ns = cpu_times_sum(&target->account.last) + target->account.last.children_ns;
    if (accounting_is_polled(target)) {
        scan_note_taken(&a->scan, target->pid, target->start_ticks);
    }
    if (target->capture_mode == CAPTURE_PROC) {
        note_threads(a, target);
    }
    return true;
}

bool accounting_read(struct accounting *a, struct target *target, uint64_t now_ns)
{
    uint64_t used_ns = cpu_times_sum(&target->account.last);
    uint64_t since_ns = target->account.read_ns != 0 ? target->account.read_ns : target->began_ns;
    if (!accounting_update_times(a, target, NULL)) {
        return false;
    }
    uint64_t apart_ns = beyond(now_ns, since_ns);
    uint64_t rate_ns = accounting_is_exact(target) ? RATE_MS * NS_PER_MS : RATE_TICKS * a->tick_ns;
    if (since_ns != 0 && apart_ns >= rate_ns) {
        target->account.ran_permille = beyond(cpu_times_sum(&target->account.last), used_ns) * 1000 / apart_ns;
    }
    target->account.read_ns = now_ns;
    target->account.since_read_ns = 0;
    return true;
}

/* That samples can be of. */
static uint64_t sampleable_ns(const struct target *target, const struct cpu_times *times)
{
    return target->capture_mode == CAPTURE_PERF_USER ? times->user_ns : cpu_times_sum(times);
}

bool accounting_cpu_time(struct accounting *a, struct target *target, uint64_t *cpu_ns)
{
    if (target->ended || !accounting_read(a, target, clock_mono_ns())) {
        return false;
    }
    *cpu_ns = sampleable_ns(target, &target->account.last);
    return true;
}

bool accounting_is_running(struct accounting *a, const struct target *target)
{
    struct proc_stat stat;
    return accounting_read_stat(a, target->pid, 0, &stat) && !stat_is_ending(&stat) &&
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
        if (!(*target)->ended && accounting_read_stat(a, pid, pid, &stat) && !stat_has_ended(&stat)) {
            return true;
        }
    }
    return false;
}
/* Threads that end at once, or that hardly run each: its samples say little of what it used since it was read. Nor do
 * they where sampling was suspended, to use less; then it is not the time to read more. */
static bool is_sparse(const struct accounting *a, const struct target *target)
{
    const struct target_account *account = &target->account;
    uint64_t used_ns = beyond(sampleable_ns(target, &account->last), sampleable_ns(target, &account->before));
    uint64_t sampled_ns = account->sampled_ns + target->filter.excluded_ns;
    return target->threads_ended > 0 ||
           (a->unsampled_ns == 0 && used_ns > 2 * sampled_ns + SPARSE_TICKS * a->tick_ns);
}

/* The kernel asks every thread that lives for its time, 0.15 us each: a process of thousands is read more rarely. */
static bool may_refresh(const struct accounting *a, const struct target *target, uint64_t now_ns)
{
    bool sparse = is_sparse(a, target);
    uint64_t threads = beyond(target->threads_seen, target->threads_ended);
    uint64_t threads_ns = threads * NS_PER_US * (sparse ? SPARSE_US_PER_THREAD : REFRESH_US_PER_THREAD);
    uint64_t apart_ns = REFRESH_PAUSE_MAX_MS * NS_PER_MS;
    if (sparse || target->account.waited.begun > 0) {
        apart_ns = 0; /* and the times of children that it waited for are known nowhere else */
    } else if (target->began_ns != 0 && beyond(now_ns, target->began_ns) / REFRESH_AGE_SHARE < apart_ns) {
        apart_ns = beyond(now_ns, target->began_ns) / REFRESH_AGE_SHARE;
    }
    apart_ns = threads_ns > apart_ns ? threads_ns : apart_ns;
    return target->account.read_ns == 0 || beyond(now_ns, target->account.read_ns) >= apart_ns;
}

void accounting_refresh(struct accounting *a, uint64_t now_ns, bool last)
{
    bool many = a->targets->all.len > REFRESH_ALL_MAX;
    vec_each(&a->targets->all, slot)
    {
        struct target *target = *slot;
        bool has_run = target->account.since_read_ns > 0 || target->account.waited.begun > 0 || is_sparse(a, target);
        bool young = target->began_ns != 0 && now_ns < target->began_ns + YOUNG_MS * NS_PER_MS;
        bool worth = !many || has_run || young || target->account.read_ns == 0;
        if (!accounting_is_polled(target) && !target->ended && worth && (last || may_refresh(a, target, now_ns))) {
            (void)accounting_read(a, target, now_ns);
        }
    }
    accounting_tidy(a, NULL, now_ns);
}
