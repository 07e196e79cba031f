/* Differences of snapshots. Neither snapshot is held: of the last one there are two numbers per stack, of this one
 * what tells samples apart. The samples are walked over twice. The first walk finds out which stacks stand there more
 * than once, and adds up what these have beyond their first sample; the second comes to the first sample of each
 * stack, knows the rest of its sum, and writes the difference. */
#include "runtime/go/delta/delta.h"

#include <stdlib.h>

#include "base/map.h"
#include "runtime/go/delta/delta_write.h"

struct go_delta {
    struct str growing[GO_DELTA_GROWING_MAX];
    size_t growing_count;
    struct go_identities stacks;
    uint64_t other[GO_DELTA_GROWING_MAX]; /* the last sums of what is not told apart */
    int64_t time_ns;
    bool has_time;    /* of the last snapshot */
    bool is_running;  /* there was one */
    bool is_poisoned;
    size_t told;      /* samples of the last difference */
};

/* The sums of a stack's samples but the first. */
struct more {
    uint64_t values[GO_DELTA_COLUMNS_MAX];
};

/* One snapshot at work. */
struct take {
    struct go_delta *delta;
    struct go_snapshot snapshot;
    struct go_writer *writer;                /* null: nothing is written */
    size_t growing_of[GO_DELTA_COLUMNS_MAX]; /* of a column; GO_DELTA_GROWING_MAX: it does not grow */
    bool is_baseline;
    struct go_bits met;
    struct map more_at; /* a stack's number → its place in `more` */
    VEC(struct more) more;
    bool has_other;
    uint64_t other[GO_DELTA_COLUMNS_MAX];
};

struct go_delta *go_delta_new(const char *const *growing, size_t count)
{
    struct go_delta *d = calloc(1, sizeof *d);
    for (; d != NULL && d->growing_count < count && d->growing_count < GO_DELTA_GROWING_MAX; d->growing_count++) {
        d->growing[d->growing_count] = str_of(growing[d->growing_count]);
    }
    return d;
}

static void forget(struct go_delta *d)
{
    go_identities_release(&d->stacks);
    for (size_t i = 0; i < GO_DELTA_GROWING_MAX; i++) {
        d->other[i] = 0;
    }
    d->is_running = d->has_time = false;
}

void go_delta_free(struct go_delta *delta)
{
    if (delta != NULL) {
        forget(delta);
        free(delta);
    }
}

size_t go_delta_samples(const struct go_delta *delta)
{
    return delta->told;
}

size_t go_delta_bytes(const struct go_delta *delta)
{
    return sizeof *delta + go_identities_bytes(&delta->stacks);
}

/* Of columns of the same name the first. */
static void find_columns(struct take *t)
{
    struct go_delta *d = t->delta;
    bool found[GO_DELTA_GROWING_MAX] = {false};
    for (size_t i = 0; i < t->snapshot.columns; i++) {
        size_t g = 0;
        while (g < d->growing_count && (found[g] || !go_snapshot_is_column(&t->snapshot, i, d->growing[g]))) {
            g++;
        }
        t->growing_of[i] = g < d->growing_count ? g : GO_DELTA_GROWING_MAX;
        if (g < d->growing_count) {
            found[g] = true;
        }
    }
}

/* ---- The first walk ---- */

static void add_up(uint64_t *sums, const uint64_t *values)
{
    for (size_t i = 0; i < GO_DELTA_COLUMNS_MAX; i++) {
        sums[i] += values[i];
    }
}

static struct more *more_of(const struct take *t, uint32_t number)
{
    const struct map_slot *slot = map_find(&t->more_at, number);
    return slot != NULL ? &t->more.at[slot->value] : NULL;
}

static bool add_more(struct take *t, uint32_t number, const uint64_t *values, struct err *err)
{
    struct more *more = more_of(t, number);
    if (more == NULL && map_put(&t->more_at, number, t->more.len)) {
        more = vec_push(&t->more);
    }
    if (more == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for what stands twice in a profile");
    }
    add_up(more->values, values);
    return true;
}

static bool meet(struct take *t, const struct go_sample *sample, struct err *err)
{
    uint32_t number;
    if (!go_identities_add(&t->delta->stacks, sample->identity, &number)) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the stacks of a profile");
    }
    if (number == GO_STACK_NONE) {
        t->has_other = true;
        add_up(t->other, sample->values);
        return true;
    }
    return go_bits_has(&t->met, number) ? add_more(t, number, sample->values, err) : go_bits_add(&t->met, number, err);
}

/* ---- The second walk ---- */

/* The sums of a snapshot become differences to `previous`, and these become the sums. False: all are 0. */
static bool subtract(const struct take *t, uint64_t *values, uint64_t *previous)
{
    bool is_any = false;
    for (size_t i = 0; i < t->snapshot.columns; i++) {
        size_t g = t->growing_of[i];
        if (g < GO_DELTA_GROWING_MAX) {
            uint64_t sum = values[i];
            values[i] = t->is_baseline ? 0 : sum - previous[g];
            previous[g] = sum;
        }
        is_any |= values[i] != 0;
    }
    t->delta->told += is_any;
    return is_any;
}

static bool tell(struct take *t, struct go_sample *sample, struct str message, struct err *err)
{
    struct go_identities *stacks = &t->delta->stacks;
    uint32_t number = go_identities_find(stacks, sample->identity);
    if (number == GO_STACK_NONE || go_bits_has(&t->met, number)) {
        return true;
    }
    if (!go_bits_add(&t->met, number, err)) {
        return false;
    }
    const struct more *more = more_of(t, number);
    if (more != NULL) {
        add_up(sample->values, more->values);
    }
    return !subtract(t, sample->values, stacks->at[number].previous) || t->writer == NULL ||
           go_writer_sample(t->writer, message, sample->values, err);
}

static bool tell_other(struct take *t, struct err *err)
{
    return !t->has_other || !subtract(t, t->other, t->delta->other) || t->writer == NULL ||
           go_writer_other(t->writer, t->other, err);
}

/* ---- Both ---- */

static bool walk(struct take *t, bool is_first, struct err *err)
{
    struct go_scan *scan = t->snapshot.scan;
    struct protobuf_field f;
    struct go_sample sample;
    go_scan_start(scan, 1u << PROFILE_SAMPLE);
    while (go_scan_next(scan, &f, err)) {
        if (!go_snapshot_sample(&t->snapshot, f.bytes, &sample, err) ||
            !(is_first ? meet(t, &sample, err) : tell(t, &sample, f.bytes, err))) {
            return false;
        }
    }
    return go_scan_is_sound(scan);
}

static bool compare(struct take *t, struct err *err)
{
    struct go_delta *d = t->delta;
    find_columns(t);
    if (!d->is_running && !go_identities_reserve(&d->stacks, t->snapshot.samples)) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the stacks of a profile");
    }
    if (!walk(t, true, err)) {
        return false;
    }
    vec_clear(&t->met.words);
    return walk(t, false, err) && tell_other(t, err);
}

static bool finish(struct take *t, struct err *err)
{
    struct go_delta *d = t->delta;
    int64_t now = t->snapshot.time_ns;
    int64_t duration = (int64_t)((uint64_t)now - (uint64_t)d->time_ns);
    bool has_both = d->has_time && t->snapshot.has_time;
    if (t->writer != NULL && !go_writer_rest(t->writer, has_both ? &duration : NULL, err)) {
        return false;
    }
    d->time_ns = t->snapshot.has_time ? now : d->time_ns;
    d->has_time |= t->snapshot.has_time;
    d->is_running = true;
    return true;
}

bool go_delta_take(struct go_delta *delta, struct str snapshot, bool baseline, struct buf *out, struct err *err)
{
    struct take t = {.delta = delta, .is_baseline = baseline && !delta->is_running};
    buf_clear(out);
    delta->told = 0;
    bool ok = go_snapshot_open(&t.snapshot, snapshot, err);
    if (ok && !delta->is_poisoned) {
        t.writer = go_writer_open(&t.snapshot, out, err);
        ok = t.writer != NULL;
    }
    ok = ok && compare(&t, err) && finish(&t, err);
    go_writer_release(t.writer);
    go_snapshot_release(&t.snapshot);
    vec_release(&t.met.words);
    vec_release(&t.more);
    map_release(&t.more_at);
    if (!ok) {
        forget(delta);
        buf_clear(out);
    }
    delta->is_poisoned = !ok;
    return ok;
}
