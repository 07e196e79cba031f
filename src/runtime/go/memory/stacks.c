/* Equal goroutines as one, and their two profiles: a million of them wait at a few dozen places. A stack is known by
 * the hash of its addresses, its mark and, for waits, its state; labels tell goroutines apart as they do in
 * runtime/pprof. */
#include "runtime/common/load.h"
#include "runtime/go/memory/goroutines.h"

bool go_stacks_open(struct go_stacks *s, struct go_memory *m)
{
    *s = (struct go_stacks){.m = m};
    arena_init(&s->texts, GO_STACKS_MAX_BYTES / 4);
    struct str *none = vec_push(&s->labels);
    return none != NULL;
}

void go_stacks_release(struct go_stacks *s)
{
    map_release(&s->known);
    map_release(&s->label_sets);
    vec_release(&s->kept);
    vec_release(&s->pcs);
    vec_release(&s->labels);
    arena_release(&s->texts);
}

/* Static texts and those of go_memory are equal when their addresses are. */
static bool is_equal(const struct go_stacks *s, const struct go_kept *kept, const struct go_goroutine *one,
                     uint32_t labels)
{
    return kept->count == one->count && kept->mark == one->mark && kept->labels == labels &&
           (!s->by_state || kept->state == one->state) &&
           (one->count == 0 || memcmp(s->pcs.at + kept->first, one->pcs, one->count * sizeof one->pcs[0]) == 0);
}

static uint64_t hash_of(const struct go_stacks *s, const struct go_goroutine *one, uint32_t labels)
{
    uint64_t hash = mix_u64(labels, one->mark == NULL ? 0 : (uint64_t)(unsigned char)one->mark[1]);
    hash = s->by_state ? mix_u64(hash, str_hash(str_of(one->state))) : hash;
    for (size_t i = 0; i < one->count; i++) {
        hash = mix_u64(hash, one->pcs[i]);
    }
    return hash;
}

static struct go_kept *keep(struct go_stacks *s, const struct go_goroutine *one, uint32_t labels, uint64_t hash)
{
    uint64_t bytes = (s->pcs.len + one->count) * sizeof(uint64_t) + s->kept.len * sizeof(struct go_kept);
    struct go_kept *kept = bytes <= GO_STACKS_MAX_BYTES ? vec_push(&s->kept) : NULL;
    if (kept == NULL || !map_add(&s->known, hash, s->kept.len - 1)) {
        return NULL;
    }
    *kept = (struct go_kept){.first = s->pcs.len, .count = (uint32_t)one->count, .labels = labels, .mark = one->mark,
                             .state = one->state};
    for (size_t i = 0; i < one->count; i++) {
        uint64_t *pc = vec_push(&s->pcs);
        if (pc == NULL) {
            return NULL;
        }
        *pc = one->pcs[i];
    }
    return kept;
}

bool go_stacks_add(struct go_stacks *s, const struct go_goroutine *one)
{
    uint32_t labels = go_labels_number(s, one->labels);
    uint64_t hash = hash_of(s, one, labels);
    struct go_kept *kept = NULL;
    for (struct map_slot *slot = map_find(&s->known, hash); slot != NULL && kept == NULL;
         slot = map_next(&s->known, slot)) {
        kept = is_equal(s, &s->kept.at[slot->value], one, labels) ? &s->kept.at[slot->value] : NULL;
    }
    kept = kept == NULL ? keep(s, one, labels, hash) : kept;
    if (kept == NULL) {
        s->failed = true;
        return false;
    }
    kept->goroutines++;
    if (one->waitsince != 0 && one->waitsince < s->mono_ns) {
        kept->waited_ns += s->mono_ns - one->waitsince;
    }
    s->total++;
    return true;
}

/* ---- the profiles ---- */

static const struct go_pprof_kind goroutine_kind = {
    .values = {{"goroutine", "count"}},
    .value_count = 1,
    .period_type = {"goroutine", "count"},
    .period = 1,
};

static const struct go_pprof_kind wait_kind = {
    .values = {{"waitduration", "nanoseconds"}, {"goroutine", "count"}},
    .value_count = 2,
    .period_type = {"waitduration", "nanoseconds"},
    .period = 1,
};

static void write_one(struct go_stacks *s, struct go_places *places, const struct go_kept *kept)
{
    uint64_t locations[GO_DEPTH_MAX + 1];
    struct go_label_texts texts;
    struct go_pprof_label labels[GO_LABELS_MAX + 1];
    int64_t values[2] = {(int64_t)(kept->waited_ns <= INT64_MAX ? kept->waited_ns : INT64_MAX),
                         (int64_t)kept->goroutines};
    size_t n = 0, label_count = go_labels_of(s, kept->labels, &texts);
    struct str state = str_of(kept->state);
    if (kept->mark != NULL) {
        struct go_frame frame = {.name = str_of(kept->mark)};
        locations[n++] = go_pprof_location(places->pprof, 0, &frame, 1);
    }
    if (kept->count > 0) {
        n += go_places_of(places, s->pcs.at + kept->first, kept->count, locations + n);
    }
    for (size_t i = 0; i < label_count; i++) {
        labels[i] = (struct go_pprof_label){.key = texts.keys[i], .text = &texts.values[i]};
    }
    if (s->by_state) {
        labels[label_count++] = (struct go_pprof_label){.key = "state", .text = &state};
    }
    go_pprof_sample(places->pprof, locations, n, s->by_state ? values : values + 1, labels, label_count);
}

static bool write_all(struct go_stacks *s, uint64_t wall_ns, struct buf *out, struct err *why)
{
    struct go_places places;
    if (s->failed) {
        return err_set(why, ERR_LIMIT, 0,
                       "a Go program's goroutines have more than %d MiB of different stacks, or there is no memory",
                       GO_STACKS_MAX_BYTES >> 20);
    }
    if (!go_places_open(&places, s->m, s->by_state ? &wait_kind : &goroutine_kind, wall_ns)) {
        return err_set(why, ERR_MEMORY, 0, "no memory for a Go program's goroutines");
    }
    vec_each(&s->kept, kept) {
        write_one(s, &places, kept);
    }
    bool done = go_places_finish(&places, out, why);
    go_places_release(&places);
    return done;
}

static bool profile(struct go_stacks *s, uint64_t wall_ns, struct buf *out, struct err *why)
{
    buf_clear(out);
    return go_goroutines_collect(s->m, s, why) && write_all(s, wall_ns, out, why);
}

bool go_memory_goroutines(struct go_memory *m, uint64_t wall_ns, struct buf *out, uint64_t *count, struct err *why)
{
    struct go_stacks s;
    bool done = go_stacks_open(&s, m) ? profile(&s, wall_ns, out, why)
                                      : err_set(why, ERR_MEMORY, 0, "no memory for a Go program's goroutines");
    *count = done ? s.total : 0;
    go_stacks_release(&s);
    return done;
}

bool go_memory_waits(struct go_memory *m, uint64_t wall_ns, uint64_t mono_ns, struct buf *out, struct err *why)
{
    struct go_stacks s;
    bool opened = go_stacks_open(&s, m);
    s.by_state = true;
    s.mono_ns = mono_ns;
    bool done = opened ? profile(&s, wall_ns, out, why)
                       : err_set(why, ERR_MEMORY, 0, "no memory for a Go program's goroutines");
    go_stacks_release(&s);
    return done;
}
