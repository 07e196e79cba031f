/*
 * status: identity and rights of a process, from the text of /proc/PID/status.
 *
 * The rights are what decides who may trace, read or signal whom, and so which gate closes what.
 *
 * Format: proc(5), fs/proc/array.c proc_pid_status. Lines are "Key:<tab>value"; which lines exist
 * depends on the kernel's version and configuration, so a missing line leaves the default named
 * below. Only Uid is always there: without it the text is ERR_MALFORMED.
 */
#ifndef TARGET_STATUS_H
#define TARGET_STATUS_H

#include "base/err.h"
#include "base/str.h"

/* comm is 15 bytes; names of kernel workers are longer (wq_worker_comm, 64 with the NUL). */
enum { STATUS_NAME_MAX = 64 };

struct proc_ids {
    uint32_t real, effective, saved, fs;
};

struct proc_status {
    char name[STATUS_NAME_MAX]; /* NUL-terminated; the kernel's escapes undone; cut when longer */
    struct proc_ids uid, gid;
    uint32_t tgid, ppid;       /* 0 when absent */
    uint32_t tracer_pid;       /* 0: nobody traces it */
    uint32_t ns_pid;           /* its PID in the innermost namespace; 0: unknown (before 4.1) */
    uint32_t ns_pid_depth;     /* how many PID namespaces it is in, seen from here; 1: ours only */
    int seccomp;               /* 0 off, 1 strict, 2 filter; -1: unknown */
    int no_new_privs;          /* 0, 1; -1: unknown (before 4.10) */
    uint64_t cap_effective, cap_permitted, cap_bounding; /* bit n: capability n */
    uint64_t caught;           /* signals that it has handlers for; bit n: signal n + 1 */
    bool tells_caught;         /* gVisor does not */
    uint64_t rss_bytes;        /* VmRSS; 0 for kernel threads and zombies */
    uint32_t num_threads;
};

bool status_parse(struct str text, struct proc_status *out, struct err *err);

/* Does the process hold this capability (CAP_… number) now? */
static inline bool status_has_cap(const struct proc_status *status, unsigned capability)
{
    return capability < 64 && (status->cap_effective >> capability & 1) != 0;
}

/* "NET_ADMIN, SYS_PTRACE" of a set of capabilities, the first `most`; those that have no name here as their
 * numbers. */
void status_capability_names(uint64_t capabilities, unsigned most, struct buf *out);

#endif
