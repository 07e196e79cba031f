/* Which thread a catcher of the perf-less sampler has just interrupted, and its stack: by the kernel's data of the
 * thread, read and proven, or handed over to the catcher of the CPU on which it runs. Knows nothing of how threads are
 * found, nor of the queues that they wait in. */
#include "base/time.h"
#include "capture/catch/perfless_private.h"

enum {
    MISSES_MAX = 16,
    LATE_CALL_US = 200, /* that a system call takes */
    NEXT_US = 20,       /* that who comes next waits */
    AT_ONCE_ROUNDS = 64, /* that find nobody who had to leave at once until it is taken that nobody ever has */
    LONG_TURN_MS = 5,   /* on average, between two switches: a few microseconds after any moment is any moment */
    AFAR_MOST = 4,      /* active threads of a catcher that holds such on other CPUs */
};

static struct catcher *catcher_of(const struct catch *c, unsigned cpu)
{
    for (size_t i = 0; i < c->catcher_count; i++) {
        if (c->catchers[i]->cpu == cpu) {
            return c->catchers[i];
        }
    }
    return NULL;
}

const struct catch_target *perfless_target_of(const struct catcher *k, const struct perfless_process *p)
{
    const struct catch_target *target = catch_table_find(k->table, p->pid);
    return target != NULL && target->serial == p->serial && catch_is_wanted(target, 0) ? target : NULL;
}

/* Its catcher reads it at once: it runs there now. */
static void hand_over(struct perfless *t, struct catcher *to, struct perfless_thread *thread)
{
    thread->hops++;
    perfless_send(&t->cpus[to->ring].inbox, thread);
    waker_set(to->waker);
}

/* ---- reading a stack ---- */

bool perfless_was_next(const struct catcher *k)
{
    return k->rank.fifo || k->owner->perfless->cpus[k->ring].late_ns <= NEXT_US * NS_PER_US;
}

static bool is_of_this_moment(const struct catcher *k, struct perfless_cpu *cpu)
{
    if (cpu->late_ns == 0 && k->held.call == STOP_IN_NO_CALL) {
        cpu->at_once = AT_ONCE_ROUNDS;
    }
    return cpu->at_once > 0 ||
           perfless_is_of_this_moment(k->held.call != STOP_IN_NO_CALL, perfless_was_next(k), &cpu->lates);
}

static enum catch_verdict read_into(struct catcher *k, const struct catch_target *target,
                                    const struct perfless_thread *thread, bool afar, struct caught *out, size_t room)
{
    struct catch_evidence e = {.cpu = k->cpu};
    *out = (struct caught){.bytes = sizeof *out,
                           .pid = target->pid,
                           .tid = thread->tid,
                           .end = RUNTIME_NO_THREAD};
    if (target->stops && catch_read_held(k, target, thread->tid, out, room)) {
        return afar || is_of_this_moment(k, perfless_cpu_of(k)) ? CATCH_PROVEN : CATCH_ASLEEP;
    }
    if (afar || target->runtime == NULL) { /* nothing is read without a stop: a later sample stands for this, too */
        return CATCH_ASLEEP;
    }
    if (!catch_read(k, target, thread->tid, 0, out, room, &e)) {
        out->start_ns = out->end_ns = k->round.begun_ns;
        return CATCH_UNREAD;
    }
    e.sample_ns = e.start_ns; /* the timer chose the moment: never late */
    return catch_prove(&e, 0);
}

static bool has_frames(const struct caught *caught)
{
    while (caught != NULL && caught->frame_count == 0) {
        caught = caught_next(caught);
    }
    return caught != NULL;
}

/* What the sample stands for. A thread that no listing has, and that runs nothing of the runtime, stands for nothing:
 * it may be about to begin, or have ended meanwhile. */
static uint64_t weight_of(struct catcher *k, struct perfless_thread *thread, const struct caught *caught)
{
    if (!thread->unlisted) {
        return perfless_weigh(thread);
    }
    thread->was_read = has_frames(caught);
    return thread->was_read ? perfless_claim(k->owner->perfless, thread->process) : 0;
}

/* A thread that fell asleep while it was read was met where it waits: no sample of its CPU time. */
static void keep_sample(struct catcher *k, const struct catch_target *target,
                        struct perfless_thread *thread, enum catch_verdict verdict, struct caught *out)
{
    catch_add(&k->tally.verdicts[verdict], 1);
    thread->steady = verdict == CATCH_PROVEN ? thread->steady : 0;
    if (verdict == CATCH_ASLEEP) {
        return;
    }
    if (verdict == CATCH_OTHER_CPU && k->bind_again_ns == 0) {
        k->bind_again_ns = k->round.begun_ns; /* somebody bound us to other CPUs */
    }
    if (verdict != CATCH_PROVEN && verdict != CATCH_UNREAD) {
        catch_read_again(k, target, thread->tid, out);
    }
    out->verdict = (uint8_t)verdict;
    out->weight_ns = weight_of(k, thread, out);
    if (out->weight_ns > 0) {
        catch_buffer_close(&k->buffer, 0, out->bytes);
    }
}

/* Who is held in a system call is met when it comes back, at the call: that is where the kernel's time belongs, and the
 * kernel, which may not be interrupted there, is what the catcher has waited for. If it is not, a turn that had to end
 * would have taken longer. */
static bool is_of_a_call(const struct catch_target *target, const struct perfless_cpu *cpu)
{
    return target->stops && cpu->late_ns <= LATE_CALL_US * NS_PER_US;
}

/* Whoever had the CPU until then stands where his turn ended, and not where the timer met him: at a call that sleeps,
 * mostly, and calls that bring his accounting up to date end a turn that is over, too: his own clock read, somebody
 * woken. First on its CPU the catcher waits for nothing else than the kernel. If it is not, most kernels do not move
 * their clock between the decision that somebody has to go and his going: then it has not waited at all, and where
 * that is so now and then, any wait is one for a turn's end. Where the catcher always waits, because preemption is
 * lazy, there is nothing better. */
static bool began_late(const struct catcher *k, const struct catch_target *target, struct perfless_cpu *cpu)
{
    if (target->stops && k->rank.fifo) {
        return false;
    }
    if (target->stops && cpu->at_once > 0) {
        cpu->at_once -= cpu->late_ns > 0;
        return cpu->late_ns > 0;
    }
    bool is = cpu->late && cpu->lates < PERFLESS_LATES_MAX && !is_of_a_call(target, cpu);
    cpu->lates += is;
    return is;
}

/* Less of a held thread's stack may be read than was asked for: then it is cut. */
static struct caught *open_room(struct catcher *k, const struct catch_target *target, size_t *room)
{
    size_t most = catch_room_for(target) + catch_room_to_hold(k->owner, target);
    return catch_buffer_open(&k->buffer, most - (target->stops ? target->stack_bytes : 0), most, room);
}

/* Who is to be held must be on our CPU, and run. Whose clock says that he ran until we did need not be asked: of other
 * CPUs the kernel knows that later. */
static bool is_here(struct catcher *k, const struct catch_target *target, const struct perfless_thread *thread)
{
    char state;
    unsigned cpu;
    struct catch_plan *plan = catch_plans_get(&k->plans, target, thread->tid);
    return catch_plan_stat(plan, target->pid, thread->tid, &state, &cpu) && state == 'R' && cpu == k->cpu;
}

static bool read_now(struct catcher *k, const struct catch_target *target, struct perfless_thread *thread,
                     bool guessed, bool afar)
{
    size_t room;
    struct caught *out = open_room(k, target, &room);
    if (out == NULL) {
        catch_add(&k->tally.lost, 1);
        return true;
    }
    enum catch_verdict verdict = read_into(k, target, thread, afar, out, room);
    if (guessed && verdict == CATCH_MOVED) {
        return false;
    }
    keep_sample(k, target, thread, verdict, out);
    return true;
}

bool perfless_read(struct catcher *k, const struct catch_target *target, struct perfless_thread *thread,
                   bool guessed)
{
    if (guessed && target->stops && !thread->to_the_end && !is_here(k, target, thread)) {
        return false;
    }
    return began_late(k, target, perfless_cpu_of(k)) || read_now(k, target, thread, guessed, false);
}

/* Did we take the CPU from this thread, on whichever CPU it is now? Where the kernel does not tell: true.
 * Telling costs it 10 µs each, for it writes down all it knows of a thread. */
static bool was_interrupted(struct catcher *k, struct perfless_thread *thread)
{
    struct perfless_cpu *cpu = perfless_cpu_of(k);
    if (cpu->own_sched < 0) {
        return true;
    }
    cpu->doubts = true;
    if (!cpu->asked) {
        cpu->asked = true;
        cpu->picked_ns = perfless_last_ran_ns(cpu->own_sched);
    }
    return perfless_is_one_switch(perfless_thread_ran_ns(k->owner->perfless, thread), cpu->picked_ns);
}

/* Where a round outlasts the catcher's turn, on a slow machine, nothing ever proves who ran: then every so many times
 * it is taken to be so. Not where somebody is proven now and then: whoever is runnable and was not interrupted waits
 * for the CPU, at the call that he slept in mostly, and is met the more often the more others want it. */
static bool proves_nobody(struct perfless_cpu *cpu, struct perfless_thread *thread)
{
    bool never = cpu->unproven == PERFLESS_UNPROVEN_MAX;
    cpu->unproven += !never;
    thread->misses += thread->misses < MISSES_MAX;
    return never && thread->misses == MISSES_MAX;
}

/* A stop needs no interruption. To wake the catcher of its CPU costs as much as a sample, and the scheduler moves whom
 * that one interrupts to a CPU that has nothing to do: a busy thread among idle CPUs was met at half of its ticks. The
 * moment is ours then, some microseconds after it was seen to run. */
static bool may_hold_afar(const struct catcher *k, const struct catch_plan *plan, const struct catch_target *target,
                          const struct perfless_thread *thread)
{
    return target->stops && k->stopper.opened && k->round.begun_ns >= plan->hold_again_ns &&
           thread->turn_ns >= LONG_TURN_MS * NS_PER_MS &&
           k->owner->perfless->cpus[k->ring].active.count < AFAR_MOST;
}

bool perfless_read_if_interrupted(struct catcher *k, const struct catch_target *target,
                                  struct perfless_thread *thread)
{
    char state;
    unsigned cpu;
    if (k->owner->unprovable) { /* nobody is interrupted: one CPU is as good as another */
        perfless_read(k, target, thread, false);
        return true;
    }
    struct catch_plan *plan = catch_plans_get(&k->plans, target, thread->tid);
    if (!catch_plan_stat(plan, target->pid, thread->tid, &state, &cpu)) {
        return true;
    }
    if (state != 'R') {
        return true;
    }
    struct catcher *there = cpu == k->cpu ? k : catcher_of(k->owner, cpu);
    if (there != NULL && there != k && may_hold_afar(k, plan, target, thread)) {
        return read_now(k, target, thread, false, true);
    }
    if (there != NULL && there != k) {
        bool goes = thread->hops < PERFLESS_HOPS;
        if (goes) {
            hand_over(k->owner->perfless, there, thread);
        }
        return !goes;
    }
    struct perfless_cpu *own = perfless_cpu_of(k);
    bool is_it = there == NULL || was_interrupted(k, thread);
    own->unproven = is_it ? 0 : own->unproven;
    if (is_it || (target->stops && proves_nobody(own, thread))) {
        thread->misses = 0;
        perfless_read(k, target, thread, false);
    }
    return true;
}
