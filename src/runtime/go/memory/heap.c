/* The heap profile: of each stack what it has allocated, and how much of that was not freed, as of the last completed
 * collections. The runtime counts an allocation at once, but a free only when the sweep meets the object; so that both
 * are of one moment, events are counted in a ring of coming cycles, and a cycle is added to what is published once all
 * its frees are known (memRecord in src/runtime/mprof.go). Read here is what is published, with the cycle that is due,
 * or, before the first collection, everything - as memProfileInternal does.
 *
 * An allocation is sampled the more likely the larger it is, and scaled up by that likelihood, as in
 * src/runtime/pprof/protomem.go. */
#include <stdlib.h>

#include "runtime/common/load.h"
#include "runtime/go/memory/buckets.h"

enum { FUTURE_CYCLES = 3, TRIES = 3 };

struct counts {
    uint64_t allocs, frees, alloc_bytes, free_bytes;
};

struct heap {
    struct go_places *places;
    int64_t rate;
    uint32_t cycle;  /* the part of `future` that belongs to what is published, … */
    bool takes_all;  /* … or all of it, as long as nothing was published */
    bool is_published;
    uint32_t count;
};

static void add_counts(struct counts *all, const struct go_memory *m, const struct go_bucket *b, size_t index)
{
    size_t width = m->layout->counts_bytes ? 32 : 16;
    const unsigned char *raw = b->record + index * width;
    uint64_t allocs = load_u64(raw), frees = load_u64(raw + 8);
    all->allocs += allocs;
    all->frees += frees;
    all->alloc_bytes += m->layout->counts_bytes ? load_u64(raw + 16) : allocs * b->size;
    all->free_bytes += m->layout->counts_bytes ? load_u64(raw + 24) : frees * b->size;
}

/* e to the power of -x, x not below 0: x is a multiple of ln 2 and a rest, whose series ends soon. */
static double decay(double x)
{
    if (!(x < 700)) {
        return 0;
    }
    int halvings = (int)(x * 1.44269504088896338700 + 0.5);
    double rest = (halvings * 6.93147180369123816490e-01 - x) + halvings * 1.90821492927058770002e-10;
    double sum = 1;
    for (int i = 14; i > 0; i--) {
        sum = 1 + sum * rest / i;
    }
    uint64_t bits = (uint64_t)(1023 - halvings) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

static int64_t whole(double value)
{
    return value > -9e18 && value < 9e18 ? (int64_t)value : 0;
}

static void scale(int64_t count, int64_t bytes, int64_t rate, int64_t out[static 2])
{
    out[0] = out[1] = 0;
    if (count == 0 || bytes == 0) {
        return;
    }
    double average = (double)bytes / (double)count, factor = 1;
    if (rate > 1) {
        factor = 1 / (1 - decay(average > 0 ? average / (double)rate : 0));
    }
    out[0] = rate > 1 ? whole((double)count * factor) : count;
    out[1] = rate > 1 ? whole((double)bytes * factor) : bytes;
}

static bool add_allocation(void *context, struct go_buckets *r)
{
    struct heap *h = context;
    struct counts c = {0};
    add_counts(&c, r->m, &r->bucket, 0);
    for (size_t i = 0; i < FUTURE_CYCLES; i++) {
        if (h->takes_all || i == h->cycle) {
            add_counts(&c, r->m, &r->bucket, 1 + i);
        }
    }
    h->is_published |= c.allocs != 0 || c.frees != 0;
    h->count++;
    int64_t values[4];
    scale((int64_t)c.allocs, (int64_t)c.alloc_bytes, h->rate, values);
    scale((int64_t)(c.allocs - c.frees), (int64_t)(c.alloc_bytes - c.free_bytes), h->rate, values + 2);
    size_t hidden = go_places_hidden(h->places, r->bucket.pcs, r->bucket.count);
    size_t n = go_places_of(h->places, r->bucket.pcs + hidden, r->bucket.count - hidden, r->locations);
    if (n == 0) {
        n = go_places_of(h->places, r->bucket.pcs, r->bucket.count, r->locations);
    }
    struct go_pprof_label label = {.key = "bytes"};
    if (!r->m->layout->counts_bytes) {
        label.number = (int64_t)r->bucket.size;
    } else if ((int64_t)c.allocs > 0) {
        label.number = (int64_t)c.alloc_bytes / (int64_t)c.allocs;
    }
    go_pprof_sample(h->places->pprof, r->locations, n, values, &label, label.number != 0);
    return true;
}

static uint32_t cycle_now(struct go_memory *m)
{
    unsigned char raw[4];
    if (m->cycle == 0 || !go_peek(m, m->cycle, raw, sizeof raw)) {
        return UINT32_MAX;
    }
    return load_u32(raw) >> (m->layout->cycle_has_flag ? 1 : 0);
}

/* One reading; *again: it is of two moments, or nothing is published yet and all is to be told. */
static bool read_heap(struct go_buckets *r, struct heap *h, uint64_t wall_ns, struct buf *out, bool *again,
                      struct err *why)
{
    struct go_pprof_kind kind = {
        .values = {{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"},
                   {"inuse_space", "bytes"}},
        .value_count = 4,
        .period_type = {"space", "bytes"},
        .period = h->rate,
    };
    struct go_places places;
    uint32_t cycle = cycle_now(r->m);
    h->places = &places;
    h->cycle = cycle == UINT32_MAX ? FUTURE_CYCLES : cycle % FUTURE_CYCLES;
    h->count = 0;
    if (!go_places_open(&places, r->m, &kind, wall_ns)) {
        return err_set(why, ERR_MEMORY, 0, "no memory for a Go program's heap profile");
    }
    bool done = go_buckets_walk(r, GO_BUCKET_MEMORY, add_allocation, h, why);
    bool is_empty = !h->is_published && !h->takes_all && h->count > 0;
    h->takes_all |= is_empty;
    *again = done && (is_empty || cycle_now(r->m) != cycle);
    done = done && go_places_finish(&places, out, why);
    go_places_release(&places);
    return done;
}

bool go_memory_heap(struct go_memory *m, uint64_t wall_ns, struct buf *out, struct err *why)
{
    uint64_t rate;
    buf_clear(out);
    if (m->memory_rate == 0 || m->head_count < 3) {
        return err_set(why, ERR_UNSUPPORTED, 0, "heap profile: where the Go program keeps it was not found");
    }
    if (!go_peek_word(m, m->memory_rate, &rate) || rate > INT64_MAX) {
        return go_unread(m, why, "heap profile");
    }
    struct go_buckets *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_set(why, ERR_MEMORY, 0, "no memory for a Go program's heap profile");
    }
    struct heap h = {.rate = (int64_t)rate};
    bool done = true, again = true;
    r->m = m;
    for (unsigned i = 0; i < TRIES && done && again; i++) {
        buf_clear(out);
        done = read_heap(r, &h, wall_ns, out, &again, why);
    }
    free(r);
    return done;
}
