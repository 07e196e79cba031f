/* clock: the system's clocks behind base's interface. mono_ns is CLOCK_MONOTONIC, the clock that
 * perf samples are stamped with. */
#ifndef OS_CLOCK_H
#define OS_CLOCK_H

#include "base/iface.h"

struct clock clock_system(void);

uint64_t clock_mono_ns(void);
uint64_t clock_wall_ns(void);

/* CPU time of the calling process, all threads. */
uint64_t clock_own_cpu_ns(void);

void clock_sleep_ns(uint64_t ns);

#endif
