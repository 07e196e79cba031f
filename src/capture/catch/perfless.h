/*
 * perfless: which threads ran, and when to read their stacks, without perf.
 *
 * Concept. A catcher per CPU is woken by a timer, the session's frequency of times a second. It asks the
 * kernel which of the threads last seen on its CPU have used CPU time since its last check, and
 * reads the stack of the one that it has just interrupted. So stacks are samples of where CPU time is
 * used, never of where a thread waits. A sample stands for all that its thread used since its last one
 * (caught.weight_ns), to the nanosecond, as the scheduler counted it. What a thread used that was never
 * met running stays pending, until a later sample takes it along or the sampler settles it by name
 * (catch_settle).
 *
 * The one that was interrupted. Being runnable is not enough: on a CPU that others want as well, a thread
 * that was just woken is runnable too, and stands where it slept (a thread that naps had 40 % of its time
 * there). But the scheduler notes when a thread last ran (se.exec_start of its sched file), and
 * notes the same moment for the thread that it interrupted and for us. Kernels without that file: runnable
 * has to do. A catcher that had to wait for its CPU reads nothing: whoever had it until then stands where his turn
 * ended, and that is where a call brought his accounting up to date (his own clock read, somebody woken).
 *
 * Why a weight by the thread's own clock: the timer knows nothing of what happened between two ticks.
 *
 * Who owns what. The sampler makes and frees processes and threads; it lists task/ at once when a process is
 * published, and again within a second (a tenth, while it runs) when the number of threads has changed
 * or CPU time is not explained by the threads known. In between each thread belongs to exactly one catcher:
 *
 *   active  it ran within the last second: to the catcher of the CPU it was last seen on. When it is seen
 *           runnable on another, it goes to that one, which is woken and reads it at once if it has
 *           interrupted it. A thread that is to be held by a brief stop is not: the moment would be the other's
 *           choice, some microseconds after it was seen to run, and so nearer to where its turn ends. It is held at a
 *           tick of its new owner; or, if its turns are long enough for that to be any moment, from where it is owned;
 *   idle    to its process's home, a catcher chosen once. It costs nothing there: the home compares the
 *           process's own clock with what its threads have explained, and only when something is
 *           missing checks the idle threads, a few at a time.
 *
 * They are handed over through inboxes that take no lock. A thread that ended goes back to the sampler.
 *
 * Threads that end before they are listed, a thread for each request for example, leave CPU time that no known thread
 * explains. While there is such, the home asks the process's runtime at each tick who may be running (its lock's
 * holder, the newest of its threads), and whoever of them is not listed and runs is read likewise, by the catcher of
 * its CPU. Such a sample stands for what is unexplained at that moment, up to three ticks' worth: what runs without a
 * stack of the runtime must not be given to those that have one. A thread listed meanwhile is known from the second
 * listing on, or nine of ten would be known for their last milliseconds. Not where the process is in another PID
 * namespace: its runtime tells other numbers than ours.
 *
 * A thread that had its CPU throughout at four checks in a row is taken to have it at four more: reading its
 * accounting costs a third of a tick (a pread of schedstat 11 µs beside a busy interpreter, which has just filled
 * all caches). Where the sample itself then does not prove it, it is read at the next tick, and in any case at
 * the fifth; what was guessed too much is subtracted again. So sums stay exact.
 *
 * Cost follows what runs: a catcher with nothing active sleeps for a tenth of a second, or a half (a home), or for
 * seconds, and checks all that is idle at the same moments; the process clock is read the less often the longer reading
 * it takes, because the kernel adds up all threads.
 *
 * Descriptors: schedstat and sched are kept open for threads that are or were active, at most a quarter of
 * what may be open and 1024 (each costs the kernel a page); idle ones close theirs first. Without schedstat
 * (gVisor, a kernel without it) times come from stat, in clock ticks.
 *
 * Call order, by catch.c alone: perfless_init; perfless_publish; perfless_round, often; perfless_settle;
 * perfless_free when the catchers have ended.
 */
#ifndef CAPTURE_PERFLESS_H
#define CAPTURE_PERFLESS_H

#include "capture/catch/catch.h"
#include "capture/catch/catch_table.h"

enum {
    PERFLESS_ACTIVE_MS = 1000, /* so long after it ran a thread is checked at each tick */
    PERFLESS_IDLE_MS = 100,    /* between two checks of a process that did not run for that long, … */
    PERFLESS_REST_S = 60,      /* … or not for a minute */
    PERFLESS_REST_MS = 500,
    PERFLESS_LIST_MS = 100,    /* between two checks of the number of threads of a running process */
    PERFLESS_LIST_IDLE_MS = 1000,
    PERFLESS_LIST_MOST_MS = 10000, /* task/ is listed that often for no reason */
    PERFLESS_FILES_MAX = 1024,
    PERFLESS_PROBES = 32,      /* idle threads checked in one tick … */
    PERFLESS_HOPS = 2,         /* hand-overs without running in between */
    PERFLESS_LATE_US = 5,      /* a catcher that its timer woke, and that waited longer, waited for somebody … */
    PERFLESS_LATE_FAR_US = 50, /* … and one that another CPU has woken */
    PERFLESS_LATES_MAX = 16,   /* in a row: where a catcher always waits there is nothing better */
    PERFLESS_UNPROVEN_MAX = 256, /* runnable threads in a row: nothing proves who had the CPU here */
    PERFLESS_SAME_US = 3,      /* two moments of the scheduler, so near to each other, are one switch */
};

struct perfless;

struct perfless *perfless_init(struct catch *c);

/* From now on the threads of these, and no others, are checked. */
void perfless_publish(struct perfless *t, const struct catch_table *table, uint64_t now_ns);

/* Lists threads where it is due, takes back what has ended. */
void perfless_round(struct perfless *t, uint64_t now_ns);

/* How often catchers check from now on. Weights are by the threads' own clocks, whatever it is. */
void perfless_set_period(struct perfless *t, uint64_t period_ns);

void perfless_settle(struct perfless *t,
                  void (*each)(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns),
                  void *context);

void perfless_free(struct perfless *t);

/* ---- pure ---- */

/* When a thread ran last, on the scheduler's own clock, from the text of its sched file:
 * "se.exec_start   :   14828795.741711", in milliseconds. False: the line is missing. */
bool perfless_parse_last_ran(struct str text, uint64_t *ns);

/* Are two moments of the scheduler one switch, from the one to the other? */
bool perfless_is_one_switch(uint64_t ran_ns, uint64_t picked_ns);

/* Had a catcher to wait for somebody, when its own accounting says that it waited so long for its CPU? `woken`: by
 * another catcher, whose call has to get there. */
bool perfless_is_late(uint64_t waited_ns, bool woken);

/* Is what a thread was doing when it was held what the catcher's timer met? Not where the catcher has waited for a turn
 * to end, and the thread is in a system call by then: it slept, or was about to, and came back. `lates`: so many in a
 * row were not. */
bool perfless_is_of_this_moment(bool in_call, bool was_next, uint8_t *lates);

/* How long until a process's clock is asked again, when asking took `cost_ns` this time: some 10 ns for each
 * thread, and 200 when nothing of them is in a cache. */
uint64_t perfless_pause_ns(uint64_t period_ns, uint32_t threads, uint32_t active, uint64_t idle_ns,
                        uint64_t cost_ns);

#endif
