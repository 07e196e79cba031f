/* A brief stop: ptrace's calls in the order that leaves no thread stopped and no signal swallowed, with a timer that
 * ends a wait which takes too long. On which processor which word of the kernel's register set is which of perf's
 * registers stands here. */
#include "os/stop.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/thread.h"
#include "os/trial.h"
#include "target/stat.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PRSTATUS = 1,         /* NT_PRSTATUS */
    EVENT_STOP = 128,     /* PTRACE_EVENT_STOP */
    WORDS_MAX = 64,
    RESTART_FIRST = 512, RESTART_LAST = 516, /* -ERESTARTSYS … -ERESTART_RESTARTBLOCK: calls that start again */
};

/* ---- registers ---- */

#ifdef __x86_64__
enum { WORD_RESULT = 10, WORD_CALL = 15 }; /* rax, orig_rax of struct user_regs_struct */

/* By PERF_REG_X86_*: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8 … r15. */
static const uint8_t word_of[] = {
    10, 5, 11, 12, 13, 14, 4, 19, 16, 18, 17, 20, 23, 24, 25, 26, 9, 8, 7, 6, 3, 2, 1, 0,
};

static uint64_t word_at(const uint64_t *words, unsigned number)
{
    return number < sizeof word_of ? words[word_of[number]] : 0;
}

static bool in_call(uint32_t tid, const uint64_t *words)
{
    (void)tid;
    return (int64_t)words[WORD_CALL] >= 0;
}
#else
enum { WORD_RESULT = 0, SYSTEM_CALL = 0x404 }; /* NT_ARM_SYSTEM_CALL */

static uint64_t word_at(const uint64_t *words, unsigned number) /* x0 … x30, sp, pc: the same order */
{
    return words[number];
}

/* The number is no register there. A result that only the kernel uses within itself tells without asking. */
static bool in_call(uint32_t tid, const uint64_t *words)
{
    int call = -1;
    struct iovec one = {&call, sizeof call};
    int64_t result = (int64_t)words[WORD_RESULT];
    if (result <= -RESTART_FIRST && result >= -RESTART_LAST) {
        return true;
    }
    return result == -EINTR && ptrace(PTRACE_GETREGSET, (pid_t)tid, SYSTEM_CALL, &one) == 0 && call >= 0;
}
#endif

static enum stop_call call_of(uint32_t tid, const uint64_t *words)
{
    if (!in_call(tid, words)) {
        return STOP_IN_NO_CALL;
    }
    return (int64_t)words[WORD_RESULT] == -EINTR ? STOP_BROKE_CALL : STOP_IN_CALL;
}

static bool take_registers(uint32_t tid, uint64_t mask, struct stop_state *out)
{
    uint64_t words[WORDS_MAX] = {0};
    struct iovec all = {words, sizeof words};
    if (ptrace(PTRACE_GETREGSET, (pid_t)tid, PRSTATUS, &all) != 0) {
        return false;
    }
    size_t count = 0;
    for (unsigned number = 0; number < STOP_REGISTERS_MAX; number++) {
        if ((mask >> number & 1) != 0) {
            out->registers[count++] = word_at(words, number);
        }
    }
    out->call = call_of(tid, words);
    return true;
}

/* ---- the wait, and its end ---- */

/* Nobody can be held who has, and a first thread is waited for in vain until the last of its process has. */
static bool has_ended(uint32_t tid)
{
    char path[32], text[1024];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%u/stat", tid);
    size_t len = proc_read_file(path, text, sizeof text);
    return !stat_parse((struct str){text, len}, &stat, NULL) || stat.state == 'Z' || stat.state == 'X';
}

static void do_nothing(int number)
{
    (void)number;
}

/* Again and again, for it may go off before the wait has begun. */
static void set_timer(const struct stopper *s, uint64_t ns)
{
    struct timespec time = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    struct itimerspec set = {time, time};
    (void)syscall(SYS_timer_settime, s->timer, 0, &set, NULL);
}

static void let_late_through(int how)
{
    sigset_t late;
    sigemptyset(&late);
    sigaddset(&late, SIGNAL_STOP_LATE);
    (void)pthread_sigmask(how, &late, NULL);
}

bool stop_open(struct stopper *s)
{
    /* as the kernel has it, for this thread alone: the C library's struct has no name for the field */
    struct {
        union sigval value;
        int number, notify, tid;
        char room[64];
    } event = {.number = SIGNAL_STOP_LATE, .notify = SIGEV_THREAD_ID, .tid = (int)syscall(SYS_gettid)};
    struct sigaction action = {.sa_handler = do_nothing}, child = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    *s = (struct stopper){0};
    /* without the second, each stop's SIGCHLD wakes whoever waits for a descriptor of signals */
    if (sigaction(SIGNAL_STOP_LATE, &action, NULL) != 0 || sigaction(SIGCHLD, &child, NULL) != 0 ||
        syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &s->timer) != 0) {
        return false;
    }
    let_late_through(SIG_UNBLOCK);
    s->opened = true;
    return true;
}

void stop_close(struct stopper *s)
{
    if (s->opened) {
        let_late_through(SIG_BLOCK);
        (void)syscall(SYS_timer_delete, s->timer);
        s->opened = false;
    }
}

/* Whatever this thread traces, under whichever number. 0: time is up; -1: there is none. */
static pid_t wait_for_any(const struct stopper *s, uint64_t patience_ns, int *status)
{
    set_timer(s, patience_ns);
    pid_t tid = (pid_t)syscall(SYS_wait4, -1, status, __WALL | __WNOTHREAD, NULL);
    int number = errno;
    set_timer(s, 0);
    return tid > 0 ? tid : number == EINTR ? 0 : -1;
}

/* A stop of our own has no signal; every other one has, or is its whole process's. */
static enum stop_outcome judge(struct stopper *s, pid_t tid, int status)
{
    s->held = (uint32_t)tid;
    s->signal = 0;
    if (status >> 16 == EVENT_STOP) {
        return WSTOPSIG(status) == SIGTRAP ? STOP_HELD : STOP_GROUP;
    }
    s->signal = WSTOPSIG(status);
    return STOP_HELD;
}

/* Who ends under another number is a first thread that was given up while others of its process went on. */
static enum stop_outcome wait_until_held(struct stopper *s, uint64_t patience_ns)
{
    int status = 0;
    pid_t tid;
    do {
        tid = wait_for_any(s, patience_ns, &status);
    } while (tid > 0 && !WIFSTOPPED(status) && (uint32_t)tid != s->asked);
    s->pending = tid == 0;
    if (tid <= 0) {
        return tid == 0 ? STOP_PENDING : STOP_GONE;
    }
    return WIFSTOPPED(status) ? judge(s, tid, status) : STOP_GONE;
}

/* ---- a stop ---- */

static bool seize(uint32_t tid, const struct identity *as)
{
    bool taken = as != NULL && identity_take_real(as);
    bool good = ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL) == 0;
    int number = errno;
    if (taken) {
        identity_leave_real();
    }
    errno = number;
    return good;
}

enum stop_outcome stop_begin(struct stopper *s, uint32_t tid, const struct identity *as, uint64_t mask,
                             struct stop_state *out)
{
    s->asked = tid;
    if (!seize(tid, as)) {
        return errno == ESRCH || has_ended(tid) ? STOP_GONE : STOP_DENIED;
    }
    (void)ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL); /* fails for one that has just ended: the wait tells */
    enum stop_outcome outcome = wait_until_held(s, STOP_WAIT_MS * NS_PER_MS);
    if (outcome == STOP_GROUP || (outcome == STOP_HELD && (s->held != tid || !take_registers(tid, mask, out)))) {
        stop_end(s);
        outcome = outcome == STOP_GROUP ? STOP_GROUP : STOP_GONE; /* of an exec: the id is another program's */
    }
    return outcome;
}

void stop_end(struct stopper *s)
{
    /* refused only of one that was killed meanwhile: its end is then taken from the kernel, for its parent to see */
    if (ptrace(PTRACE_DETACH, (pid_t)s->held, NULL, (void *)(intptr_t)s->signal) != 0 && errno == ESRCH) {
        s->asked = s->held;
        s->pending = true;
        (void)stop_settle(s);
    }
    s->held = 0;
}

/* Takes the ends of those that ended unheld. */
static void collect(struct stopper *s)
{
    pid_t tid;
    do {
        tid = (pid_t)syscall(SYS_wait4, -1, NULL, __WALL | __WNOTHREAD | WNOHANG, NULL);
    } while (tid > 0);
    s->unheld = tid == 0;
}

bool stop_settle(struct stopper *s)
{
    enum stop_outcome outcome = s->pending ? wait_until_held(s, STOP_SETTLE_MS * NS_PER_MS) : STOP_GONE;
    if (outcome == STOP_HELD || outcome == STOP_GROUP) {
        stop_end(s);
    } else if (outcome == STOP_PENDING) {
        s->pending = !has_ended(s->asked);
        s->unheld = s->unheld || !s->pending;
    }
    if (s->unheld && !s->pending) {
        collect(s);
    }
    return !s->pending;
}

/* ---- may it be done at all ---- */

/* Nobody has that number: whoever lets the call pass says so. */
static bool passes(void)
{
    return ptrace(PTRACE_SEIZE, INT32_MAX, NULL, NULL) == 0 || errno == ESRCH;
}

static void try_calls(void)
{
    struct stopper s;
    (void)passes();
    if (stop_open(&s)) {
        set_timer(&s, NS_PER_S);
        stop_close(&s);
    }
}

bool stop_is_possible(const char **why)
{
    *why = trial_run(try_calls) == TRIAL_KILLED ? "a seccomp filter kills for ptrace or timer_create"
           : !passes()                          ? "a seccomp filter or security module refuses ptrace"
                                                : NULL;
    return *why == NULL;
}

/* ---- what it takes ---- */

__attribute__((noreturn)) static void run_for_ever(pid_t parent)
{
    (void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (volatile unsigned turns = 0; (turns & UINT16_MAX) != 0 || syscall(SYS_getppid) == parent;) {
        turns++;
    }
    _exit(0);
}

static unsigned measure_on(uint32_t tid, unsigned count, uint32_t *ns)
{
    struct stopper s;
    struct stop_state state;
    unsigned done = 0;
    if (!stop_open(&s)) {
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        clock_sleep_ns(NS_PER_MS);
        uint64_t began_ns = clock_mono_ns();
        if (stop_begin(&s, tid, NULL, 0, &state) != STOP_HELD) {
            break;
        }
        stop_end(&s);
        ns[done++] = (uint32_t)(clock_mono_ns() - began_ns);
    }
    stop_close(&s);
    return done;
}

unsigned stop_measure(unsigned count, uint32_t *ns)
{
    unsigned cpus[256];
    size_t cpu_count = thread_allowed_cpus(cpus, sizeof cpus / sizeof *cpus);
    pid_t own = getpid(), child;
    if (cpu_count == 0 || !thread_bind(cpus[cpu_count - 1], NULL) || (child = trial_fork()) < 0) {
        return 0;
    }
    if (child == 0) {
        run_for_ever(own);
    }
    clock_sleep_ns(NS_PER_MS);
    unsigned done = measure_on((uint32_t)child, count, ns);
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR) {
    }
    return done;
}
