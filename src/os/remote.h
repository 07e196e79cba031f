/*
 * remote: another process's memory, read while it runs and without stopping it.
 *
 * Two ways lead there: process_vm_readv, which reads many pieces at once, and, where a seccomp filter or
 * the kernel refuses that call, pread on /proc/PID/mem. Which one works is found out at the first read and
 * kept. Both need what ptrace's attach check needs: the same user and a dumpable target, or SYS_PTRACE,
 * and no Yama level that says otherwise. The file is checked when it is opened, which is done as the target's
 * user where root has no SYS_PTRACE (identity.h), and read by any thread of ours from then on. What is read
 * may change under the reader: it is the caller's to prove that it did not matter.
 *
 * Batches. Pieces that follow each other upwards with less than half a page between them are one part for
 * the kernel, which looks up mapping and page for each part. A piece which reaches into an unmapped page
 * still gives what is before it; after a fault the read goes on with the next piece. The kernel copies in
 * the order given.
 *
 * After an exec /proc/PID/mem still means the old memory, which is gone; process_vm_readv reads the new
 * program's, and does not tell. So what is read must prove itself. A process whose first thread has ended
 * while others run has no memory for either way (nor maps): it counts as gone.
 *
 * Errors: ERR_DENIED (a right is missing; remote_open says which), ERR_GONE (the process ended, or became
 * another program), ERR_MALFORMED (remote_open, remote_reader: nothing is mapped there).
 *
 * Threads: a struct remote may be used by several threads at once once remote_open returned; a struct
 * remote_caller belongs to one.
 *
 * Sources: process_vm_readv(2), proc_pid_mem(5).
 */
#ifndef OS_REMOTE_H
#define OS_REMOTE_H

#include "base/iface.h"

#include <stdint.h>

/* A reader of the process's memory; needs no release. A read is exact: a range that is mapped in part
 * is an error. */
struct memory_reader remote_reader(uint32_t pid);

struct remote {
    uint32_t pid;
    int mem; /* /proc/PID/mem, -1: process_vm_readv works */
};

/* Tries both ways on a word at `probe`, which must be mapped. */
bool remote_open(struct remote *r, uint32_t pid, uint64_t probe, struct err *err);
void remote_close(struct remote *r);

struct remote_counts {
    uint64_t calls;   /* system calls */
    uint64_t bytes;
    uint64_t unmapped; /* pieces cut short */
    uint64_t denied, gone;
};

struct remote_caller {
    const struct remote *remote;
    struct remote_counts counts;
};

/* Borrows the caller. */
struct memory_batch remote_batch(struct remote_caller *caller);

#endif
