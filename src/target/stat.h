/*
 * stat: one process or thread in numbers, from the text of /proc/PID/stat or
 * /proc/PID/task/TID/stat, and a thread's time from …/schedstat.
 *
 * CPU times are in clock ticks (sysconf(_SC_CLK_TCK), 100 per second on every Linux met). In a
 * process's stat they are sums over all its threads, ended ones included; in a thread's stat they
 * are the thread's own, but the child times are the process's.
 *
 * Format: proc(5), fs/proc/array.c do_task_stat. The name may hold blanks, parentheses and
 * newlines, so fields are counted from after the last ')'. Fields that an older kernel does not
 * write are 0.
 */
#ifndef TARGET_STAT_H
#define TARGET_STAT_H

#include "base/err.h"
#include "base/str.h"

struct proc_stat {
    uint32_t pid;          /* field 1; the TID in a thread's stat */
    struct str comm;       /* field 2, borrowed; any byte may occur */
    char state;            /* field 3: R S D Z T t X I … */
    uint32_t ppid;         /* field 4 */
    uint32_t flags;        /* field 9: the kernel's PF_… bits */
    uint64_t utime_ticks;  /* field 14 */
    uint64_t stime_ticks;  /* field 15 */
    uint64_t cutime_ticks; /* field 16: of children that ended and were waited for */
    uint64_t cstime_ticks; /* field 17 */
    uint32_t num_threads;  /* field 20 */
    uint64_t start_ticks;  /* field 22: since boot; with the pid the identity of a process */
};

/* ERR_MALFORMED when a field up to num_threads is missing or no number. */
bool stat_parse(struct str text, struct proc_stat *out, struct err *err);

/* Fields 3 and 39 alone, quickly: a thread waits while they are asked for. */
bool stat_where(struct str text, char *state, uint32_t *processor);

/* Is this a thread of the kernel itself (PF_KTHREAD)? */
bool stat_is_kernel_thread(const struct proc_stat *stat);

/* Has the process ended? A first thread that has ended is shown as a zombie while the others run on. */
bool stat_has_ended(const struct proc_stat *stat);

/* Has its first thread ended, or is about to? It has lost its events then, shows as running for a moment, and may use
 * CPU time still. */
bool stat_is_ending(const struct proc_stat *stat);

struct proc_schedstat {
    uint64_t cpu_ns;  /* on a CPU; exact, unlike ticks */
    uint64_t wait_ns; /* runnable, waiting for a CPU */
    uint64_t slices;  /* times put on a CPU */
};

/* All three are 0 on a kernel built without CONFIG_SCHED_INFO. */
bool schedstat_parse(struct str text, struct proc_schedstat *out, struct err *err);

/* Where a thread sleeps, from the text of its syscall file: stack pointer and instruction; false when it runs. */
bool syscall_place(struct str text, uint64_t *sp, uint64_t *ip);

#endif
