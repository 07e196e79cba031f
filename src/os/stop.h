/*
 * stop: a thread of another process held still for as long as its registers and some of its memory are read.
 *
 * Concept. PTRACE_SEIZE, PTRACE_INTERRUPT, wait, PTRACE_GETREGSET, and PTRACE_DETACH when the caller has read what it
 * wants. The thread is stopped between the wait and the detach, no longer, and its process is traced by nobody
 * before and after. It is for threads that run: one that sleeps in a system call may have that call return EINTR.
 *
 * Who stops must be on the thread's own CPU: it has just preempted the thread there, which reaches its stop as soon as
 * stop_begin waits. From another CPU a stop takes a hundred times as long.
 *
 * A thread is never left stopped. All of a stop is one thread's of ours (the kernel takes these calls from no other),
 * and whatever ends that thread detaches what it holds: the kernel does so itself (exit_ptrace). A stop that does not
 * come within STOP_WAIT_MS (the thread is in the kernel and cannot be interrupted: the parent of a vfork, a disk that
 * does not answer) is still asked for then, and cannot be taken back: STOP_PENDING, and stop_settle must be called
 * until it says that nothing is pending; it lets the thread go as soon as it stops.
 *
 * The first thread of a process can end before it stops while others go on. The kernel lets nobody go who has ended,
 * and tells the process's parent of its end only when we have taken it: stop_settle must be called now and then while
 * `unheld`.
 *
 * A signal is never swallowed. A thread that stops for one that is just being delivered gets it with the detach, and
 * one in a group stop (SIGSTOP, SIGTSTP …) stays in it.
 *
 * The thread may end, or become another program, meanwhile. An exec gives it its process's id: so it is waited for by
 * "whoever this thread traces", never by number.
 *
 * System calls. One that the thread was in when it was stopped goes on, or is started again by the kernel, without the
 * program's knowing; but for the few that return EINTR however they are interrupted (epoll_wait, semop, sigtimedwait,
 * receiving with a timeout …). struct stop_state tells which it was.
 *
 * What cannot be helped: an exec of a set-uid program, or one with file capabilities, that comes between the seize and
 * the stop gives no rights, for it is traced by who has no SYS_PTRACE; and whoever suspends us, or throttles our
 * cgroup, meanwhile holds the thread as long.
 *
 * Rights: those of PTRACE_MODE_ATTACH_REALCREDS, as for process_vm_readv (access.h): the same user, or SYS_PTRACE, and
 * Yama; and a seccomp filter that lets ptrace pass. `as` is the identity of the target where root has no
 * SYS_PTRACE and may become its user (identity.h); else null.
 *
 * Call order, all in one thread: stop_open; for each stop stop_begin and, if it returned STOP_HELD, stop_end;
 * stop_settle after STOP_PENDING; stop_close. The caller is no parent: a child of that same thread would be taken for
 * a stopped one.
 *
 * Sources: ptrace(2); kernel/ptrace.c, kernel/signal.c (ptrace_stop, get_signal); Linux's <asm/perf_regs.h>.
 */
#ifndef OS_STOP_H
#define OS_STOP_H

#include "os/identity.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    STOP_WAIT_MS = 20,
    STOP_SETTLE_MS = 100,
    STOP_REGISTERS_MAX = 64,
    SIGNAL_STOP_LATE = 37, /* real-time: the wait is over; it interrupts a system call and does nothing else */
};

enum stop_outcome {
    STOP_HELD,
    STOP_GONE,    /* it ended, or its id means another program by now */
    STOP_DENIED,  /* a right is missing, or another process traces it */
    STOP_GROUP,   /* SIGSTOP and its like have stopped its process: it was left so */
    STOP_PENDING, /* it did not stop so far */
    STOP_OUTCOME_COUNT,
};

enum stop_call {
    STOP_IN_NO_CALL,
    STOP_IN_CALL,      /* which goes on, or had ended */
    STOP_BROKE_CALL,   /* which returns EINTR */
};

struct stop_state {
    uint64_t registers[STOP_REGISTERS_MAX]; /* those of the mask, in the order of its bits, as in a perf sample */
    enum stop_call call;
};

struct stopper {
    int timer;      /* the kernel's id */
    bool opened;
    bool pending;
    bool unheld;    /* somebody has ended without having been held, and may still be ours */
    uint32_t asked; /* the thread that was to stop last */
    uint32_t held;  /* that is stopped now; 0: none */
    int signal;     /* to be given to it */
};

/* Would these calls be let through, or kill? Tried by a child where there is a filter (trial.h); `why` is a sentence,
 * null when they would. */
bool stop_is_possible(const char **why);

/* How long `count` stops of a child of ours take that runs on this thread's CPU, from asking to letting go. Binds the
 * calling thread, none of whose other children may end meanwhile. Returns how many there were. */
unsigned stop_measure(unsigned count, uint32_t *ns);

/* False: there is no timer to be had, so no stop would end by itself. */
bool stop_open(struct stopper *s);
void stop_close(struct stopper *s);

/* `mask`: PERF_REG_* of which the values are wanted. */
enum stop_outcome stop_begin(struct stopper *s, uint32_t tid, const struct identity *as, uint64_t mask,
                             struct stop_state *out);
void stop_end(struct stopper *s);

/* Waits STOP_SETTLE_MS at most, while there is a stop to come; true: nothing is pending. */
bool stop_settle(struct stopper *s);

#endif
