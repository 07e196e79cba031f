/* Merges the native stack and the runtime's stack of one moment into one: frames of the interpreter's
 * loop are replaced by the functions that they run. Where the two do not match, the runtime's frames
 * stand whole, and the stack is marked. */
#include "profile/weave.h"

struct weaver {
    const uint8_t *native, *runtime;
    size_t native_count, runtime_count;
    struct weave_frame *out;
    size_t count;
};

static void put(struct weaver *w, size_t index, bool runtime)
{
    w->out[w->count++] = (struct weave_frame){(uint32_t)index, runtime};
}

static size_t count_of(const uint8_t *kinds, size_t count, uint8_t kind)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += kinds[i] == kind;
    }
    return found;
}

/* A shim ends a run of frames without belonging to it; the root's run ends with the list. */
static size_t runs_of(const uint8_t *runtime, size_t count)
{
    bool open = count > 0 && runtime[count - 1] == WEAVE_FRAME;
    return count_of(runtime, count, WEAVE_ENTRY) + count_of(runtime, count, WEAVE_SHIM) + open;
}

static size_t first_loop(const struct weaver *w)
{
    size_t at = 0;
    while (at < w->native_count && w->native[at] != WEAVE_LOOP) {
        at++;
    }
    return at;
}

/* The frames of one run of the loop, beginning at `at`; returns where the next one begins. */
static size_t put_run(struct weaver *w, size_t at)
{
    for (; at < w->runtime_count; at++) {
        if (w->runtime[at] == WEAVE_SHIM) {
            return at + 1;
        }
        put(w, at, true);
        if (w->runtime[at] == WEAVE_ENTRY) {
            return at + 1;
        }
    }
    return at;
}

static void put_all(struct weaver *w)
{
    for (size_t i = 0; i < w->runtime_count; i++) {
        if (w->runtime[i] != WEAVE_SHIM) {
            put(w, i, true);
        }
    }
}

/* The leaf's own plumbing is shown: it is where the time is spent. */
static void put_leaf(struct weaver *w, size_t limit, bool plumbing)
{
    for (size_t i = 0; i < limit; i++) {
        if (plumbing ? i == 0 || w->native[i] != WEAVE_PLUMBING : w->native[i] == WEAVE_NATIVE) {
            put(w, i, false);
        }
    }
}

/* What led into the interpreter in the first place: the same at any moment. */
static void put_root(struct weaver *w)
{
    size_t from = w->native_count;
    while (from > 0 && w->native[from - 1] != WEAVE_LOOP) {
        from--;
    }
    for (size_t i = from; from > 0 && i < w->native_count; i++) {
        if (w->native[i] != WEAVE_PLUMBING) {
            put(w, i, false);
        }
    }
}

static void join(struct weaver *w, bool pass_over)
{
    size_t next = 0;
    for (size_t i = 0; i < w->native_count; i++) {
        if (w->native[i] == WEAVE_LOOP) {
            next = pass_over ? next : put_run(w, next);
            pass_over = false;
        } else if (w->native[i] != WEAVE_PLUMBING || i == 0) {
            put(w, i, false);
        }
    }
}

enum weave_outcome weave(const uint8_t *native, size_t native_count, const uint8_t *runtime,
                         size_t runtime_count, struct weave_frame *out, size_t *count)
{
    struct weaver w = {native, runtime, native_count, runtime_count, out, 0};
    size_t loops = count_of(native, native_count, WEAVE_LOOP);
    size_t runs = runs_of(runtime, runtime_count);
    enum weave_outcome outcome = loops == runs       ? WEAVE_EXACT
                                 : loops == runs + 1 ? WEAVE_ONE_MORE
                                                     : WEAVE_UNMERGED;
    if (outcome == WEAVE_UNMERGED) {
        put_leaf(&w, first_loop(&w), true);
        put_all(&w);
        put_root(&w);
    } else {
        join(&w, outcome == WEAVE_ONE_MORE);
    }
    *count = w.count;
    return outcome;
}

bool weave_apart(const uint8_t *native, size_t native_count, const uint8_t *runtime,
                 size_t runtime_count, struct weave_frame *out, size_t *count)
{
    struct weaver w = {native, runtime, native_count, runtime_count, out, 0};
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
