/*
 * usage: a look at how busy the container that we run in is, or the machine (target/usage.h).
 *
 * Of the control groups that are ours and visible here, that with the least quota counts for the
 * CPU, that with the least limit for memory, each unless the machine has no more: a container that
 * sees but its own group is told of alone, one whose task or pod is limited and visible by that. A
 * look reads /proc/stat, /proc/meminfo, /proc/self/cgroup and two to five small files per group:
 * 0.2 ms.
 */
#ifndef OS_USAGE_H
#define OS_USAGE_H

#include "target/usage.h"

/* `root` stands before every path: "" is here. What cannot be read is not known. */
void usage_look(const char *root, struct usage *out);

#endif
