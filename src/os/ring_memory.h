/*
 * ring_memory: how much memory perf's rings may lock here, and what to say when it is not enough.
 *
 * Concept. The kernel charges a ring with its pages and one more. First against an allowance that all
 * processes of a user share, in all containers of the host: kernel.perf_event_mlock_kb for every online
 * CPU. What exceeds it counts against the process's own limit of locked memory (RLIMIT_MEMLOCK, ulimit -l),
 * and what exceeds that, too, is refused (EPERM). CAP_IPC_LOCK and a paranoid level of -1 lift both limits.
 * How much of the allowance other processes hold cannot be queried; it follows from what is refused.
 *
 * Sources: perf_mmap in kernel/events/core.c; perf_event_open(2); proc_sys_kernel(5).
 */
#ifndef OS_RING_MEMORY_H
#define OS_RING_MEMORY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct ring_memory {
    unsigned cpus;          /* each has a ring */
    unsigned absent;        /* of these are off-line: they add nothing to the allowance */
    uint64_t allowance_kib; /* per CPU */
    uint64_t own_kib;       /* UINT64_MAX: no limit */
    uint32_t uid;
    bool unlimited;
};

struct ring_memory ring_memory_here(unsigned cpus);

/* All that may be locked while nobody else of this user locks anything; UINT64_MAX: any amount. */
uint64_t ring_memory_kib(const struct ring_memory *m);

/* A ring of ring_kib on each CPU was refused while held_kib were locked already. False, as all that sets an
 * error. */
bool ring_memory_refused(const struct ring_memory *m, uint64_t ring_kib, uint64_t held_kib,
                         struct err *err);

/* The rings are smaller than the limits alone would make them. */
void ring_memory_is_short(const struct ring_memory *m, uint64_t ring_kib, uint64_t wished_kib,
                          struct err *why);

#endif
