/* What the catchers have counted, for summaries: differences since the last report, and the reasons in words why
 * catchers cannot do what they should (affinity refused, realtime targets, saturated CPUs).
 * Counters are words with one writer each, so a copy by words is consistent enough. */
#include "capture/catch/catch_private.h"

#include <stdarg.h>
#include <stdio.h>

/* All fields are counts but the last ones, which are the present state. */
static struct catch_tally tally_of(struct catcher *k)
{
    struct catch_tally tally;
    const uint64_t *from = (const uint64_t *)(const void *)&k->tally;
    uint64_t *to = (uint64_t *)(void *)&tally;
    for (size_t i = 0; i < sizeof tally / sizeof *to; i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
    return tally;
}

void catch_counts(struct catch *c, size_t cpu, struct catch_counts *out)
{
    struct catcher *k = c->catchers[cpu];
    const struct catch_tally *reported = &k->reported, now = tally_of(k);
    *out = (struct catch_counts){
        .lost = now.lost - reported->lost,
        .wakes = now.wakes - reported->wakes,
        .broken_calls = now.broken_calls - reported->broken_calls,
        .pending_stops = now.pending_stops - reported->pending_stops,
        .remote = {.calls = now.calls - reported->calls,
                   .bytes = now.bytes - reported->bytes,
                   .unmapped = now.unmapped - reported->unmapped,
                   .denied = now.denied - reported->denied,
                   .gone = now.gone - reported->gone},
        .bound = now.bound != 0,
        .starved = now.starved != 0,
        .given_up = now.given_up != 0,
    };
    for (size_t i = 0; i < CATCH_VERDICT_COUNT; i++) {
        out->verdicts[i] = now.verdicts[i] - reported->verdicts[i];
    }
    for (size_t i = 0; i < RUNTIME_END_COUNT; i++) {
        out->ends[i] = now.ends[i] - reported->ends[i];
    }
    k->reported = now;
}

uint32_t catch_take_refused(struct catch *c)
{
    uint32_t tid = 0;
    for (size_t i = 0; i < c->catcher_count && tid == 0; i++) {
        tid = __atomic_exchange_n(&c->catchers[i]->refused_tid, 0, __ATOMIC_RELAXED);
    }
    return tid;
}

/* ---- in words ---- */

static void report(const struct catch *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void report(const struct catch *c, const char *format, ...)
{
    size_t used = strlen(c->trouble);
    if (used > 0 && used + 3 <= CATCH_TROUBLE_MAX) {
        memcpy(c->trouble + used, "; ", 3);
        used += 2;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(c->trouble + used, CATCH_TROUBLE_MAX - used, format, arguments);
    va_end(arguments);
}

static void report_unbound(const struct catch *c, size_t unbound)
{
    if (unbound > 0) {
        report(c, "%zu of %zu CPUs are not allowed to the profiler (cpuset, or sched_setaffinity is "
               "refused), so samples there cannot be proven",
            unbound, c->catcher_count);
    }
}

static void report_starved(const struct catch *c, size_t starved, size_t given_up)
{
    if (given_up > 0) {
        report(c, "on %zu of %zu CPUs less than a fifth was proven, and reading is given up for a "
               "minute at a time; give the profiler a CPU weight near the target's, or run it in the "
               "target's container",
            given_up, c->catcher_count);
    } else if (starved > 0) {
        report(c, "on %zu of %zu CPUs the catcher is often late: the CPUs are saturated, or the "
               "profiler's CPU weight is small",
            starved, c->catcher_count);
    }
}

const char *catch_trouble(const struct catch *c)
{
    size_t unbound = 0, starved = 0, given_up = 0;
    struct catch_tally last = {0};
    c->trouble[0] = '\0';
    if (c->unprovable) { /* compared with that the rest is nothing */
        report(c, "this kernel does not tell when a thread runs (no schedstat, or CPU time in ticks: gVisor), so "
               "none is proven to be of one moment; stacks are read twice, and kept where both agree");
        return c->trouble;
    }
    for (size_t i = 0; i < c->catcher_count; i++) {
        struct catch_tally now = tally_of(c->catchers[i]);
        unbound += now.bound == 0;
        starved += now.starved != 0;
        given_up += now.given_up != 0;
        if (now.realtime_tid != 0) {
            last.realtime_tid = now.realtime_tid;
        }
        if (now.favoured_tid != 0) {
            last.favoured_tid = now.favoured_tid;
            last.favoured_nice = now.favoured_nice;
        }
    }
    report_unbound(c, unbound);
    if (last.realtime_tid != 0) {
        report(c, "thread %u has a realtime policy, which no other thread interrupts",
            (unsigned)last.realtime_tid);
    }
    if (last.favoured_tid != 0) {
        report(c, "thread %u has the nice value %d, below the profiler's, and is often not interrupted; "
               "give the profiler CAP_SYS_NICE",
            (unsigned)last.favoured_tid, (int)last.favoured_nice);
    }
    report_starved(c, starved, given_up);
    return c->trouble;
}
