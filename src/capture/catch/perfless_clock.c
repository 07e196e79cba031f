/* CPU time of the threads of the perf-less sampler: read from schedstat (or stat), guessed for threads that had their
 * CPU throughout, and corrected when it is read again, so that sums stay exact. Descriptors are kept open for
 * threads that run, as many as may be open. */
#include "base/time.h"
#include "capture/catch/perfless_private.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"

enum {
    TEXT_MAX = 1024,
    STEADY_LOOKS = 4,    /* that had its CPU throughout, and a thread is taken to have it … */
    GUESSES_MAX = 4,     /* … at so many more */
    CLAIM_TICKS = 3,     /* from one sample to the next what is not explained grows by one or two */
    SWITCH_US = 50,      /* that a slow machine takes to wake a catcher, and to go back */
    OTHERS_SHARE = 64,   /* of the time between two ticks: so little had others, interrupts mostly … */
    OTHERS_LEAST_SHARE = 256, /* … and so little that nobody slept */
    EARLY_TIMES = 3,     /* a sample stands for so much more of what was used before anybody knew its thread */
};

bool perfless_parse_run(const struct perfless *t, struct str text, uint64_t *run_ns, uint64_t *slices)
{
    struct proc_schedstat sched;
    struct proc_stat stat;
    if (!t->by_stat) {
        bool good = schedstat_parse(text, &sched, NULL);
        *run_ns = good ? sched.cpu_ns : 0;
        *slices = good ? sched.slices : 0;
        return good;
    }
    bool good = stat_parse(text, &stat, NULL);
    *run_ns = good ? (stat.utime_ticks + stat.stime_ticks) * t->tick_ns : 0;
    *slices = 0;
    return good;
}

static int open_file(const struct perfless *t, const struct perfless_thread *thread)
{
    return proc_open_thread(thread->process->pid, thread->tid, t->by_stat ? "stat" : "schedstat");
}

static void close_one(struct perfless *t, int *kept)
{
    if (*kept >= 0) {
        proc_close(*kept);
        *kept = -1;
        __atomic_fetch_sub(&t->files, 1, __ATOMIC_RELAXED);
    }
}

void perfless_close_files(struct perfless *t, struct perfless_thread *thread)
{
    close_one(t, &thread->file);
    close_one(t, &thread->sched);
}

/* Keeps a descriptor that was opened to be read once, if there may be one more; -1: it does not. */
static int keep(struct perfless *t, int fd)
{
    if (__atomic_add_fetch(&t->files, 1, __ATOMIC_RELAXED) <= t->files_most) {
        return fd;
    }
    __atomic_fetch_sub(&t->files, 1, __ATOMIC_RELAXED);
    proc_close(fd);
    return -1;
}

/* False: the thread is gone. */
static bool read_run(struct perfless *t, struct perfless_thread *thread, uint64_t *run_ns, uint64_t *slices)
{
    char text[TEXT_MAX];
    int fd = thread->file >= 0 ? thread->file : open_file(t, thread);
    size_t len = fd >= 0 ? proc_read_start(fd, text, sizeof text) : 0;
    bool good = len > 0 && perfless_parse_run(t, (struct str){text, len}, run_ns, slices);
    if (fd < 0 || thread->file >= 0) {
        return good;
    }
    if (good && !thread->idle) {
        thread->file = keep(t, fd);
    } else {
        proc_close(fd);
    }
    return good;
}

/* When the thread ran last, by its sched file; 0: unknown. */
uint64_t perfless_last_ran_ns(int fd)
{
    char text[TEXT_MAX];
    uint64_t ns = 0;
    size_t len = fd >= 0 ? proc_read_start(fd, text, sizeof text) : 0;
    return perfless_parse_last_ran((struct str){text, len}, &ns) ? ns : 0;
}

uint64_t perfless_thread_ran_ns(struct perfless *t, struct perfless_thread *thread)
{
    int fd = thread->sched >= 0 ? thread->sched : proc_open_thread(thread->process->pid, thread->tid, "sched");
    uint64_t ns = perfless_last_ran_ns(fd);
    if (fd >= 0 && thread->sched < 0) {
        thread->sched = keep(t, fd);
    }
    return ns;
}

bool perfless_note_waits(struct perfless_cpu *cpu)
{
    char text[TEXT_MAX];
    struct proc_schedstat own;
    size_t len = cpu->own_schedstat >= 0 ? proc_read_start(cpu->own_schedstat, text, sizeof text) : 0;
    if (!schedstat_parse((struct str){text, len}, &own, NULL)) {
        return false;
    }
    cpu->late_ns = own.wait_ns - cpu->waited_ns;
    cpu->waited_ns = own.wait_ns;
    return true;
}

bool perfless_has_waited(struct perfless_cpu *cpu, bool woken)
{
    return perfless_note_waits(cpu) && perfless_is_late(cpu->late_ns, woken);
}

/* Of what was guessed. What a sample has taken along already is taken off later times. */
static void take_off(struct perfless_thread *thread, uint64_t ns)
{
    uint64_t pending_ns = __atomic_exchange_n(&thread->pending_ns, 0, __ATOMIC_RELAXED);
    uint64_t off_ns = ns < pending_ns ? ns : pending_ns;
    thread->owed_ns += ns - off_ns;
    __atomic_fetch_add(&thread->pending_ns, pending_ns - off_ns, __ATOMIC_RELAXED);
}

static void add_used(struct perfless_thread *thread, uint64_t ns)
{
    uint64_t owed_ns = ns < thread->owed_ns ? ns : thread->owed_ns;
    thread->owed_ns -= owed_ns;
    __atomic_fetch_add(&thread->pending_ns, ns - owed_ns, __ATOMIC_RELAXED);
}

/* Since its time was read last: what was guessed of it is known already. */
static void settle_used(struct perfless_thread *thread, uint64_t used_ns)
{
    if (used_ns >= thread->guessed_ns) {
        add_used(thread, used_ns - thread->guessed_ns);
    } else {
        take_off(thread, thread->guessed_ns - used_ns);
    }
    __atomic_fetch_add(&thread->process->explained_ns, used_ns - thread->guessed_ns,
                       __ATOMIC_RELAXED);
    thread->guessed_ns = 0;
    thread->guesses = 0;
}

static void note_ran(struct perfless_thread *thread, uint64_t now_ns)
{
    thread->ran_ns = now_ns;
    thread->hops = 0;
}

/* A thread that had its CPU time and again is taken to have it still: its accounting is read now and then,
 * for that costs a third of a tick. Whether it really was there is proven by the sample itself; if not, it is
 * read the next time. */
static bool guess(struct perfless_thread *thread, uint64_t could_ns, uint64_t now_ns)
{
    if (could_ns == 0 || thread->steady < STEADY_LOOKS || thread->guesses >= GUESSES_MAX) {
        return false;
    }
    thread->guesses++;
    thread->could_ns += could_ns;
    thread->guessed_ns += could_ns;
    thread->throughout = true;
    add_used(thread, could_ns);
    __atomic_fetch_add(&thread->process->explained_ns, could_ns, __ATOMIC_RELAXED);
    note_ran(thread, now_ns);
    return true;
}

/* It had a CPU all the time since the last round on this one ended, so nobody else had it at the end, or for
 * a moment only. Says nothing of which CPU. */
static void note_throughout(struct perfless_thread *thread, uint64_t could_ns, uint64_t used_ns, uint64_t least_ns)
{
    uint64_t all_ns = could_ns == 0 ? 0 : thread->could_ns + could_ns, others_ns = all_ns / OTHERS_SHARE;
    others_ns = others_ns > least_ns ? others_ns : least_ns;
    /* more: it ran within that round, while the catcher waited for a stop */
    thread->throughout = all_ns != 0 && used_ns >= all_ns - others_ns && used_ns <= all_ns + others_ns;
    thread->to_the_end = thread->throughout && used_ns >= all_ns - all_ns / OTHERS_LEAST_SHARE;
    thread->steady = !thread->throughout             ? 0
                     : thread->steady < STEADY_LOOKS ? thread->steady + 1
                                                     : thread->steady;
    thread->could_ns = 0;
}

/* How long since its last check it could have had this CPU; 0: it was not checked in the previous round. */
static uint64_t could_have_ns(const struct perfless_cpu *cpu, const struct perfless_thread *thread,
                              uint64_t now_ns)
{
    bool is_next = cpu->ended_ns != 0 && thread->checked_ns == cpu->begun_ns;
    return is_next ? now_ns - cpu->ended_ns : 0;
}

/* One that began meanwhile may have used a quarter of a second before it was listed. In one sample that would be a
 * function's share of anything: all but a tick of it is given out with those that follow. */
static void set_early_apart(const struct perfless *t, struct perfless_thread *thread)
{
    uint64_t pending_ns = __atomic_exchange_n(&thread->pending_ns, 0, __ATOMIC_RELAXED);
    uint64_t period_ns = perfless_period_ns(t), now_ns = pending_ns < period_ns ? pending_ns : period_ns;
    __atomic_store_n(&thread->early_ns, pending_ns - now_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&thread->pending_ns, now_ns, __ATOMIC_RELAXED);
}

uint64_t perfless_weigh(struct perfless_thread *thread)
{
    uint64_t own_ns = __atomic_exchange_n(&thread->pending_ns, 0, __ATOMIC_RELAXED);
    uint64_t early_ns = __atomic_exchange_n(&thread->early_ns, 0, __ATOMIC_RELAXED);
    uint64_t more_ns = early_ns < EARLY_TIMES * own_ns ? early_ns : EARLY_TIMES * own_ns;
    __atomic_fetch_add(&thread->early_ns, early_ns - more_ns, __ATOMIC_RELAXED);
    return own_ns + more_ns;
}

/* Notes what it used since its last check; false: it is gone. */
bool perfless_check(struct catcher *k, struct perfless_thread *thread, bool *ran)
{
    struct perfless *t = k->owner->perfless;
    uint64_t run_ns, slices, now_ns = k->round.begun_ns;
    uint64_t could_ns = could_have_ns(&t->cpus[k->ring], thread, now_ns);
    thread->checked_ns = now_ns;
    /* a brief stop proves nothing: who waits for his CPU since his turn ended is held as well as who runs */
    *ran = !t->by_stat && !k->stopper.opened && guess(thread, could_ns, now_ns);
    if (*ran) {
        return true;
    }
    if (!read_run(t, thread, &run_ns, &slices)) {
        return false;
    }
    bool is_first = !thread->checked;
    if (is_first) {
        thread->checked = true;
        thread->run_ns = thread->is_new ? 0 : run_ns;
    }
    /* less than before: the id belongs to a newer thread */
    uint64_t used_ns = run_ns >= thread->run_ns ? run_ns - thread->run_ns : run_ns;
    bool counted = !is_first && slices > 0 && slices >= thread->slices;
    thread->turn_ns = counted ? used_ns / (slices - thread->slices + 1) : 0;
    thread->run_ns = run_ns;
    thread->slices = slices;
    note_throughout(thread, could_ns, used_ns, k->stopper.opened ? SWITCH_US * NS_PER_US : 0);
    settle_used(thread, used_ns);
    if (is_first) {
        set_early_apart(t, thread);
    }
    if (used_ns > 0) {
        *ran = true;
        note_ran(thread, now_ns);
    }
    return true;
}

/* ---- CPU time of a process ---- */

/* What was used since its last sample, but not all that there is: of other threads that ended before they were listed,
 * and run nothing of the runtime, there is no sample ever. */
uint64_t perfless_claim(const struct perfless *t, struct perfless_process *p)
{
    uint64_t clock_ns, claimed_ns, explained_ns = __atomic_load_n(&p->explained_ns, __ATOMIC_RELAXED);
    uint64_t most_ns = CLAIM_TICKS * perfless_period_ns(t);
    if (!clock_process_cpu_ns(p->pid, &clock_ns)) {
        return 0;
    }
    do {
        int64_t missing_ns = (int64_t)(clock_ns - explained_ns);
        claimed_ns = missing_ns < 0 ? 0 : (uint64_t)missing_ns < most_ns ? (uint64_t)missing_ns : most_ns;
    } while (!__atomic_compare_exchange_n(&p->explained_ns, &explained_ns, explained_ns + claimed_ns, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return claimed_ns;
}
