/*
 * probe: single attempts, for the doctor.
 *
 * Each function does one thing that a profile needs, once, and undoes it: 0 when it worked, else the errno of the
 * refusal. Nothing is deduced, nothing is left behind, no process is stopped, signalled or written to.
 * Where a profile would do it as the user of that process (identity.h), so do these: an
 * errno is then that of the last try.
 *
 * Rings and following are attempted by perf_open and perf_follow_process themselves (perf.h).
 *
 * Sources: process_vm_readv(2), proc_pid_mem(5), perf_event_open(2), cgroups(7), sched(7).
 */
#ifndef OS_PROBE_H
#define OS_PROBE_H

#include "os/thread.h"

#include <stdint.h>

/* Eight bytes of a process's memory. An address where nothing is mapped is read for the permission alone,
 * which is asked for first: EFAULT and EIO count as 0. */
int probe_memory_call(uint32_t pid, uint64_t address); /* process_vm_readv */
int probe_memory_file(uint32_t pid, uint64_t address); /* /proc/PID/mem */

/* An address in this program's constant data: mapped in us, and in a child of ours. */
uint64_t probe_own_address(void);

/* The beginning of /proc/PID/NAME. */
int probe_text(uint32_t pid, const char *name);

/* The root that a process sees. */
int probe_root(uint32_t pid);

/* The file that is mapped there, by /proc/PID/map_files. */
int probe_map_file(uint32_t pid, uint64_t start, uint64_t limit);

/* The kernel's symbols; `hidden`: they can be read, and all addresses are 0. */
int probe_kernel_names(bool *hidden);

/* Whether files can be made in a folder. */
int probe_folder(const char *path);

enum probe_event {
    PROBE_CLOCK,    /* samples of user code, by CPU time */
    PROBE_SWITCHES, /* records of context switches */
    PROBE_CYCLES,   /* a hardware counter */
};

/* An event on one thread, 0: the calling one. */
int probe_event(enum probe_event event, uint32_t tid);

/* A child that waits until it is ended, or we end. */
struct probe_child {
    uint32_t pid;
    int pipe;
};
bool probe_child_start(struct probe_child *child, struct err *err);
void probe_child_end(struct probe_child *child);

/* What a catcher (capture/catch/catch.h) does when it begins, in a thread of its own: binds itself to each CPU that
 * is allowed here, and asks for its rank. */
struct probe_catcher {
    unsigned allowed, bound;
    int bind_number;        /* of the first refusal */
    struct thread_rank rank;
    int policy;             /* SCHED_*, as it is then */
    int own_policy, own_nice; /* of this process */
};
bool probe_catcher(uint64_t slice_ns, struct probe_catcher *out);

/* How the kernel's scheduler weighs our control group against a process's. */
struct probe_weights {
    bool same;               /* one group: nothing is weighed */
    unsigned version;        /* of the groups, 0: there are none */
    uint64_t own, other;     /* weights where the two part, 0: cannot be read. The usual weight is 1024 with
                              * version 1, 100 with version 2 */
};
int probe_weights(uint32_t pid, struct probe_weights *out);

#endif
