#include "base/time.h"
#include "capture/run/run_private.h"

enum { LOOK_MS = 1000 }; /* a small file of /sys, 10 us */

static void say_gone(struct session *s, unsigned count)
{
    log_say(&s->log, LOG_INFO,
            "%u of %u CPUs %s off-line now: what ran there goes on elsewhere, and is sampled there", count,
            s->perf.ring_count, count == 1 ? "is" : "are");
}

static void say_new(struct session *s, const struct perf_cpus *cpus)
{
    log_once(&s->log, LOG_WARNING,
             "CPU %u came on-line after the profiler began, and is not sampled: the CPU time of what runs "
             "there is counted, as [lost]. Start pillion again to have its stacks",
             cpus->without_ring);
}

void session_look_at_cpus(struct session *s, uint64_t now_ns)
{
    struct perf_cpus cpus;
    if (!s->perf_on || now_ns < s->next_cpus_ns) {
        return;
    }
    bool first = s->next_cpus_ns == 0;
    s->next_cpus_ns = now_ns + LOOK_MS * NS_PER_MS;
    perf_look_at_cpus(&s->perf, &cpus);
    if (cpus.absent_count > s->absent_cpus && !first) {
        say_gone(s, cpus.absent_count);
    }
    s->absent_cpus = cpus.absent_count;
    if (cpus.new_count > 0) {
        say_new(s, &cpus);
    }
}
