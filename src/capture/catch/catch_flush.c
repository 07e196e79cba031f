#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "os/clock.h"

enum { RETRY_US = 50 };

static bool has_records(const struct catch *c, const struct catcher *k)
{
    return c->perf != NULL && k->started && !perf_caught_is_empty(c->perf, k->ring);
}

/* First the ring, then whether a round is under way: what that took out of the ring may not be in the buffer
 * yet. */
static bool is_behind(const struct catch *c, const struct catcher *k)
{
    bool records = has_records(c, k);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return records || (k->started && __atomic_load_n(&k->round.running, __ATOMIC_ACQUIRE));
}

uint64_t catch_taken_ns(struct catch *c, uint64_t lag_ns)
{
    uint64_t all_ns = UINT64_MAX, now_ns = clock_mono_ns();
    for (size_t i = 0; i < c->catcher_count; i++) {
        struct catcher *k = c->catchers[i];
        if (!is_behind(c, k)) {
            continue;
        }
        uint64_t taken_ns = __atomic_load_n(&k->round.taken_ns, __ATOMIC_ACQUIRE);
        all_ns = taken_ns < all_ns ? taken_ns : all_ns;
        if (taken_ns + lag_ns < now_ns) {
            waker_set(k->waker);
        }
    }
    return all_ns;
}

static uint64_t rounds_of(const struct catcher *k)
{
    return __atomic_load_n(&k->round.count, __ATOMIC_ACQUIRE);
}

/* A round that was under way when it was asked may have passed the ring already. */
static bool has_taken(const struct catch *c, const struct catcher *k)
{
    uint64_t rounds = rounds_of(k) - k->flush.rounds;
    return rounds >= 2 || (rounds == 1 && !has_records(c, k));
}

void catch_flush(struct catch *c, uint64_t patience_ns)
{
    uint64_t until_ns = clock_mono_ns() + patience_ns;
    for (size_t i = 0; i < c->catcher_count; i++) {
        struct catcher *k = c->catchers[i];
        k->flush.asked = has_records(c, k);
        if (k->flush.asked) {
            k->flush.rounds = rounds_of(k);
            waker_set(k->waker);
        }
    }
    for (size_t i = 0; i < c->catcher_count; i++) {
        const struct catcher *k = c->catchers[i];
        while (k->flush.asked && !has_taken(c, k) && clock_mono_ns() < until_ns) {
            clock_sleep_ns(RETRY_US * NS_PER_US);
        }
    }
}
