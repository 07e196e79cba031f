#include "capture/own_cost.h"
#include "base/time.h"
#include "os/clock.h"

enum {
    WATCH_MS = 20, /* two ticks of the slowest kernel */
    FINE_MS = 2,   /* a machine that takes its CPU away for a moment makes one large step, and fine ones after it */
};

bool own_cost_clock_ticks(const struct own_clocks *clocks)
{
    uint64_t until_ns = clocks->mono_ns(clocks->context) + WATCH_MS * NS_PER_MS;
    uint64_t before_ns = clocks->cpu_ns(clocks->context);
    do {
        uint64_t now_ns = clocks->cpu_ns(clocks->context);
        if (now_ns > before_ns && now_ns - before_ns < FINE_MS * NS_PER_MS) {
            return false;
        }
        before_ns = now_ns;
    } while (clocks->mono_ns(clocks->context) < until_ns);
    return true;
}

static uint64_t thread_cpu_ns(void *context)
{
    (void)context;
    return clock_thread_cpu_ns(pthread_self());
}

static uint64_t mono_ns(void *context)
{
    (void)context;
    return clock_mono_ns();
}

void own_cost_open(struct own_cost *c)
{
    const struct own_clocks clocks = {thread_cpu_ns, mono_ns, NULL};
    *c = (struct own_cost){.woke_ns = clock_mono_ns()};
    c->by_time = own_cost_clock_ticks(&clocks);
}

void own_cost_rests(struct own_cost *c, uint64_t now_ns)
{
    if (c->by_time) {
        own_cost_add(c, now_ns - c->woke_ns);
    }
}

void own_cost_wakes(struct own_cost *c, uint64_t now_ns)
{
    c->woke_ns = now_ns;
}

void own_cost_add(struct own_cost *c, uint64_t ns)
{
    __atomic_fetch_add(&c->awake_ns, ns, __ATOMIC_RELAXED);
}

uint64_t own_cost_ns(const struct own_cost *c, uint64_t others_ns)
{
    return c->by_time ? __atomic_load_n(&c->awake_ns, __ATOMIC_RELAXED) + others_ns : clock_own_cpu_ns();
}
