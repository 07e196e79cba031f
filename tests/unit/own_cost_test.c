/* What the profiler itself costs, where CPU clocks move in ticks and where they do not. */
#include "capture/own_cost.h"
#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "os/clock.h"
#include "test.h"

enum { TICK_MS = 10, CALL_NS = 15000 };

/* Clocks that go on with each call. */
struct machine {
    uint64_t now_ns;
    uint64_t step_ns;  /* the CPU clock moves by so much at a time; 0: never */
    uint64_t stolen_ns; /* once, while the CPU clock is read for the second time */
    unsigned calls;
};

static uint64_t read_mono(void *context)
{
    struct machine *m = context;
    return m->now_ns += CALL_NS;
}

static uint64_t read_cpu(void *context)
{
    struct machine *m = context;
    m->now_ns += CALL_NS;
    if (++m->calls == 2) {
        m->now_ns += m->stolen_ns;
    }
    return m->step_ns == 0 ? 0 : m->now_ns / m->step_ns * m->step_ns;
}

static bool ticks(struct machine *m)
{
    const struct own_clocks clocks = {read_cpu, read_mono, m};
    m->now_ns = 1000 * NS_PER_S;
    return own_cost_clock_ticks(&clocks);
}

static void in_ticks(void)
{
    struct machine by_ticks = {.step_ns = TICK_MS * NS_PER_MS}, still = {0};
    CHECK(ticks(&by_ticks));
    CHECK(by_ticks.now_ns - 1000 * NS_PER_S < 21 * NS_PER_MS);
    CHECK(ticks(&still));
    CHECK(still.now_ns - 1000 * NS_PER_S < 21 * NS_PER_MS);
}

static void finely(void)
{
    struct machine fine = {.step_ns = 1}, stolen = {.step_ns = 1, .stolen_ns = 5 * NS_PER_MS};
    CHECK(!ticks(&fine));
    CHECK_INT(fine.calls, 2);
    CHECK(!ticks(&stolen)); /* a large step is no tick where fine ones follow */
    CHECK_INT(stolen.calls, 3);
}

/* Here: it costs nothing, and what the kernel tells is what counts. */
static void by_the_kernel(void)
{
    struct own_cost own;
    uint64_t before_ns = clock_thread_cpu_ns(pthread_self());
    own_cost_open(&own);
    if (own.by_time) {
        SKIP("the CPU clock moves in ticks here");
    }
    CHECK(clock_thread_cpu_ns(pthread_self()) - before_ns < NS_PER_MS);
    own_cost_rests(&own, own.woke_ns + NS_PER_S);
    uint64_t cpu_ns = clock_own_cpu_ns();
    CHECK(own_cost_ns(&own, 5 * NS_PER_S) - cpu_ns < NS_PER_S);
}

static void by_time(void)
{
    struct own_cost own = {.by_time = true, .woke_ns = 100};
    own_cost_rests(&own, 150);
    own_cost_wakes(&own, 1000); /* what it slept is free */
    own_cost_rests(&own, 1030);
    own_cost_add(&own, 7);
    CHECK_INT(own_cost_ns(&own, 1000), 50 + 30 + 7 + 1000);
}

/* Of a catcher without perf: its thread wakes a hundred times a second. */
static void by_catchers(void)
{
    struct own_cost own = {.by_time = true}, told = {0};
    struct err err;
    struct catch *c = catch_init(99, &err);
    catch_charge(c, &told);
    CHECK(c->own == NULL); /* no clock is read where the kernel tells */
    catch_charge(c, &own);
    uint64_t before_ns = clock_mono_ns();
    CHECK(catch_perfless(c, &err));
    for (int i = 0; i < 20; i++) {
        clock_sleep_ns(10 * NS_PER_MS);
        waker_set(c->catchers[0]->waker);
    }
    uint64_t all_ns = clock_mono_ns() - before_ns;
    CHECK(own_cost_ns(&own, 0) > 0);
    CHECK(own_cost_ns(&own, 0) < all_ns / 2); /* what they slept is free */
    catch_stop(c);
}

TESTS({"a CPU clock that moves in ticks is found within 20 ms", in_ticks},
      {"one that moves finely is found at once", finely},
      {"where the kernel tells, its figure is the own cost", by_the_kernel},
      {"where it does not, the time between waking and sleeping is", by_time},
      {"catchers add theirs", by_catchers})
