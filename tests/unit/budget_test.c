/* The profiler's own budget, with a profiler made of three numbers: what it takes each second whatever it
 * samples, what one sample takes, and how many threads are busy. */
#include "capture/account/budget.h"
#include "base/time.h"
#include "test.h"

enum { US = 1000 };

struct simulation {
    struct budget budget;
    struct budget_used used;
    uint64_t now_ns;
    uint64_t fixed_ns, sample_ns; /* per second, per sample */
    unsigned threads;
    unsigned changes;
    uint32_t least_hz;
};

static struct simulation begin(double percent, uint32_t hz, uint64_t window_s)
{
    struct simulation s = {.now_ns = 1000 * NS_PER_S, .used.own_ns = 7 * NS_PER_MS};
    s.least_hz = hz;
    budget_init(&s.budget, percent, hz, window_s * NS_PER_S, s.now_ns, &s.used);
    return s;
}

static void pass(struct simulation *s, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        s->now_ns += NS_PER_S;
        s->used.own_ns += s->fixed_ns + s->budget.frequency_hz * s->threads * s->sample_ns;
        s->changes += budget_update(&s->budget, s->now_ns, &s->used);
        uint32_t hz = s->budget.frequency_hz;
        s->least_hz = hz > 0 && hz < s->least_hz ? hz : s->least_hz;
    }
}

/* A window's end, and its files, which are written during the next one. */
static struct budget_window end_window(struct simulation *s, uint64_t publish_ns)
{
    struct budget_window window;
    s->changes += budget_end_window(&s->budget, s->now_ns, &s->used, &window);
    s->used.own_ns += publish_ns;
    s->used.publish_ns += publish_ns;
    return window;
}

static double used_percent(const struct simulation *s, uint64_t since_ns, unsigned seconds)
{
    return 100.0 * (double)(s->used.own_ns - since_ns) / ((double)seconds * (double)NS_PER_S);
}

/* 2 busy threads at 99 Hz and 15 us: 0.3 % of a core. */
static void within(void)
{
    struct simulation s = begin(1, 99, 60);
    s.fixed_ns = 500 * US;
    s.sample_ns = 15 * US;
    s.threads = 2;
    pass(&s, 120);
    CHECK_INT(s.changes, 0);
    CHECK_INT(s.budget.frequency_hz, 99);
    CHECK_INT(s.budget.measure, BUDGET_NOTHING);
}

static void burst_at_start(void)
{
    struct simulation s = begin(1, 99, 60);
    s.sample_ns = 15 * US;
    s.threads = 2;
    s.used.own_ns += 300 * NS_PER_MS; /* the kernel's symbols, the first tables */
    pass(&s, 20);
    s.used.own_ns += 80 * NS_PER_MS; /* another program begins: less than ten seconds' worth */
    pass(&s, 40);
    CHECK_INT(s.changes, 0);
    CHECK_INT(s.budget.frequency_hz, 99);
}

/* gVisor: attaching takes half a second, and later on all is as cheap as elsewhere. */
static void dear_start(void)
{
    for (int dear = 0; dear < 2; dear++) {
        struct simulation s = begin(1, 99, 60);
        s.sample_ns = 15 * US;
        s.threads = 2;
        if (dear) {
            budget_allow_dear_start(&s.budget);
        }
        s.used.own_ns += 800 * NS_PER_MS;
        pass(&s, 20);
        CHECK(dear ? s.changes == 0 : s.least_hz < 50);
    }
}

/* 8 threads at 999 Hz and 25 us take 20 % of a core. */
static struct simulation overloaded(double percent)
{
    struct simulation s = begin(percent, 999, 60);
    s.fixed_ns = 200 * US;
    s.sample_ns = 25 * US;
    s.threads = 8;
    return s;
}

static void too_much(void)
{
    struct simulation s = overloaded(1);
    uint64_t before_ns = s.used.own_ns;
    pass(&s, 3); /* 300 ms are the start's, 100 ms ten seconds' worth: overdrawn in the third second */
    CHECK(s.budget.frequency_hz < 200);
    CHECK_INT(s.budget.measure, BUDGET_SLOWER);
    pass(&s, 57);
    /* 600 ms in a minute, and what the start may take */
    CHECK(s.used.own_ns - before_ns < 600 * NS_PER_MS * 13 / 10 + 300 * NS_PER_MS);
    before_ns = s.used.own_ns;
    pass(&s, 60);
    double percent = used_percent(&s, before_ns, 60);
    CHECK(percent < 1.0 && percent > 0.5);
    CHECK(s.changes < 20); /* each change makes all events anew */
}

static void tiny_budget(void)
{
    struct simulation s = overloaded(0.2);
    pass(&s, 60);
    uint64_t before_ns = s.used.own_ns;
    pass(&s, 60);
    CHECK(used_percent(&s, before_ns, 60) < 0.2);
    CHECK(s.budget.frequency_hz >= BUDGET_FLOOR_HZ);
    CHECK(s.budget.measure < BUDGET_SUSPENDED);
}

static void load_goes(void)
{
    struct simulation s = overloaded(1);
    pass(&s, 30);
    uint32_t low = s.budget.frequency_hz;
    CHECK(low < 100);
    s.threads = 1;
    s.sample_ns = 2 * US; /* 999 Hz take 0.2 % */
    pass(&s, 5);
    CHECK(s.budget.frequency_hz <= low); /* slowly */
    unsigned changes = s.changes;
    pass(&s, 200);
    CHECK_INT(s.budget.frequency_hz, 999); /* never above what was asked for */
    CHECK_INT(s.budget.measure, BUDGET_NOTHING);
    CHECK(s.changes - changes >= 4); /* twofold at most */
    changes = s.changes;
    pass(&s, 100);
    CHECK_INT(s.changes - changes, 0);
}

/* What is used whatever the frequency: nothing helps but to stop. */
static void fixed_cost(void)
{
    struct simulation s = begin(0.1, 99, 60);
    s.fixed_ns = 5 * NS_PER_MS; /* 0.5 % */
    s.sample_ns = 10 * US;
    s.threads = 1;
    pass(&s, 60);
    CHECK_INT(s.least_hz, BUDGET_FLOOR_HZ);
    CHECK_INT(s.budget.measure, BUDGET_SUSPENDED);
    CHECK_INT(s.budget.frequency_hz, 0);
    struct budget_window window = end_window(&s, 0);
    CHECK_INT(window.most, BUDGET_SUSPENDED);
    CHECK_INT(window.least_hz, BUDGET_FLOOR_HZ);
    CHECK(window.suspended_ns > 20 * NS_PER_S && window.suspended_ns < 58 * NS_PER_S);
    CHECK(window.mean_hz > 0 && window.mean_hz < 99);
    CHECK_INT(s.budget.measure, BUDGET_COARSE); /* the next one begins with what was left before */
    CHECK_INT(s.budget.frequency_hz, BUDGET_FLOOR_HZ);
    s.fixed_ns = 0; /* and goes on when the cause is gone */
    s.sample_ns = 2 * US;
    pass(&s, 200);
    CHECK_INT(s.budget.frequency_hz, 99);
    CHECK_INT(s.budget.measure, BUDGET_NOTHING);
}

/* A third of a core whatever the frequency: it is noticed in seconds, in the next window in two. */
static void storm(void)
{
    struct simulation s = begin(1, 99, 60);
    s.fixed_ns = 330 * NS_PER_MS;
    s.sample_ns = 10 * US;
    s.threads = 1;
    pass(&s, 9);
    CHECK_INT(s.budget.measure, BUDGET_SUSPENDED);
    CHECK_INT(s.changes, 4); /* 99, 6, 1 Hz, small copies, none */
    s.fixed_ns = 0;
    pass(&s, 51);
    (void)end_window(&s, 0);
    CHECK_INT(s.budget.frequency_hz, BUDGET_FLOOR_HZ);
    s.fixed_ns = 330 * NS_PER_MS;
    pass(&s, 2);
    CHECK_INT(s.budget.measure, BUDGET_SUSPENDED);
    s.fixed_ns = 0;
    pass(&s, 58);
    (void)end_window(&s, 0);
    pass(&s, 200);
    CHECK_INT(s.budget.frequency_hz, 99);
}

static void files(void)
{
    struct simulation s = overloaded(1);
    uint64_t before_ns = 0;
    for (unsigned window = 0; window < 6; window++) {
        before_ns = window == 2 ? s.used.own_ns : before_ns;
        pass(&s, 60);
        CHECK(end_window(&s, 200 * NS_PER_MS).least_hz > BUDGET_FLOOR_HZ);
    }
    /* 200 ms of 600: files and samples together are within the budget */
    CHECK(used_percent(&s, before_ns, 240) < 1.05);
    CHECK(!budget_windows_are_short(&s.budget));
    CHECK(budget_sampling_share(&s.budget) < 0.0067 && budget_sampling_share(&s.budget) > 0.0066);
}

/* 60 ms each second: no frequency helps, and none is given up for it beyond half of the budget. */
static void short_windows(void)
{
    struct simulation s = begin(1, 99, 1);
    s.sample_ns = 15 * US;
    s.threads = 2;
    for (unsigned window = 0; window < 60; window++) {
        pass(&s, 1);
        (void)end_window(&s, 60 * NS_PER_MS);
    }
    CHECK(budget_windows_are_short(&s.budget));
    CHECK_INT(s.budget.frequency_hz, 99); /* 0.3 % of the 0.5 % */
}

static void window_means(void)
{
    struct simulation s = begin(1, 100, 60);
    pass(&s, 10);
    struct budget_window window = end_window(&s, 0);
    CHECK(window.mean_hz > 99.9 && window.mean_hz < 100.1);
    CHECK_INT(window.least_hz, 100);
    CHECK_INT(window.most, BUDGET_NOTHING);
    window = end_window(&s, 0); /* of no length at all */
    CHECK(window.mean_hz > 99.9 && window.mean_hz < 100.1);
}

TESTS({"a profiler within its budget keeps its frequency", within},
      {"bursts that quiet seconds pay for cost no frequency", burst_at_start},
      {"where starting is dear, more of it is free", dear_start},
      {"what takes too much is slowed down within seconds, and the whole run stays within the budget",
       too_much},
      {"a tiny budget holds, with samples", tiny_budget},
      {"when the load goes, the frequency comes back slowly, and never above the one asked for",
       load_goes},
      {"where a lower frequency does not help, sampling stops until the next window", fixed_cost},
      {"what costs far too much beside the samples is stopped within seconds", storm},
      {"what files take is set aside", files},
      {"files of short windows take at most half of what sampling has", short_windows},
      {"a window's mean frequency is told", window_means})
