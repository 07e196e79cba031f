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

#endif
