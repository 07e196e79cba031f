/* Brief stops of real threads: of children that spin, get signals, are stopped, become parents, start other programs
 * and are killed. Who stops is another process than their parent, as the profiler is. */
#include "os/stop.h"
#include "capture/stacks/stops.h"
#include "child.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/status.h"
#include "test.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, US = 1000, SIGNALS = 2000, KILLS = 200, EXECS = 60 };

/* What a child tells. */
struct told {
    volatile uint64_t turns, signals, interrupted, slept_ns, first, last;
    volatile uint32_t tid;
};

static struct told *told;
static struct stopper stopper;
static struct stop_state state;

/* ---- children ---- */

__attribute__((noinline)) static void spin(void)
{
    for (;;) {
        told->turns++;
    }
}

static void count_signal(int number)
{
    (void)number;
    told->signals++;
}

static void spin_with_signals(void)
{
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGRTMIN + 5, &action, NULL);
    told->first = 1;
    spin();
}

static pid_t child_that(void (*act)(void))
{
    memset((void *)told, 0, sizeof *told);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        told->tid = (uint32_t)syscall(SYS_gettid);
        act();
        _exit(0);
    }
    return pid;
}

static int end(pid_t pid)
{
    int status = 0;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return status;
}

/* `R`, `S`, `T`, `t` …; 0: it is gone. */
static char state_of(uint32_t tid, uint32_t *tracer)
{
    char path[64], text[4096];
    struct proc_status status;
    snprintf(path, sizeof path, "/proc/%u/status", tid);
    size_t len = proc_read_file(path, text, sizeof text - 1);
    text[len] = '\0';
    const char *at = strstr(text, "State:\t");
    if (at == NULL || !status_parse((struct str){text, len}, &status, NULL)) {
        return 0;
    }
    *tracer = status.tracer_pid;
    return at[7];
}

static bool goes_on(uint32_t tid)
{
    uint32_t tracer = 0;
    uint64_t turns = told->turns;
    for (unsigned i = 0; i < 500 && told->turns == turns; i++) {
        clock_sleep_ns(MS);
    }
    char is = state_of(tid, &tracer);
    return told->turns != turns && is != 'T' && is != 't' && is != 0 && tracer == 0;
}

/* ---- the process that stops ---- */

struct job {
    void (*run)(pid_t pid);
    pid_t pid;
};

static bool do_job(void *context)
{
    const struct job *job = context;
    CHECK(stop_open(&stopper));
    job->run(job->pid);
    stop_close(&stopper);
    return true;
}

static void elsewhere(void (*run)(pid_t pid), pid_t pid)
{
    struct job job = {run, pid};
    in_child(do_job, &job);
}

static enum stop_outcome stop(pid_t pid)
{
    return stop_begin(&stopper, (uint32_t)pid, NULL, unwind_perf_mask(), &state);
}

static void wait_for(volatile uint64_t *word)
{
    for (unsigned i = 0; i < 2000 && *word == 0; i++) {
        clock_sleep_ns(MS);
    }
}

static bool able(void)
{
    const char *why;
    if (!stop_is_possible(&why)) {
        test_skip = why;
        return false;
    }
    told = told != NULL ? told : mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return told != MAP_FAILED;
}

/* ---- tests ---- */

static void stop_often(pid_t pid)
{
    unsigned inside = 0;
    for (unsigned i = 0; i < 300; i++) {
        uint64_t turns;
        struct unwind_registers registers;
        CHECK_INT(stop(pid), STOP_HELD);
        turns = told->turns;
        CHECK(unwind_registers_of_perf(&registers, unwind_perf_mask(), state.registers));
        uint64_t in_spin = unwind_ip(&registers) - (uint64_t)(uintptr_t)spin;
        inside += in_spin < 256;
        CHECK_INT(state.call, STOP_IN_NO_CALL);
        clock_sleep_ns(20 * US);
        CHECK_INT(told->turns, turns);
        stop_end(&stopper);
    }
    CHECK_INT(inside, 300);
    CHECK(goes_on((uint32_t)pid));
}

static void holds(void)
{
    if (able()) {
        pid_t pid = child_that(spin);
        wait_for(&told->turns);
        elsewhere(stop_often, pid);
        CHECK_INT(end(pid), SIGKILL);
    }
}

static void stop_and_send(pid_t pid)
{
    for (unsigned i = 0; i < SIGNALS; i++) {
        while (sigqueue(pid, SIGRTMIN + 5, (union sigval){0}) != 0) {
            clock_sleep_ns(MS); /* the queue is full */
        }
        enum stop_outcome outcome = stop(pid);
        if (outcome == STOP_HELD) {
            stop_end(&stopper);
        }
        CHECK_INT(outcome, STOP_HELD);
    }
}

static void no_signal_is_lost(void)
{
    if (able()) {
        pid_t pid = child_that(spin_with_signals);
        wait_for(&told->first);
        elsewhere(stop_and_send, pid);
        for (unsigned i = 0; i < 1000 && told->signals < SIGNALS; i++) {
            clock_sleep_ns(MS);
        }
        CHECK_INT(told->signals, SIGNALS);
        end(pid);
    }
}

static void stop_and_suspend(pid_t pid)
{
    uint32_t tracer = 0;
    for (unsigned i = 0; i < 100; i++) {
        enum stop_outcome outcome;
        kill(pid, SIGSTOP);
        outcome = stop(pid);
        if (outcome == STOP_HELD) { /* before the signal came, or while it did */
            stop_end(&stopper);
        }
        CHECK(outcome == STOP_HELD || outcome == STOP_GROUP);
        for (unsigned wait = 0; wait < 200 && state_of((uint32_t)pid, &tracer) != 'T'; wait++) {
            clock_sleep_ns(MS);
        }
        CHECK_INT(state_of((uint32_t)pid, &tracer), 'T');
        CHECK_INT(tracer, 0);
        kill(pid, SIGCONT);
        CHECK(goes_on((uint32_t)pid));
    }
}

static void suspended_stays_so(void)
{
    if (able()) {
        pid_t pid = child_that(spin);
        wait_for(&told->turns);
        elsewhere(stop_and_suspend, pid);
        end(pid);
    }
}

/* Its parent cannot be interrupted until it has ended. */
static void start_by_vfork(void)
{
    for (;;) {
        told->first = 1;
        if (vfork() == 0) {
            struct timespec time = {0, 60 * MS};
            syscall(SYS_nanosleep, &time, NULL);
            _exit(0);
        }
        wait(NULL);
        told->turns++;
    }
}

static void stop_parents(pid_t pid)
{
    unsigned pending = 0;
    for (unsigned i = 0; i < 400 && pending < 5; i++) {
        enum stop_outcome outcome = stop(pid);
        pending += outcome == STOP_PENDING;
        if (outcome == STOP_HELD) {
            stop_end(&stopper);
        }
        for (unsigned tries = 0; tries < 20 && !stop_settle(&stopper); tries++) {
        }
        CHECK(!stopper.pending);
        clock_sleep_ns(2 * MS); /* it is to get as far as the next one */
    }
    CHECK_INT(pending, 5);
    CHECK(goes_on((uint32_t)pid));
}

static void parent_of_vfork(void)
{
    if (able()) {
        pid_t pid = child_that(start_by_vfork);
        wait_for(&told->first);
        elsewhere(stop_parents, pid);
        end(pid);
    }
}

static void *become_true(void *unused)
{
    (void)unused;
    told->last = (uint64_t)syscall(SYS_gettid);
    uint64_t until_ns = clock_mono_ns() + 2 * MS;
    while (clock_mono_ns() < until_ns) {
        told->turns++;
    }
    execl("/bin/true", "true", NULL);
    _exit(3);
}

static void exec_in_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, become_true, NULL) != 0) {
        _exit(4);
    }
    spin();
}

static void stop_until_gone(pid_t pid)
{
    wait_for(&told->last);
    uint32_t tids[2] = {(uint32_t)pid, (uint32_t)told->last};
    uint64_t until_ns = clock_mono_ns() + 30 * MS;
    for (unsigned i = 0; clock_mono_ns() < until_ns; i++) {
        if (stop_begin(&stopper, tids[i % 2], NULL, unwind_perf_mask(), &state) == STOP_HELD) {
            stop_end(&stopper);
        }
        for (unsigned tries = 0; tries < 20 && !stop_settle(&stopper); tries++) {
        }
    }
    CHECK(!stopper.pending);
}

static void another_program(void)
{
    for (unsigned i = 0; i < EXECS && able(); i++) {
        int status = -1;
        pid_t pid = child_that(exec_in_a_thread);
        elsewhere(stop_until_gone, pid);
        for (unsigned wait = 0; wait < 2000 && waitpid(pid, &status, WNOHANG) == 0; wait++) {
            clock_sleep_ns(MS);
        }
        CHECK_INT(status, 0);
        if (status != 0) {
            end(pid);
        }
    }
}

static void stop_traced(pid_t pid)
{
    pid_t tracer = fork();
    if (tracer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        told->first = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 1 : 2;
        pause();
    }
    wait_for(&told->first);
    CHECK_INT(told->first, 1);
    CHECK_INT(stop(pid), STOP_DENIED);
    end(tracer);
    CHECK_INT(stop(pid), STOP_HELD);
    stop_end(&stopper);
}

static void traced(void)
{
    if (able()) {
        pid_t pid = child_that(spin);
        wait_for(&told->turns);
        elsewhere(stop_traced, pid);
        end(pid);
    }
}

static void stop_killed(pid_t pid)
{
    unsigned gone = 0;
    for (unsigned i = 0; i < 400 && gone < 2; i++) {
        if (i == 200) {
            kill(pid, SIGKILL);
        }
        enum stop_outcome outcome = stop(pid);
        if (outcome == STOP_HELD && i == 100) {
            kill(pid, SIGKILL); /* while it is held */
        }
        if (outcome == STOP_HELD) {
            stop_end(&stopper);
        }
        gone += outcome == STOP_GONE;
        CHECK(stop_settle(&stopper));
    }
    CHECK_INT(gone, 2);
}

static void killed(void)
{
    if (able()) {
        pid_t pid = child_that(spin);
        wait_for(&told->turns);
        elsewhere(stop_killed, pid);
        CHECK_INT(end(pid), SIGKILL);
    }
}

static void *outlive(void *unused)
{
    (void)unused;
    clock_sleep_ns(400ull * MS);
    _exit(7);
}

/* Its own files are closed one by one on its way out, where nobody can interrupt it. */
static void end_before_the_others(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, outlive, NULL) != 0 || syscall(SYS_unshare, CLONE_FILES) != 0) {
        _exit(4);
    }
    while (epoll_create1(0) >= 0) {
    }
    told->first = 1;
    syscall(SYS_exit, 0);
}

static void stop_who_ends(pid_t pid)
{
    wait_for(&told->first);
    enum stop_outcome outcome = STOP_HELD;
    while (outcome == STOP_HELD) {
        outcome = stop(pid);
        if (outcome == STOP_HELD) {
            stop_end(&stopper);
        }
    }
    for (unsigned tries = 0; tries < 20 && !stop_settle(&stopper); tries++) {
    }
    CHECK(!stopper.pending);
    for (unsigned wait = 0; wait < 4000 && told->last == 0; wait++) {
        (void)stop_settle(&stopper);
        clock_sleep_ns(MS);
    }
    CHECK_INT(told->last, 1);
    CHECK(!stopper.unheld);
}

/* Of whose end nobody else hears while we have not taken it. */
static void first_thread_ends_first(void)
{
    for (unsigned i = 0; i < 10 && able(); i++) {
        int status = 0;
        pid_t pid = child_that(end_before_the_others), who = fork();
        if (who == 0) {
            test_failures = 0;
            CHECK(stop_open(&stopper));
            stop_who_ends(pid);
            _exit(test_failures > 0);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK_INT(WEXITSTATUS(status), 7);
        told->last = 1;
        CHECK_INT(waitpid(who, &status, 0), who);
        CHECK_INT(status, 0);
    }
}

static void sleep_in_calls(void)
{
    struct epoll_event event;
    struct timespec time = {0, 200 * MS};
    int epoll = epoll_create1(0);
    told->first = 1;
    told->interrupted = epoll_wait(epoll, &event, 1, 2000) < 0 && errno == EINTR;
    uint64_t began_ns = clock_mono_ns();
    told->last = 1;
    while (nanosleep(&time, &time) != 0) {
        told->interrupted += 100;
    }
    told->slept_ns = clock_mono_ns() - began_ns;
    pause();
}

static void stop_sleeping(pid_t pid)
{
    wait_for(&told->first);
    clock_sleep_ns(50 * MS);
    CHECK_INT(stop(pid), STOP_HELD);
    CHECK_INT(state.call, STOP_BROKE_CALL);
    stop_end(&stopper);
    wait_for(&told->last);
    clock_sleep_ns(50 * MS);
    CHECK_INT(stop(pid), STOP_HELD);
    CHECK_INT(state.call, STOP_IN_CALL);
    stop_end(&stopper);
    wait_for(&told->slept_ns);
    CHECK_INT(told->interrupted, 1);
    CHECK(told->slept_ns >= 200 * MS);
}

static void calls(void)
{
    if (able()) {
        pid_t pid = child_that(sleep_in_calls);
        elsewhere(stop_sleeping, pid);
        end(pid);
    }
}

static void stop_for_ever(pid_t pid)
{
    for (;;) {
        if (stop(pid) == STOP_HELD) {
            stop_end(&stopper);
        }
        (void)stop_settle(&stopper);
    }
}

/* The profiler is killed at any moment: what it held goes on. */
static void who_stops_is_killed(void)
{
    if (!able()) {
        return;
    }
    pid_t pid = child_that(spin);
    wait_for(&told->turns);
    for (unsigned i = 0; i < KILLS; i++) {
        pid_t who = fork();
        if (who == 0) {
            CHECK(stop_open(&stopper));
            stop_for_ever(pid);
        }
        clock_sleep_ns((uint64_t)(100 + i * 37 % 1900) * US);
        end(who);
        CHECK(goes_on((uint32_t)pid));
    }
    CHECK_INT(end(pid), SIGKILL);
}

/* Of 64 stops one is longer than 99 of 100 of them, whatever they are. */
static void exceptions(void)
{
    uint32_t ns[64];
    for (size_t i = 0; i < 64; i++) {
        ns[i] = (uint32_t)(i + 1) * 100;
    }
    ns[5] = ns[9] = 5 * MS;
    CHECK_INT(stops_usual_longest(ns, 64), 6400);
    ns[0] = 4 * MS;
    CHECK_INT(stops_usual_longest(ns, 64), 4 * MS);
    CHECK_INT(stops_usual_longest(ns, 2), 200);
    CHECK_INT(stops_usual_longest(ns, 0), 0);
}

static uint32_t settles_at(const struct stops_judgement *j, uint32_t hz)
{
    for (unsigned i = 0; i < 20; i++) {
        uint32_t next = stops_slower_hz(j, hz);
        CHECK(next <= hz && next >= hz / 2);
        hz = next;
    }
    return hz;
}

static void limits_itself(void)
{
    const struct stops_judgement few = {.long_ns = 60 * US, .held_ns = 3 * MS, .stood_ns = 3000ull * MS},
                                 lasting = {.long_ns = 5 * MS, .held_ns = 20 * MS, .stood_ns = 3000ull * MS},
                                 many = {.long_ns = 5 * MS, .held_ns = 90 * MS, .stood_ns = 3000ull * MS};
    CHECK_INT(stops_slower_hz(&few, 99), 99);
    CHECK_INT(stops_slower_hz(&lasting, 99), 49);
    CHECK_INT(settles_at(&lasting, 99), 10);
    CHECK_INT(settles_at(&lasting, 19), 10);
    CHECK_INT(settles_at(&lasting, 5), 5); /* asked for */
    CHECK_INT(settles_at(&many, 99), 1);
    CHECK_INT(settles_at(&many, 5), 1);
    CHECK(stops_are_quiet(&few, 19) && !stops_are_quiet(&lasting, 19) && !stops_are_quiet(&many, 5));
    struct stops_judgement rare = {.long_ns = 5 * MS, .held_ns = 2 * MS, .stood_ns = 3000ull * MS};
    CHECK(stops_are_quiet(&rare, 5));
}

TESTS_THAT_MEASURE({"long stops are made less often, down to ten a second, and many down to one", limits_itself},
      {"of few stops two exceptions are no rule", exceptions},
      {"a thread that runs is held, with its registers, and goes on", holds},
      {"no signal is lost", no_signal_is_lost},
      {"who is suspended stays so, and goes on when it is told", suspended_stays_so},
      {"the parent of a vfork cannot be held, and is let go when it comes back", parent_of_vfork},
      {"a program that becomes another one meanwhile is not held up", another_program},
      {"who is traced is left alone", traced},
      {"who is killed while it is held ends", killed},
      {"a first thread that ends before it stops holds nobody up", first_thread_ends_first},
      {"a call that returns EINTR is told, and others go on", calls},
      {"whoever is killed leaves nobody stopped", who_stops_is_killed})
