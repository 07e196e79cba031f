/*
 * accounts: the kernel's books against our samples.
 *
 * The kernel counts every process's CPU time (utime + stime of /proc/PID/stat); samples explain most
 * of it. The sampling clock and these books do not run quite in step: the clock stands still within a
 * context switch and goes on during interrupts, a few per cent of a busy server either way. Up to 15 %
 * the samples of a process therefore weigh their period as the books measure it. What is missing
 * beyond that is added to the profile under its name, so that per process and window the parts sum to
 * the books:
 *
 *   user code only may be sampled  the rest is "[kernel, hidden]", up to the system time
 *   records were lost, many ticks were late, a process lived shorter than a sample   "[lost]"
 *   perf is refused (rung 4)       user time is "[native, no perf]", system time "[kernel, hidden]",
 *                                  per thread, by polling /proc
 *
 * Processes that ended cannot be asked any more. accounts_glance reads the books of the living four
 * times a second, so that only the rest of such a process's life is by its samples. Of those that
 * came and went between two glances the events' own counters tell the sum; without perf it stands in
 * their parents' times of waited-for children.
 *
 * Call order: accounts_init; accounts_adopt for each process that ran before us; during the window
 * accounts_poll (rung 4 only, every ACCOUNTS_POLL_MS); accounts_close at its end, before the profile
 * is handed over and targets_end_window is called.
 */
#ifndef CAPTURE_ACCOUNTS_H
#define CAPTURE_ACCOUNTS_H

#include "capture/targets.h"
#include "os/perf.h"
#include "os/proc.h"

enum { ACCOUNTS_POLL_MS = 100 };

struct accounts {
    struct targets *targets;
    uint64_t tick_ns;
    uint64_t period_ns;      /* of sampling */
    uint64_t counted_ns;     /* perf counters at the beginning of the window */
    uint64_t lost_records;   /* of the window that is being closed */
    uint64_t began_ticks;    /* our own start: processes that are older had a life before. 0: there
                              * is no /proc, and only records tell what has ended */
    struct buf text;         /* scratch */
    struct pid_list pids;    /* scratch */
    uint32_t polls;
    struct map strangers;    /* pids seen and found not to be ours */
    uint64_t strangers_until_ns;
    bool follow_all;         /* -a: every process is a target */
};

void accounts_init(struct accounts *a, struct targets *targets, uint64_t period_ns,
                   bool follow_all);
void accounts_release(struct accounts *a);

/* Takes the present times of a process as the beginning; false when it is gone. */
bool accounts_adopt(struct accounts *a, struct target *target);

/* Finds processes that targets on rung 4 have started (or, with follow_all, all processes). */
void accounts_discover(struct accounts *a, uint64_t now_ns);

/* Adds the CPU time that targets on rung 4 used since the last poll. */
void accounts_poll(struct accounts *a, struct profile *p);

/* Reads the books of targets on perf, so that they are known up to now when a target ends before the
 * window does and can no longer be asked. Called every second or so; now_ns is monotonic. */
void accounts_glance(struct accounts *a, uint64_t now_ns);

/* Closes the window's books. perf may be null. */
void accounts_close(struct accounts *a, struct profile *p, struct perf *perf,
                    uint64_t lost_records);

/* Does any target still run? */
bool accounts_any_alive(struct accounts *a);

#endif
