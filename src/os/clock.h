/* clock: the system's clocks behind base's interface. mono_ns is CLOCK_MONOTONIC, the clock that
 * perf samples are stamped with. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/iface.h"

#include <pthread.h>

struct clock clock_system(void);

uint64_t clock_mono_ns(void);
uint64_t clock_wall_ns(void);

/* The clock of process start times: CLOCK_BOOTTIME, which unlike the monotonic one counts suspended time. */
uint64_t clock_boot_ns(void);

/* CPU time of the calling process, all threads. */
uint64_t clock_own_cpu_ns(void);

/* Of our children that have ended, which clock_own_cpu_ns counts as well. */
uint64_t clock_children_cpu_ns(void);

/* CPU time of one of our threads, which has not been joined. */
uint64_t clock_thread_cpu_ns(pthread_t thread);

/* CPU time of another process, all threads, ended ones included; false when it is gone or the kernel does not
 * tell. The kernel adds its threads up: 0.3 µs, and 10 to 200 ns for each thread. */
bool clock_process_cpu_ns(uint32_t pid, uint64_t *out);

/* The processor's counter: the time stamp counter, or CNTVCT. Programs read it, too, and keep what they read. */
uint64_t clock_cycles(void);

void clock_sleep_ns(uint64_t ns);

#endif
