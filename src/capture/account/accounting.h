/*
 * accounting: the kernel's CPU accounting against our samples.
 *
 * The kernel counts every process's CPU time (utime + stime of /proc/PID/stat); samples explain most of it. The
 * sampling clock and this accounting do not run quite in step: the clock stands still within a context switch and goes
 * on during interrupts, a few per cent of a busy server either way. Up to 15 % the samples of a process therefore weigh
 * their period as the accounting measures it. What is missing beyond that is added to the profile under its name, so
 * that per process and window the parts sum to the accounting:
 *
 *   user code only may be sampled  the rest is "[kernel, hidden]", up to the system time
 *   records were lost, samples were late, a process lived shorter than a sample, threads hardly ran, nothing was
 *   sampled for a while (budget.h)   "[lost]"
 *   CAPTURE_PROC     user time is "[native, no perf]", system time "[kernel, hidden]", per thread, by polling /proc
 *   CAPTURE_RUNTIME  the threads' own clocks weigh the samples; beyond 15 % the rest is "[lost]"
 *
 * A process that ended cannot be asked any more. Each has one source for what it used, the best there is:
 *
 *   its last reading   and its samples since. accounting_refresh reads the living: young processes, and those whose
 *                      threads are too short for samples, ten times a second, others and those of more than 500
 *                      threads more rarely. What the counters of its tree have beyond all others of it (trees.h)
 *                      falls to those that ended, to each as much as it may have used since it was read, at most
 *   its ancestor       that lives or was read later: its time of waited-for children is exact, and has what the kernel
 *                      does for a task before its events begin and after they have ended: a quarter of a process that
 *                      hardly runs. Where it has more than all that was accounted so far, the ended ones have the rest
 *   without perf       its parent's time of waited-for children; of those that nobody saw it is "[lost]" of the parent
 *
 * So nothing counts twice: a tree's processes never have more than its counters, or the kernel's own figures of them.
 * Of those without a sample one per name is kept, and has what falls to all of that name: churn costs no memory. A
 * window with more CPU time than its CPUs had is a fault of ours: accounting_excess_ns finds it, and it is logged.
 *
 * An excluded target (selection.h) is read all the same, so that the sums stay right, and nothing of it is attributed.
 * One that was excluded for a part of the window has the rest: its CPU time less the weight of the samples that were
 * dropped. With filters, the time of children that nobody saw alive belongs to nobody: whether they would be selected
 * is not known.
 *
 * Call order: accounting_init; accounting_adopt for each process that ran before us; during the window accounting_poll
 * (without perf, every ACCOUNTING_POLL_MS) and accounting_refresh (with perf); accounting_close_window at its end,
 * before the profile is handed over and targets_end_window is called.
 */
#ifndef CAPTURE_ACCOUNT_ACCOUNTING_H
#define CAPTURE_ACCOUNT_ACCOUNTING_H

#include "capture/follow/selection.h"
#include "capture/follow/scan.h"
#include "capture/follow/targets.h"
#include "os/perf.h"
#include "os/proc.h"

enum { ACCOUNTING_POLL_MS = 100 };

/* A child of a target without perf that was read after its end and is still there: nobody has waited for it. */
struct zombie {
    uint32_t pid, heir;
    uint64_t heir_ticks; /* the heir's start */
    uint64_t used_ns;    /* with its children's */
    uint64_t clock_ns;   /* its own, */
    bool clocked;        /* if that was told */
};

struct accounting {
    struct targets *targets;
    uint64_t tick_ns;
    uint64_t period_ns;      /* of sampling */
    uint64_t processors;     /* that may run its threads at once; 0: not known */
    uint64_t unsampled_ns;   /* more than a period of a thread may be without a sample, because it was
                              * another than period_ns for a while; 0: it was not */
    uint64_t counted_ns;     /* perf counters at the beginning of the window */
    bool follows_all;        /* whatever a target starts, and has started, is a target */
    uint64_t accounted_ns;   /* with perf, of all windows so far */
    uint64_t ran_before_ns;  /* of those that ended: what they had used before they were targets */
    uint64_t lost_records;   /* of the window that is being closed */
    uint64_t began_ticks;    /* our own start: processes that are older had a life before. 0: there
                              * is no /proc, and only records tell what has ended */
    struct buf text;         /* scratch */
    struct pid_list pids;    /* scratch */
    uint32_t polls;
    bool polled_alive;       /* the last poll read of one that it lives, and nobody has asked since */
    uint64_t now_ns;         /* monotonic: of the poll */
    uint64_t stirred_ns;     /* monotonic: when one that is polled had used more than a hundredth of the time */
    struct scan scan;
    struct selection *selection;   /* null: every process is selected */
    uint64_t ended_excluded; /* targets of this window that were dropped, and had been excluded */
    VEC(struct zombie) zombies;
    VEC(struct target *) ending; /* scratch */
    struct map folded;       /* name and capture mode -> the target that stands for
                              * those that ended unseen */
    struct map followed;     /* trees.h */
    bool follow_all;         /* -a without perf: every selected process is a target */
};

void accounting_init(struct accounting *a, struct targets *targets, uint64_t period_ns,
                   bool follow_all);
void accounting_release(struct accounting *a);

/* Takes the present times of a process as the beginning; false when it is gone. */
bool accounting_adopt(struct accounting *a, struct target *target);

/* Reads the CPU time since its start that samples can be of, of a target on perf; false when it has ended. */
bool accounting_cpu_time(struct accounting *a, struct target *target, uint64_t *cpu_ns);

/* Finds processes that targets on CAPTURE_PROC have started (or, with follow_all, all processes). */
void accounting_discover(struct accounting *a, uint64_t now_ns);

/* Adds the CPU time that targets on CAPTURE_PROC used since the last poll. */
void accounting_poll(struct accounting *a, struct profile *p);

/* Reads the times of targets on perf, so that they are known up to now when a target ends before the window does.
 * Called ten times a second; now_ns is monotonic. `last`: they are about to end, so all are read. */
void accounting_refresh(struct accounting *a, uint64_t now_ns, bool last);

/* A target has another name by this RECORD_COMM, often that of another program, and targets do not know it yet. What it
 * used without a sample, as threads do that are too short for one, is told now, under the old one. */
void accounting_note_rename(struct accounting *a, struct profile *p, const struct record *record);

/* Attributes what the window's samples do not explain. perf may be null. */
void accounting_close_window(struct accounting *a, struct profile *p, struct perf *perf,
                    uint64_t lost_records);

/* After accounting_close_window: how much more than `there_ns`, the time of all CPUs in this window, its processes
 * have, beyond what readings are cut by. Anything but 0 is a defect. */
uint64_t accounting_excess_ns(const struct accounting *a, const struct profile *p, uint64_t there_ns);

/* A target's samples are its runtime's from now on, in a session with perf: what it used in this window before, with
 * and without perf's samples, is what they stand for, too, if there are enough of them. False: it has ended. */
bool accounting_end_events(struct accounting *a, struct profile *p, struct target *target);

/* A target that was polled gets events: what it used so far is attributed, and its
 * accounting begins anew. */
void accounting_begin_events(struct accounting *a, struct profile *p, struct target *target);

/* Does any target still run? Asked right after a poll, by what that read. */
bool accounting_any_alive(struct accounting *a);

/* Does this one, and goes on? Not while its first thread ends. */
bool accounting_is_running(struct accounting *a, const struct target *target);

#endif
