/*
 * thread: where the calling thread runs, and how soon.
 *
 * A thread that is bound to a CPU and woken there by an interrupt preempts what ran there, if the
 * scheduler lets it: policy OTHER (it may have inherited BATCH or IDLE, which never preempt), nice not
 * above the other's, and a short slice, which newer schedulers honour. Binding, policy OTHER and the
 * slice need no right; FIFO and a lower nice do, and are tried. What was not granted is reported, and is no
 * error.
 *
 * A slice is what the thread wants to run at a time: it must outlast its work, or it is preempted in the
 * middle. Kernels before 6.12 accept the request and ignore it.
 *
 * Sources: sched_setaffinity(2), sched_setattr(2), getcpu(2), eventfd(2), clock_nanosleep(2).
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Binds the calling thread to one CPU; false when it is not among those allowed here. */
bool thread_bind(unsigned cpu, struct err *err);

struct thread_rank {
    bool fifo;         /* SCHED_FIFO 1 was granted */
    bool slice;        /* the slice was accepted */
    int nice;          /* now */
    struct err refused; /* what was asked for and refused first; ERR_NONE */
};

/* Ranks the calling thread: FIFO when `fifo` and allowed, else OTHER with `nice` (or the present nice
 * when that is refused) and the slice. */
void thread_rank(bool fifo, int nice, uint64_t slice_ns, struct thread_rank *out);

/* The CPU that the calling thread is on. */
unsigned thread_cpu(void);

/* CPUs that this process may use, at most `max`; returns how many. */
size_t thread_allowed_cpus(unsigned *out, size_t max);

/* The calling thread's waits end when their time is up, not up to 50 µs later, with somebody else's. */
void thread_wake_exactly(void);

/* CPUs that another thread may use and this process may not; false when it is gone. */
bool thread_cpus_outside(uint32_t tid, unsigned *count);

/* Scheduling of another thread: policy (SCHED_*) and nice; false when it is gone. */
bool thread_rank_of(uint32_t tid, int *policy, int *nice);

/* A descriptor that can be waited for and set off from another thread; -1 when there is none to have. */
int waker_open(void);
void waker_set(int fd);
void waker_clear(int fd);

/* Waits until `fd` can be read (true), the waker is set, or time is up. fd -1: only the waker. A waker that was
 * found set is clear afterwards, however often it was set. */
bool waker_wait(int waker, int fd, uint64_t timeout_ns);
void waker_close(int fd);

#endif
