#include "os/clock.h"
#include "base/time.h"

#include <sys/resource.h>
#include <time.h>

static uint64_t now_of(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
    return now_of(CLOCK_MONOTONIC);
}

uint64_t clock_wall_ns(void)
{
    return now_of(CLOCK_REALTIME);
}

uint64_t clock_boot_ns(void)
{
    return now_of(CLOCK_BOOTTIME);
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * NS_PER_US;
}

uint64_t clock_children_cpu_ns(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_CHILDREN, &usage) == 0 ? ns_of(usage.ru_utime) + ns_of(usage.ru_stime) : 0;
}

uint64_t clock_own_cpu_ns(void)
{
    return now_of(CLOCK_PROCESS_CPUTIME_ID) + clock_children_cpu_ns();
}

uint64_t clock_thread_cpu_ns(pthread_t thread)
{
    clockid_t id;
    return pthread_getcpuclockid(thread, &id) == 0 ? now_of(id) : 0;
}

bool clock_process_cpu_ns(uint32_t pid, uint64_t *out)
{
    enum { CPUCLOCK_SCHED = 2 }; /* clock_getcpuclockid would ask whether there is one, each time */
    clockid_t id = (clockid_t)(~pid << 3 | CPUCLOCK_SCHED);
    struct timespec t;
    if (clock_gettime(id, &t) != 0) {
        return false;
    }
    *out = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
    return true;
}

uint64_t clock_cycles(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
}

void clock_sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    nanosleep(&t, NULL);
}

static uint64_t mono(void *context)
{
    (void)context;
    return clock_mono_ns();
}

static uint64_t wall(void *context)
{
    (void)context;
    return clock_wall_ns();
}

struct clock clock_system(void)
{
    return (struct clock){mono, wall, NULL};
}
