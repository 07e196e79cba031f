/* The proof that a thread stood still from its sample to the end of the read, as catch.h states it: pure functions
 * over the evidence of one sample, and over the latest delays of a CPU, from which the limits T, U and D follow.
 * When in doubt the verdict is not PROVEN. */
#include "base/time.h"
#include "capture/catch/catch.h"

enum {
    AT_ONCE_MS = 1,     /* where a clock stands still for longer, nobody ever waits */
    APART_NS = 1000,    /* the scheduler's clock and the sample's */
    SOON_MOST_US = 30,
    LATE_BEYOND_US = 60, /* misses begin 60 µs after p10, or above a millisecond */
    LEFT_BEYOND_US = 20, /* up to here 1 in 30,000 had run, 40 µs after p10 1 in 10 */
    LATE_MOST_US = 150,
    LEFT_MOST_US = 150, /* beyond, it is not the interrupt that took so long */
    READ_WITHIN_MS = 10, /* longer, and it may have been elsewhere and come back */
};

/* Clocks that disagree make differences that are far too long. */
static bool began_late(const struct catch_evidence *e, uint64_t late_ns)
{
    bool by_time = !e->switches && !e->accounting;
    return e->start_ns - e->sample_ns > (by_time ? late_ns : READ_WITHIN_MS * NS_PER_MS);
}

static bool took_its_place(const struct catch_evidence *e)
{
    return e->turns > 0 && e->waited_ns == 0 &&
           e->start_ns - e->sample_ns <= AT_ONCE_MS * NS_PER_MS;
}

/* A third thread had its turn first. */
static bool left_when_woken(const struct catch_evidence *e)
{
    return e->switches && e->woken_ns > e->sample_ns && e->left_ns + APART_NS >= e->woken_ns &&
           e->left_ns + APART_NS - e->woken_ns <= e->soon_ns + APART_NS;
}

static bool left_at_once(const struct catch_evidence *e, uint64_t late_ns)
{
    if (e->accounting) {
        return took_its_place(e) || left_when_woken(e);
    }
    return !e->switches || e->left_ns - e->sample_ns <= late_ns;
}

enum catch_verdict catch_prove(const struct catch_evidence *e, uint64_t late_ns)
{
    if (e->unprovable) { /* CPUs and times mean nothing, but whether it sleeps is true */
        return e->state != 'R' ? CATCH_ASLEEP : CATCH_UNPROVABLE;
    }
    if (e->cpu_before != e->cpu || e->cpu_after != e->cpu) {
        return CATCH_OTHER_CPU;
    }
    if (began_late(e, late_ns)) {
        return CATCH_LATE;
    }
    if (e->end_ns - e->start_ns > CATCH_READ_MAX_US * NS_PER_US) {
        return CATCH_LONG;
    }
    if (e->state != 'R') {
        return CATCH_ASLEEP;
    }
    if (e->stat_cpu != e->cpu) {
        return CATCH_MOVED;
    }
    if (e->switches && (!e->preempted || e->resumed)) {
        return CATCH_NOT_PREEMPTED;
    }
    return left_at_once(e, late_ns) ? CATCH_PROVEN : CATCH_LATE;
}

/* At most a few dozen, so by insertion: it allocates nothing. */
static void put_in_order(uint64_t *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--) {
            values[at] = values[at - 1];
        }
        values[at] = value;
    }
}

/* False: too few, or too scattered. */
static bool typical(uint64_t *delays_ns, size_t count, uint64_t *p10, bool *starved)
{
    *starved = false;
    if (count == 0) {
        return false;
    }
    put_in_order(delays_ns, count);
    *p10 = delays_ns[count / 10];
    *starved = delays_ns[count / 2] > 2 * *p10;
    return !*starved;
}

uint64_t catch_late_after(uint64_t *delays_ns, size_t count, uint64_t before, bool *starved)
{
    uint64_t p10;
    if (!typical(delays_ns, count, &p10, starved)) {
        return before;
    }
    uint64_t late_ns = p10 + LATE_BEYOND_US * NS_PER_US;
    return late_ns < LATE_MOST_US * NS_PER_US ? late_ns : LATE_MOST_US * NS_PER_US;
}

uint64_t catch_soon_after(uint64_t *delays_ns, size_t count, uint64_t before)
{
    if (count == 0) {
        return before;
    }
    put_in_order(delays_ns, count);
    uint64_t soon_ns = delays_ns[count / 2] * 5 / 2;
    return soon_ns < SOON_MOST_US * NS_PER_US ? soon_ns : SOON_MOST_US * NS_PER_US;
}

uint64_t catch_left_after(uint64_t *delays_ns, size_t count, uint64_t before, bool *starved)
{
    uint64_t p10;
    if (!typical(delays_ns, count, &p10, starved)) {
        return *starved ? 0 : before;
    }
    uint64_t least_ns = LEFT_BEYOND_US * NS_PER_US;
    uint64_t beyond_ns = p10 * 2 / 3 > least_ns ? p10 * 2 / 3 : least_ns;
    *starved = p10 + beyond_ns > LEFT_MOST_US * NS_PER_US;
    return *starved ? 0 : p10 + beyond_ns;
}
