/* Block and mutex profiles: how often and how long goroutines waited, by where they waited (block) or by who kept them
 * waiting (mutex). The runtime has already scaled up what it sampled; it counts in ticks of the processor's counter,
 * whose speed it measures when it is first asked. What is in no Go function is left out, as runtime.CallersFrames does:
 * C, and the mark in front of stacks of the runtime's own locks (logicalStackSentinel). */
#include <stdlib.h>

#include "runtime/common/load.h"
#include "runtime/go/memory/buckets.h"

struct contention {
    struct go_places *places;
    double ghz;
    bool at_least_one;
};

static int64_t whole(double value)
{
    return value > -9e18 && value < 9e18 ? (int64_t)value : 0;
}

static bool add_contention(void *context, struct go_buckets *r)
{
    struct contention *c = context;
    double count;
    memcpy(&count, r->bucket.record, sizeof count);
    int64_t values[2] = {whole(count), whole((double)(int64_t)load_u64(r->bucket.record + 8) / c->ghz)};
    values[0] = values[0] == 0 && c->at_least_one ? 1 : values[0];
    size_t n = 0;
    for (size_t i = 0; i < r->bucket.count; i++) {
        if (go_places_is_code(c->places, r->bucket.pcs[i])) {
            r->bucket.pcs[n++] = r->bucket.pcs[i];
        }
    }
    n = go_places_of(c->places, r->bucket.pcs, n, r->locations);
    go_pprof_sample(c->places->pprof, r->locations, n, values, NULL, 0);
    return true;
}

/* Ticks a second, as the process has measured them, or its caller; 0: neither. */
static uint64_t ticks_per_second(struct go_memory *m)
{
    uint64_t ticks;
    if (m->ticks != 0 && go_peek_word(m, m->ticks, &ticks) && ticks > 0 && ticks < (uint64_t)1 << 40) {
        return ticks;
    }
    return m->process.counter_hz;
}

bool go_memory_contention(struct go_memory *m, enum go_profile which, uint64_t wall_ns, struct buf *out,
                          struct err *why)
{
    static const struct go_pprof_kind kind = {
        .values = {{"contentions", "count"}, {"delay", "nanoseconds"}},
        .value_count = 2,
        .period_type = {"contentions", "count"},
        .period = 1,
    };
    uint64_t hz = ticks_per_second(m);
    enum go_bucket_type type = which == GO_MUTEX ? GO_BUCKET_MUTEX : GO_BUCKET_BLOCK;
    buf_clear(out);
    if (m->head_count < 3) {
        return err_set(why, ERR_UNSUPPORTED, 0, "%s profile: where the Go program keeps it was not found",
                       which == GO_MUTEX ? "mutex" : "block");
    }
    if (hz == 0 && go_buckets_first(m, type) != 0) {
        return err_set(why, ERR_UNSUPPORTED, 0,
                       "%s profile: how fast the processor's counter runs is not known: the Go program has not "
                       "measured it yet", which == GO_MUTEX ? "mutex" : "block");
    }
    struct go_buckets *r = calloc(1, sizeof *r);
    struct go_places places;
    if (r == NULL || !go_places_open(&places, m, &kind, wall_ns)) {
        free(r);
        return err_set(why, ERR_MEMORY, 0, "no memory for a Go program's profile");
    }
    struct contention c = {.places = &places, .ghz = (double)hz / 1e9, .at_least_one = which == GO_BLOCK};
    r->m = m;
    bool done = go_buckets_walk(r, type, add_contention, &c, why) && go_places_finish(&places, out, why);
    go_places_release(&places);
    free(r);
    return done;
}
