#include "capture/follow/cpus.h"
#include "base/time.h"

#include <stdlib.h>

enum { CHECK_MS = 1000 }; /* a small file of /sys, 10 us */

struct cpus {
    struct shared *shared;
    uint64_t next_ns;
    unsigned absent; /* that have rings and were off-line at the last check */
};

struct cpus *cpus_new(struct shared *shared)
{
    struct cpus *c = calloc(1, sizeof *c);
    if (c != NULL) {
        c->shared = shared;
    }
    return c;
}

static void report_gone(struct shared *s, unsigned count)
{
    log_say(&s->log, LOG_INFO,
            "%u of %u CPUs %s off-line now: what ran there goes on elsewhere, and is sampled there", count,
            perf_ring_count(s->perf), count == 1 ? "is" : "are");
}

static void report_new(struct shared *s, const struct perf_cpus *cpus)
{
    log_once(&s->log, LOG_WARNING,
             "CPU %u came on-line after the profiler began, and is not sampled: the CPU time of what runs "
             "there is counted, as [lost]. Start pillion again to have its stacks",
             cpus->without_ring);
}

static void check(void *state, uint64_t now_ns)
{
    struct cpus *c = state;
    struct shared *s = c->shared;
    struct perf_cpus cpus;
    if (!s->perf_on || now_ns < c->next_ns) {
        return;
    }
    bool first = c->next_ns == 0; /* what is absent then has not gone */
    c->next_ns = now_ns + CHECK_MS * NS_PER_MS;
    perf_check_cpus(s->perf, &cpus);
    if (cpus.absent_count > c->absent && !first) {
        report_gone(s, cpus.absent_count);
    }
    c->absent = cpus.absent_count;
    if (cpus.new_count > 0) {
        report_new(s, &cpus);
    }
}

static void setup(void *state)
{
    const struct cpus *c = state;
    check(state, c->shared->first_ns);
}

const struct concern cpus_concern = {
    .name = "cpus",
    .setup = setup,
    .round = check,
    .release = free,
};
