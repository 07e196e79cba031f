/*
 * usage: how busy a machine or a container is, from the kernel's texts.
 *
 * Concept. One reading (struct usage) holds counters of CPU time and the memory in use; two readings make
 * percentages of the time between them. Where a control group of ours may use less than the machine
 * has, the group is reported: a share of its quota, a share of its limit. What the kernel
 * keeps in memory of files, and would give back, is not counted as used, neither of the machine
 * (MemAvailable) nor of a group (inactive_file).
 *
 *     usage_read (os/usage.h) → usage_cpu_percent(&before, &after), usage_memory_percent(…)
 *
 * Sources: proc_stat(5), proc_meminfo(5); Linux Documentation/admin-guide/cgroup-v2.rst (cpu.max,
 * cpu.stat, memory.*), cgroup-v1/cpuacct.rst, cgroup-v1/memory.rst, scheduler/sched-bwc.rst.
 */
#ifndef TARGET_USAGE_H
#define TARGET_USAGE_H

#include "base/str.h"

/* The first line of /proc/stat, and how many CPUs have lines of their own. */
struct usage_machine {
    uint64_t busy_ticks, all_ticks; /* of all CPUs; waiting for a disk is not busy */
    unsigned processors;
};
bool usage_of_stat(struct str text, struct usage_machine *out);

/* /proc/meminfo. Kernels before 3.14 do not say what is available: then it is what is free, buffers
 * and cache. */
bool usage_of_meminfo(struct str text, uint64_t *total_bytes, uint64_t *used_bytes);

/* How many CPUs' time a group may use: cpu.max of version 2, or the texts of cpu.cfs_quota_us and
 * cpu.cfs_period_us. False: as many as there are, or it cannot be read. */
bool usage_cpu_max(struct str text, double *cores);
bool usage_quota(struct str quota_us, struct str period_us, double *cores);

/* The number of "KEY NUMBER" in a file of such lines (cpu.stat, memory.stat). */
bool usage_value(struct str text, struct str key, uint64_t *out);

/* A file that holds one number. "max" does not count as one, nor does the number near 2^63 that version
 * 1 writes for it. */
bool usage_number(struct str text, uint64_t *out);

/* One reading. */
struct usage {
    double cores;            /* the group's quota; 0: the machine is reported */
    uint64_t used, there;    /* so far: CPU ticks used, and all; of a group CPU and wall time, ns */
    uint64_t memory_used, memory_there; /* bytes. `there` is 0 where it is not known, as above */
};

/* Of what there was between two readings; < 0: unknown. At most 100: a group may have saved some of
 * its quota for a burst. */
double usage_cpu_percent(const struct usage *before, const struct usage *after);

/* The mean of both readings; < 0: unknown. */
double usage_memory_percent(const struct usage *before, const struct usage *after);

#endif
