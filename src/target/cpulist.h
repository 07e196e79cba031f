/*
 * cpulist: sets of CPUs as the kernel prints them, "0-3,7".
 *
 * Read from /sys/devices/system/cpu/online (and possible, present) and from Cpus_allowed_list of
 * /proc/PID/status. Numbers rise; ranges do not overlap.
 * Format: lib/vsprintf.c bitmap_list_string; an empty set is an empty line.
 */
#ifndef TARGET_CPULIST_H
#define TARGET_CPULIST_H

#include "base/err.h"
#include "base/str.h"

/* The highest number of CPUs a Linux kernel can be built for (NR_CPUS of x86 and arm64). */
enum { CPU_COUNT_MAX = 8192 };

/* Writes the CPU numbers in rising order to out[0 … *count). ERR_LIMIT when there are more than
 * `max`, ERR_MALFORMED when the text is not a rising list of numbers below CPU_COUNT_MAX. */
bool cpulist_parse(struct str text, uint32_t *out, size_t max, size_t *count, struct err *err);

#endif
