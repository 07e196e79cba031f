/* The text is gone through twice: first its goroutines' first lines for those that wait longest, then all of it. What
 * makes a sample, its state and locations, is one text of bytes, so that equal samples are found as equal
 * texts are. Only these are kept, and what was added up. */
#include "runtime/go/waits.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "runtime/go/dump.h"
#include "runtime/go/pprof.h"

enum {
    RESULT_MAX_BYTES = 8 << 20,
    STACKS_MAX_BYTES = 16 << 20,
    KEY_MAX_BYTES = 64 << 10,
    STATE_MAX = 256,
    FLAG_LOCKED = 1, FLAG_LEAKED = 2,
};

static const uint64_t MINUTE_NS = 60000000000;

struct sums {
    int64_t wait_ns, count;
};

struct longest {
    uint64_t id, minutes;
};

struct waits {
    struct go_pprof *profile;
    struct go_goroutine goroutine;
    struct longest longest[GO_WAITS_NAMED];
    size_t longest_count;
    struct buf key; /* of the goroutine at hand: flags, length of the state, state, locations */
    struct arena bytes;
    VEC(struct str) keys; /* of samples, by number; the first is none */
    VEC(struct sums) sums;
    struct intern ids;
    uint64_t locations[GO_DUMP_FRAMES_MAX];
    struct go_waits_told told;
};

/* ---- those that wait longest ---- */

/* Keeps the longest, of equal ones the first. */
static void consider(struct waits *w, const struct go_goroutine_head *g)
{
    size_t at = w->longest_count;
    if (at < GO_WAITS_NAMED) {
        w->longest_count++;
    } else {
        at = 0;
        for (size_t i = 1; i < GO_WAITS_NAMED; i++) {
            at = w->longest[i].minutes < w->longest[at].minutes ? i : at;
        }
        if (g->minutes <= w->longest[at].minutes) {
            return;
        }
    }
    w->longest[at] = (struct longest){g->id, g->minutes};
}

static void find_longest(struct waits *w, struct str dump)
{
    struct go_goroutine_head head;
    while (dump.len > 0) {
        struct str line = str_cut(&dump, '\n');
        if (go_dump_head(line, &head) && head.minutes > 0) {
            consider(w, &head);
        }
    }
}

/* Once for each: a damaged text may have a number more than once. */
static bool take_longest(struct waits *w, const struct go_goroutine_head *g)
{
    for (size_t i = 0; i < w->longest_count; i++) {
        if (w->longest[i].id == g->id && w->longest[i].minutes == g->minutes) {
            w->longest[i] = w->longest[--w->longest_count];
            return true;
        }
    }
    return false;
}

/* ---- samples ---- */

static void write_sample(struct waits *w, struct str key, const struct sums *sums, const uint64_t *id)
{
    struct go_pprof_label labels[4];
    const struct str yes = STR("true");
    size_t count = 0, at = 2 + (unsigned char)key.ptr[1];
    const struct str state = str_sub(key, 2, at - 2);
    labels[count++] = (struct go_pprof_label){.key = "state", .text = &state};
    if ((key.ptr[0] & FLAG_LOCKED) != 0) {
        labels[count++] = (struct go_pprof_label){.key = "lockedm", .text = &yes};
    }
    if ((key.ptr[0] & FLAG_LEAKED) != 0) {
        labels[count++] = (struct go_pprof_label){.key = "leaked", .text = &yes};
    }
    if (id != NULL) {
        labels[count++] = (struct go_pprof_label){.key = "goid", .number = (int64_t)*id, .unit = "id"};
    }
    size_t depth = (key.len - at) / sizeof(uint32_t);
    for (size_t i = 0; i < depth; i++) {
        uint32_t location;
        memcpy(&location, key.ptr + at + i * sizeof location, sizeof location);
        w->locations[i] = location;
    }
    go_pprof_sample(w->profile, w->locations, depth, (const int64_t[]){sums->wait_ns, sums->count}, labels, count);
}

static void make_key(struct waits *w, const struct go_goroutine *g)
{
    struct str state = str_sub(g->head.state, 0, STATE_MAX - 1);
    buf_clear(&w->key);
    buf_byte(&w->key, (char)((g->head.is_locked ? FLAG_LOCKED : 0) | (g->head.is_leaked ? FLAG_LEAKED : 0)));
    buf_byte(&w->key, (char)state.len);
    buf_str(&w->key, state);
    for (size_t i = 0; i < g->count; i++) {
        uint32_t location = (uint32_t)go_pprof_location(w->profile, 0, &g->frames[i], 1);
        buf_add(&w->key, &location, sizeof location);
    }
}

/* The sums of the key at hand; null: there is no more room for it. */
static struct sums *sums_of(struct waits *w)
{
    struct str key = buf_slice(&w->key);
    uint64_t hash = str_hash(key);
    uint32_t id = intern_find(&w->ids, &intern_texts, &w->keys.at, hash, &key);
    if (id != 0) {
        return &w->sums.at[id];
    }
    struct str copy = arena_copy(&w->bytes, key);
    struct sums *sums = copy.ptr != NULL ? vec_push(&w->sums) : NULL;
    struct str *at = sums != NULL ? vec_push(&w->keys) : NULL;
    if (at == NULL) {
        w->sums.len -= sums != NULL;
        return NULL;
    }
    *at = copy; /* where the table has no room, equal ones are not found and come as several samples */
    (void)intern_add(&w->ids, &intern_texts, &w->keys.at, hash, (uint32_t)(w->keys.len - 1));
    return sums;
}

static int64_t wait_of(uint64_t minutes)
{
    return minutes < INT64_MAX / MINUTE_NS ? (int64_t)(minutes * MINUTE_NS) : INT64_MAX;
}

static void add(struct waits *w, const struct go_goroutine *g)
{
    struct sums one = {wait_of(g->head.minutes), 1};
    make_key(w, g);
    if (w->key.failed) {
        w->told.damaged++;
        return;
    }
    w->told.goroutines++;
    bool is_named = take_longest(w, &g->head);
    struct sums *sums = is_named ? NULL : sums_of(w);
    if (sums == NULL) {
        write_sample(w, buf_slice(&w->key), &one, is_named ? &g->head.id : NULL);
        return;
    }
    sums->count++;
    sums->wait_ns = one.wait_ns < INT64_MAX - sums->wait_ns ? sums->wait_ns + one.wait_ns : INT64_MAX;
}

static bool is_own(const struct go_goroutine *g)
{
    bool found = false;
    for (size_t i = 0; i < g->count && str_eq(g->head.state, STR("running")); i++) {
        found |= str_eq(g->frames[i].name, STR("runtime/pprof.writeGoroutineStacks"));
    }
    return found;
}

/* ---- the whole ---- */

/* What is behind the last whole block is cut off. */
static struct str whole_blocks(struct str dump, bool *cut)
{
    *cut = dump.len > 0 && (dump.ptr[dump.len - 1] != '\n' || dump.len == GO_WAITS_TEXT_MAX);
    while (*cut && dump.len > 0 && !str_ends(dump, STR("\n\n"))) {
        dump.len--;
    }
    return dump;
}

static void read_all(struct waits *w, struct str dump)
{
    bool damaged;
    find_longest(w, dump);
    while (go_dump_next(&dump, &w->goroutine, &damaged)) {
        if (damaged) {
            w->told.damaged++;
        } else if (is_own(&w->goroutine)) {
            w->told.own++;
        } else {
            add(w, &w->goroutine);
        }
    }
    for (size_t i = 1; i < w->keys.len; i++) {
        write_sample(w, w->keys.at[i], &w->sums.at[i], NULL);
    }
}

static struct waits *waits_new(uint64_t wall_ns)
{
    /* No default: tools then show the last value. Wait times of a program that just began are all 0. */
    static const struct go_pprof_kind kind = {
        .values = {{"waitduration", "nanoseconds"}, {"goroutine", "count"}},
        .value_count = 2,
        .period_type = {"waitduration", "nanoseconds"},
        .period = 1,
    };
    struct waits *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return NULL;
    }
    buf_init(&w->key, KEY_MAX_BYTES);
    arena_init(&w->bytes, STACKS_MAX_BYTES);
    w->profile = go_pprof_new(&kind, RESULT_MAX_BYTES);
    if (w->profile != NULL) {
        go_pprof_times(w->profile, wall_ns, 0);
    }
    return w;
}

static void waits_free(struct waits *w)
{
    if (w != NULL) {
        go_pprof_free(w->profile);
        buf_release(&w->key);
        arena_release(&w->bytes);
        vec_release(&w->keys);
        vec_release(&w->sums);
        intern_release(&w->ids);
        free(w);
    }
}

static bool read_into(struct waits *w, struct str dump, struct buf *out, struct err *err)
{
    if (w == NULL || w->profile == NULL || vec_push(&w->keys) == NULL || vec_push(&w->sums) == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a profile of waiting goroutines");
    }
    read_all(w, whole_blocks(dump, &w->told.cut));
    if (w->told.goroutines == 0 && w->told.own == 0) {
        return err_set(err, ERR_MALFORMED, 0, "there is no goroutine in %zu bytes of text", dump.len);
    }
    return go_pprof_finish(w->profile, out, err);
}

bool go_waits_read(struct str dump, uint64_t wall_ns, struct buf *out, struct go_waits_told *told, struct err *err)
{
    if (dump.len > GO_WAITS_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, 0, "a text of goroutines has %zu bytes, at most %d are read", dump.len,
                       GO_WAITS_TEXT_MAX);
    }
    struct waits *w = waits_new(wall_ns);
    bool ok = read_into(w, dump, out, err);
    if (ok) {
        *told = w->told;
    }
    waits_free(w);
    return ok;
}
