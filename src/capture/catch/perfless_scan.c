/* A catcher's side of the perf-less sampler: woken by its timer it checks which threads used CPU time, has the one
 * that it has just interrupted read, and moves threads between catchers and between active and idle. The order of
 * owners and boxes is in perfless.h. */
#include "base/random.h"
#include "base/time.h"
#include "capture/catch/perfless_private.h"
#include "os/clock.h"
#include "os/proc.h"

enum {
    WAIT_MAX_S = 5,
    UNHELD_MS = 100,     /* a parent waits for the end of who ended unheld (os/stop.h) */
    UNSEEN_US = 100,     /* of a process's time nobody asks for less */
    KERNEL_TICK_MS = 4,  /* a thread that runs on another CPU is counted that late */
    PROBE_US = 6,        /* to open, read and close a schedstat */
    SWEEP_SHARE = 50,    /* sweeps take at most so small a part of the time … */
    SWEEP_VAIN_SHARE = 200, /* … and this after one that found nothing */
    WAIT_SHARE = 8,      /* of a period: longer than that a round only waits */
    KEEP_TICKS = 8,      /* so much time of unlisted threads waits for their samples */
};

static struct perfless *perfless_of(const struct catcher *k)
{
    return k->owner->perfless;
}

static void give_back(struct perfless *t, struct perfless_thread *thread)
{
    if (!thread->idle) {
        __atomic_fetch_sub(&thread->process->active, 1, __ATOMIC_RELAXED);
    }
    perfless_close_files(t, thread);
    perfless_send(&t->outbox, thread);
}

static bool is_gone(const struct perfless_thread *thread)
{
    return __atomic_load_n(&thread->gone, __ATOMIC_RELAXED) ||
           __atomic_load_n(&thread->process->gone, __ATOMIC_ACQUIRE);
}

/* Idle threads give up the last quarter of the descriptors. */
static void make_idle(struct perfless *t, struct perfless_thread *thread)
{
    __atomic_fetch_sub(&thread->process->active, 1, __ATOMIC_RELAXED);
    thread->idle = true;
    if (__atomic_load_n(&t->files, __ATOMIC_RELAXED) > t->files_most - t->files_most / 4) {
        perfless_close_files(t, thread);
    }
    perfless_send(&t->cpus[thread->process->home].inbox, thread);
    waker_set(t->owner->catchers[thread->process->home]->waker);
}

static void make_active(struct perfless_thread *thread)
{
    thread->idle = false;
    __atomic_fetch_add(&thread->process->active, 1, __ATOMIC_RELAXED);
}

/* Reads the thread if we interrupted it. False: it runs elsewhere, and was handed over. */
static bool take_sample(struct catcher *k, struct perfless_thread *thread)
{
    const struct catch_target *target = perfless_target_of(k, thread->process);
    if (target == NULL || __atomic_load_n(&thread->pending_ns, __ATOMIC_RELAXED) == 0) {
        return true;
    }
    if (thread->throughout && perfless_read(k, target, thread, true)) {
        return true;
    }
    thread->steady = 0;
    return perfless_read_if_interrupted(k, target, thread);
}

/* ---- active threads ---- */

static void check_active(struct catcher *k, struct perfless_thread *thread)
{
    struct perfless *t = perfless_of(k);
    bool ran;
    if (is_gone(thread) || !perfless_check(k, thread, &ran)) {
        give_back(t, thread);
    } else if (!ran && k->round.begun_ns - thread->ran_ns > PERFLESS_ACTIVE_MS * NS_PER_MS) {
        make_idle(t, thread);
    } else if (!ran || take_sample(k, thread)) {
        perfless_put(&perfless_cpu_of(k)->active, thread);
    }
}

/* ---- idle threads ---- */

static void check_idle(struct catcher *k, struct perfless_thread *thread)
{
    struct perfless *t = perfless_of(k);
    bool ran;
    if (!perfless_check(k, thread, &ran)) {
        give_back(t, thread);
    } else if (!ran) {
        perfless_put(&thread->process->idle, thread);
    } else {
        make_active(thread);
        if (take_sample(k, thread)) {
            perfless_put(&perfless_cpu_of(k)->active, thread);
        }
    }
}

static void give_back_gone(struct perfless *t, struct perfless_process *p)
{
    for (size_t i = p->idle.count; i > 0; i--) {
        struct perfless_thread *thread = perfless_take(&p->idle);
        if (is_gone(thread)) {
            give_back(t, thread);
        } else {
            perfless_put(&p->idle, thread);
        }
    }
    p->sweep = p->sweep < p->idle.count ? p->sweep : p->idle.count;
}

static int64_t missing_ns(const struct perfless_process *p)
{
    return (int64_t)(p->clock_ns - __atomic_load_n(&p->explained_ns, __ATOMIC_RELAXED));
}

/* No sample will stand for it. */
static void set_aside(struct perfless_process *p, int64_t ns)
{
    __atomic_fetch_add(&p->explained_ns, (uint64_t)ns, __ATOMIC_RELAXED);
}

/* CPU time that no known thread explains. The kernel counts threads on other CPUs late, and they are
 * checked a tick apart: so small an amount means nothing, unless the last full check is long ago. */
static bool is_time_missing(const struct perfless *t, const struct perfless_process *p, uint64_t now_ns)
{
    uint64_t active = __atomic_load_n(&p->active, __ATOMIC_RELAXED), late_ns = UNSEEN_US * NS_PER_US;
    if (now_ns - p->swept_ns < PERFLESS_ACTIVE_MS * NS_PER_MS) {
        late_ns += active * (perfless_period_ns(t) + KERNEL_TICK_MS * NS_PER_MS);
    }
    return missing_ns(p) > (int64_t)late_ns;
}

static void begin_sweep(struct perfless_process *p, uint64_t now_ns)
{
    if (p->sweep == 0 && now_ns >= p->sweep_ns) {
        p->sweep = p->idle.count;
        p->full = true;
        p->found = false;
    }
}

/* What remains after all threads were checked was used by threads that are gone or not listed. */
static void end_sweep(struct catcher *k, struct perfless_process *p)
{
    const struct perfless *t = perfless_of(k);
    uint64_t share = p->found ? SWEEP_SHARE : SWEEP_VAIN_SHARE, now_ns = k->round.begun_ns;
    p->swept_ns = now_ns;
    p->sweep_ns = now_ns + p->idle.count * PROBE_US * NS_PER_US * share;
    p->full = false;
    if (is_time_missing(t, p, now_ns)) {
        __atomic_store_n(&p->unlisted, true, __ATOMIC_RELAXED);
        perfless_expect_unlisted(k, p);
    }
    int64_t kept_ns = perfless_meets_unlisted(p, now_ns) ? (int64_t)(KEEP_TICKS * perfless_period_ns(t)) : 0;
    int64_t left_ns = missing_ns(p);
    if (kept_ns == 0 || left_ns > kept_ns) {
        set_aside(p, left_ns - kept_ns);
    }
}

static void go_on_sweeping(struct catcher *k, struct perfless_process *p)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    while (p->sweep > 0 && p->idle.count > 0 && cpu->probes < PERFLESS_PROBES) {
        size_t before = p->idle.count;
        p->sweep--;
        cpu->probes++;
        check_idle(k, perfless_take(&p->idle));
        p->found = p->found || p->idle.count < before;
    }
    p->sweep = p->sweep < p->idle.count ? p->sweep : p->idle.count;
    if (p->sweep == 0 && p->full) {
        end_sweep(k, p);
    }
}

static void ask_clock(struct perfless *t, struct perfless_process *p, uint64_t now_ns)
{
    uint64_t clock_ns;
    if (!clock_process_cpu_ns(p->pid, &clock_ns)) {
        p->ran_ns = now_ns; /* without a process clock every thread is checked repeatedly */
        begin_sweep(p, now_ns);
        return;
    }
    p->ran_ns = clock_ns > p->clock_ns ? now_ns : p->ran_ns;
    p->clock_ns = clock_ns;
    if (!p->clocked) {
        p->clocked = true;
        set_aside(p, missing_ns(p));
        p->ran_ns = now_ns;
    }
    if (is_time_missing(t, p, now_ns)) {
        begin_sweep(p, now_ns);
    }
}

static void check_process(struct catcher *k, struct perfless_process *p)
{
    struct perfless *t = perfless_of(k);
    uint64_t now_ns = k->round.begun_ns;
    if (__atomic_exchange_n(&p->any_gone, false, __ATOMIC_ACQUIRE)) {
        give_back_gone(t, p);
    }
    if (now_ns >= p->check_ns) {
        uint64_t before_ns = clock_mono_ns();
        ask_clock(t, p, now_ns);
        uint64_t cost_ns = clock_mono_ns() - before_ns;
        uint64_t pause_ns = perfless_pause_ns(perfless_period_ns(t),
                                              __atomic_load_n(&p->thread_count, __ATOMIC_RELAXED),
                                              __atomic_load_n(&p->active, __ATOMIC_RELAXED), now_ns - p->ran_ns,
                                              cost_ns);
        bool idle = pause_ns >= PERFLESS_IDLE_MS * NS_PER_MS;
        p->check_ns = idle ? (now_ns / pause_ns + 1) * pause_ns : now_ns + pause_ns; /* one wake-up for all idle ones */
    }
    go_on_sweeping(k, p);
}

/* ---- rounds ---- */

static void leave_process(struct perfless *t, struct perfless_process *p)
{
    give_back_gone(t, p);
    perfless_send(&t->process_outbox, p);
}

static void check_processes(struct catcher *k)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    struct perfless_process *p = cpu->processes, *next;
    cpu->processes = NULL;
    for (; p != NULL; p = next) {
        next = p->next;
        if (__atomic_load_n(&p->gone, __ATOMIC_ACQUIRE) && !perfless_has_handed_over(p)) {
            leave_process(perfless_of(k), p);
            continue;
        }
        check_process(k, p);
        p->next = cpu->processes;
        cpu->processes = p;
    }
}

static void take_processes(struct perfless_cpu *cpu)
{
    struct perfless_process *p = perfless_receive(&cpu->process_inbox), *next;
    for (; p != NULL; p = next) {
        next = p->next;
        p->next = cpu->processes;
        cpu->processes = p;
    }
}

/* Threads: new ones and idle ones of our processes, and active ones that were seen here. */
static void take_threads(struct catcher *k)
{
    struct perfless *t = perfless_of(k);
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    struct perfless_thread *thread = perfless_receive(&cpu->inbox), *next;
    for (; thread != NULL; thread = next) {
        next = thread->next;
        if (thread->idle) { /* its process is asked less often while there is none */
            thread->process->check_ns = k->round.begun_ns;
        }
        if (thread->unlisted) {
            perfless_take_unlisted(k, thread);
        } else if (is_gone(thread)) {
            give_back(t, thread);
        } else if (thread->idle && thread->checked) {
            perfless_put(&thread->process->idle, thread);
        } else if (thread->idle) {
            perfless_put_first(&thread->process->idle, thread);
            thread->process->sweep++;
        } else if (k->stopper.opened || take_sample(k, thread)) { /* it is held at a tick of ours: perfless.h */
            perfless_put(&cpu->active, thread);
        }
    }
}

static void meet_unlisted(struct catcher *k)
{
    for (struct perfless_process *p = perfless_cpu_of(k)->processes; p != NULL; p = p->next) {
        if (perfless_meets_unlisted(p, k->round.begun_ns)) {
            perfless_meet_unlisted(k, p);
        }
    }
}

static void check_all_active(struct catcher *k)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    for (size_t i = cpu->active.count; i > 0; i--) {
        check_active(k, perfless_take(&cpu->active));
    }
}

/* A tick while anything is active here, a process's turn else, or nothing until we are woken. */
static uint64_t next_moment(const struct perfless *t, struct perfless_cpu *cpu, bool unheld, uint64_t now_ns)
{
    uint64_t next_ns = random_next_ns(now_ns, perfless_period_ns(t), &cpu->seed);
    uint64_t first_ns = now_ns + (unheld ? UNHELD_MS * NS_PER_MS : WAIT_MAX_S * NS_PER_S);
    for (const struct perfless_process *p = cpu->processes; p != NULL; p = p->next) {
        uint64_t own_ns = p->sweep > 0 || perfless_meets_unlisted(p, now_ns) ? next_ns : p->check_ns;
        first_ns = own_ns < first_ns ? own_ns : first_ns;
    }
    return cpu->active.count > 0 || first_ns < next_ns ? next_ns : first_ns;
}

/* A sixth of what a stop costs: not where nobody was in doubt. */
void perfless_ask_ahead(struct catcher *k, bool woken)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    cpu->asked = k->stopper.opened && !woken && cpu->active.count > 0 && cpu->doubts;
    cpu->doubts = cpu->doubts && woken;
    if (cpu->asked) {
        cpu->picked_ns = perfless_last_ran_ns(cpu->own_sched);
    }
}

static void round_of(struct catcher *k, bool woken)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    cpu->probes = 0;
    perfless_ask_ahead(k, woken); /* before the round itself can be interrupted: a wait until then is in what follows */
    cpu->late = perfless_has_waited(cpu, woken);
    cpu->lates = cpu->late || !perfless_was_next(k) ? cpu->lates : 0;
    take_processes(cpu); /* before their threads */
    take_threads(k);
    if (!woken) { /* a tick's moment is nobody's doing */
        meet_unlisted(k);
        check_all_active(k);
    }
    check_processes(k);
}

/* Who holds a thread waits for its CPU in the midst of that: such waits are none of before the next round. */
static bool settle_stop(struct catcher *k)
{
    bool holds = k->stopper.opened && (k->stopper.pending || k->round.has_read), goes_on = catch_settle_stop(k);
    if (holds && goes_on) {
        (void)perfless_note_waits(perfless_cpu_of(k));
    }
    return goes_on;
}

void perfless_run(struct catcher *k)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    catch_settle_in(k);
    cpu->seed = (uint64_t)k->cpu * 2654435761u + 88172645463325252u;
    cpu->unproven = PERFLESS_UNPROVEN_MAX; /* until somebody is: a short run on a slow machine has samples, too */
    cpu->own_schedstat = proc_open_own_schedstat();
    cpu->own_sched = proc_open_own_sched();
    if (perfless_last_ran_ns(cpu->own_sched) == 0) {
        proc_close(cpu->own_sched);
        cpu->own_sched = -1;
    }
    cpu->next_ns = clock_mono_ns();
    thread_wake_exactly(); /* else with others' timers, which are set when somebody is switched to */
    (void)(k->owner->held_registers != 0 && !k->owner->unprovable && stop_open(&k->stopper));
    while (settle_stop(k)) {
        uint64_t now_ns = clock_mono_ns();
        if (catch_wait(k, -1, cpu->next_ns > now_ns ? cpu->next_ns - now_ns : 0) == CATCH_STOP) {
            break;
        }
        catch_begin(k);
        bool woken = k->round.begun_ns < cpu->next_ns;
        round_of(k, woken);
        catch_end(k);
        cpu->begun_ns = k->round.begun_ns;
        cpu->ended_ns = clock_mono_ns();
        /* a round that waited for a stop ends where threads change: the next moment is as far from there */
        bool waited = cpu->ended_ns - cpu->begun_ns > perfless_period_ns(perfless_of(k)) / WAIT_SHARE;
        uint64_t next_ns = next_moment(perfless_of(k), cpu, k->stopper.unheld, waited ? cpu->ended_ns : cpu->begun_ns);
        cpu->next_ns = woken && cpu->next_ns < next_ns ? cpu->next_ns : next_ns;
    }
    stop_close(&k->stopper);
    proc_close(cpu->own_schedstat);
    proc_close(cpu->own_sched);
}
