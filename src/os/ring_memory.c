#include "os/ring_memory.h"
#include "os/access.h"
#include "os/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum {
    ALLOWANCE_KIB = 516, /* where /proc/sys does not tell: the kernel's default, 512 KiB and a page */
    LIMITS_TEXT_MAX = 160,
};

static long sysctl_number(const char *path, long otherwise)
{
    char text[24] = "";
    return proc_read_file(path, text, sizeof text - 1) == 0 ? otherwise : atol(text);
}

static uint64_t own_limit_kib(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    return limit.rlim_cur >> 10;
}

struct ring_memory ring_memory_here(unsigned cpus)
{
    long allowance = sysctl_number("/proc/sys/kernel/perf_event_mlock_kb", ALLOWANCE_KIB);
    return (struct ring_memory){
        .cpus = cpus,
        .allowance_kib = allowance > 0 ? (uint64_t)allowance : 0,
        .own_kib = own_limit_kib(),
        .uid = proc_own_uid(),
        .unlimited = access_holds(CAP_IPC_LOCK) ||
                     sysctl_number("/proc/sys/kernel/perf_event_paranoid", 2) < 0,
    };
}

uint64_t ring_memory_kib(const struct ring_memory *m)
{
    bool any = m->unlimited || m->own_kib == UINT64_MAX;
    return any ? UINT64_MAX : m->allowance_kib * (m->cpus - m->absent) + m->own_kib;
}

static void say_limits(const struct ring_memory *m, char out[static LIMITS_TEXT_MAX])
{
    char own[32] = "any amount";
    if (m->own_kib != UINT64_MAX) {
        snprintf(own, sizeof own, "%llu KiB", (unsigned long long)m->own_kib);
    }
    snprintf(out, LIMITS_TEXT_MAX,
             "uid %u may lock %u x %llu KiB in all its processes together (kernel.perf_event_mlock_kb) and %s "
             "in each of them (ulimit -l)",
             m->uid, m->cpus - m->absent, (unsigned long long)m->allowance_kib, own);
}

bool ring_memory_refused(const struct ring_memory *m, uint64_t ring_kib, uint64_t held_kib,
                         struct err *err)
{
    char limits[LIMITS_TEXT_MAX], held[48] = "", others[64] = "";
    uint64_t wanted = ring_kib * m->cpus, all = ring_memory_kib(m);
    say_limits(m, limits);
    if (held_kib > 0) {
        snprintf(held, sizeof held, " beside the %llu KiB it holds", (unsigned long long)held_kib);
    }
    if (all != UINT64_MAX && all >= wanted + held_kib) {
        snprintf(others, sizeof others, ", and other processes hold more than %llu KiB of it",
                 (unsigned long long)(all - wanted - held_kib));
    }
    return err_set(err, ERR_DENIED, EPERM,
                   "cannot lock memory for perf rings of %u x %llu KiB%s (EPERM): %s%s; stop the other "
                   "profiler or raise a limit",
                   m->cpus, (unsigned long long)ring_kib, held, limits, others);
}

void ring_memory_is_short(const struct ring_memory *m, uint64_t ring_kib, uint64_t wished_kib,
                          struct err *why)
{
    char limits[LIMITS_TEXT_MAX];
    say_limits(m, limits);
    err_set(why, ERR_LIMIT, EPERM,
            "perf rings have %u x %llu KiB instead of %u x %llu KiB, so deep stacks may be truncated and "
            "samples lost: %s, and other processes hold part of it; stop the other profiler or raise a limit",
            m->cpus, (unsigned long long)ring_kib, m->cpus, (unsigned long long)wished_kib, limits);
}
