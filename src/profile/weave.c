/* Joins the native and the runtime's frames of one stack, leaf first, by matching native frames of an interpreter's
 * loop with runs of the runtime's frames (weave.h). Pure: works on lists of kinds, writes a list of indices,
 * never more than both inputs together. */
#include "profile/weave.h"

struct weaver {
    const uint8_t *native;
    size_t native_count;
    const struct weave_stack *runtimes;
    size_t runtime_count;
    struct weave_frame *out;
    size_t count;
};

static void put(struct weaver *w, size_t index, size_t runtime)
{
    w->out[w->count++] = (struct weave_frame){(uint32_t)index, (uint8_t)runtime};
}

static size_t count_of(const uint8_t *kinds, size_t count, size_t kind)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += kinds[i] == kind;
    }
    return found;
}

/* A shim ends a run of frames without belonging to it; the root's run ends with the list. */
static size_t runs_of(const struct weave_stack *s)
{
    bool open = s->count > 0 && s->kinds[s->count - 1] == WEAVE_FRAME;
    return count_of(s->kinds, s->count, WEAVE_ENTRY) + count_of(s->kinds, s->count, WEAVE_SHIM) + open;
}

static enum weave_outcome outcome_of(const struct weaver *w, size_t runtime)
{
    size_t loops = count_of(w->native, w->native_count, WEAVE_LOOP + runtime), runs = runs_of(&w->runtimes[runtime]);
    return loops == runs ? WEAVE_EXACT : loops == runs + 1 ? WEAVE_ONE_MORE : WEAVE_UNMERGED;
}

static size_t first_loop(const struct weaver *w)
{
    size_t at = 0;
    while (at < w->native_count && w->native[at] < WEAVE_LOOP) {
        at++;
    }
    return at;
}

/* The frames of one run of the loop, beginning at `at`; returns where the next one begins. */
static size_t put_run(struct weaver *w, size_t runtime, size_t at)
{
    const struct weave_stack *s = &w->runtimes[runtime];
    for (; at < s->count; at++) {
        if (s->kinds[at] == WEAVE_SHIM) {
            return at + 1;
        }
        put(w, at, runtime + 1);
        if (s->kinds[at] == WEAVE_ENTRY) {
            return at + 1;
        }
    }
    return at;
}

static void put_whole(struct weaver *w, size_t runtime)
{
    const struct weave_stack *s = &w->runtimes[runtime];
    for (size_t i = 0; i < s->count; i++) {
        if (s->kinds[i] != WEAVE_SHIM) {
            put(w, i, runtime + 1);
        }
    }
}

/* Each runtime's frames whole, by their leaf-most frames of the loop; last those that have none. */
static void put_all(struct weaver *w)
{
    bool done[WEAVE_RUNTIMES_MAX] = {false};
    for (size_t i = 0; i < w->native_count; i++) {
        size_t runtime = w->native[i] - (size_t)WEAVE_LOOP;
        if (w->native[i] >= WEAVE_LOOP && runtime < w->runtime_count && !done[runtime]) {
            put_whole(w, runtime);
            done[runtime] = true;
        }
    }
    for (size_t i = 0; i < w->runtime_count; i++) {
        if (!done[i]) {
            put_whole(w, i);
        }
    }
}

/* The leaf's own plumbing is shown: it is where the time is spent. */
static void put_leaf(struct weaver *w, size_t limit, bool plumbing)
{
    for (size_t i = 0; i < limit; i++) {
        if (plumbing ? i == 0 || w->native[i] != WEAVE_PLUMBING : w->native[i] == WEAVE_NATIVE) {
            put(w, i, 0);
        }
    }
}

/* What led into the interpreter in the first place: the same at any moment. */
static void put_root(struct weaver *w)
{
    size_t from = w->native_count;
    while (from > 0 && w->native[from - 1] < WEAVE_LOOP) {
        from--;
    }
    for (size_t i = from; from > 0 && i < w->native_count; i++) {
        if (w->native[i] != WEAVE_PLUMBING) {
            put(w, i, 0);
        }
    }
}

static void join(struct weaver *w)
{
    size_t next[WEAVE_RUNTIMES_MAX] = {0};
    bool pass_over[WEAVE_RUNTIMES_MAX];
    for (size_t i = 0; i < w->runtime_count; i++) {
        pass_over[i] = outcome_of(w, i) == WEAVE_ONE_MORE;
    }
    for (size_t i = 0; i < w->native_count; i++) {
        if (w->native[i] >= WEAVE_LOOP) {
            size_t runtime = w->native[i] - (size_t)WEAVE_LOOP;
            next[runtime] = pass_over[runtime] ? next[runtime] : put_run(w, runtime, next[runtime]);
            pass_over[runtime] = false;
        } else if (w->native[i] != WEAVE_PLUMBING || i == 0) {
            put(w, i, 0);
        }
    }
}

enum weave_outcome weave(const uint8_t *native, size_t native_count, const struct weave_stack *runtimes,
                         size_t runtime_count, struct weave_frame *out, size_t *count)
{
    struct weaver w = {native, native_count, runtimes, runtime_count, out, 0};
    enum weave_outcome outcome = WEAVE_EXACT;
    for (size_t i = 0; i < runtime_count; i++) {
        enum weave_outcome one = outcome_of(&w, i);
        outcome = one > outcome ? one : outcome;
    }
    if (outcome == WEAVE_UNMERGED) {
        put_leaf(&w, first_loop(&w), true);
        put_all(&w);
        put_root(&w);
    } else {
        join(&w);
    }
    *count = w.count;
    return outcome;
}

bool weave_apart(const uint8_t *native, size_t native_count, const struct weave_stack *runtimes,
                 size_t runtime_count, struct weave_frame *out, size_t *count)
{
    struct weaver w = {native, native_count, runtimes, runtime_count, out, 0};
    size_t loop = first_loop(&w);
    if (loop < native_count) { /* without it, it is not known what the native frames belong to */
        put_leaf(&w, loop, false);
    }
    bool has_native = w.count > 0;
    put_all(&w);
    put_root(&w);
    *count = w.count;
    return has_native;
}
