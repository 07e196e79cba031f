/*
 * sandbox: a child process that may compute and nothing else (struct sandbox of base/iface.h).
 *
 * For libraries that read foreign files without bounds: they may crash, loop or allocate without
 * end, and what is lost is the child.
 *
 * How it is made: by fork, from whichever thread asks. musl takes the locks of malloc and of every
 * other part of libc around fork (src/process/fork.c, since 1.2.2), so that the child can use them;
 * our own locks may be held by threads that the child does not have, and what runs there takes none.
 * A fresh exec of this program is not possible everywhere (noexec mounts, a deleted file), and a
 * helper kept from the start on costs memory while it is not used.
 *
 * What the child has: a copy of this process's memory, one socket to its parent, and what the parent
 * gives through it. Every other descriptor is closed, perf events among them.
 *
 * What it is denied: memory beyond `data_bytes` more than its parent had (files that it maps
 * do not count), SANDBOX_CPU_S of processor time, and by a seccomp filter every system call but those
 * that read and write the socket, map memory, and end: no files, network, processes, signals to others. A call
 * that is denied fails with EPERM. It is the first that the kernel kills when memory is short, leaves
 * no core, and dies with its parent's thread.
 *
 * Where fork is refused, start says so; where a filter is, the child ends with SANDBOX_DENIED.
 */
#ifndef OS_SANDBOX_H
#define OS_SANDBOX_H

#include "base/iface.h"

enum {
    SANDBOX_CPU_S = 30, /* the parent's deadlines are shorter; this is for a parent that is stopped */
};

struct sandbox sandbox_system(uint64_t data_bytes);

#endif
