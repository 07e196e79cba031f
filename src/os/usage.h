/*
 * usage: reads how busy the container that we run in is, or the machine (target/usage.h).
 *
 * Of the control groups that contain us and are visible, the one with the smallest quota counts for
 * the CPU and the one with the smallest limit for memory; where neither is below what the machine has,
 * the machine counts. A container that sees only its own group reports that; one whose task or pod is
 * limited and visible reports that. A reading takes /proc/stat, /proc/meminfo, /proc/self/cgroup and
 * two to five small files per group: 0.2 ms.
 */
#ifndef OS_USAGE_H
#define OS_USAGE_H

#include "target/usage.h"

/* `root` stands before every path: "" is here. What cannot be read is not known. */
void usage_read(const char *root, struct usage *out);

/* What is left of the memory limits of our groups, where it is least; what the kernel keeps of files counts as left. */
struct usage_room {
    uint64_t limit_bytes, left_bytes;
    bool together; /* who is ended for want of this memory takes its whole group along (memory.oom.group) */
};

/* False: no group that is visible has a limit. Takes /proc/self/cgroup and three or four small files per group. */
bool usage_memory_room(const char *root, struct usage_room *out);

#endif
