/* The frames of a stack (walk.h): the list from the one that runs to the script's, over what is held, and over what is
 * fetched where it leads elsewhere: to generators' frames on the heap, to older parts of a deep stack. Here is also
 * what two copies of the list have in common. */
#include "runtime/php/walk.h"

enum {
    KEEP_LEAF = RUNTIME_FRAMES_MAX * 3 / 4,
    KEEP_ROOT = RUNTIME_FRAMES_MAX - KEEP_LEAF,
    CHUNK = 2 << 20, /* the allocator's: a page of the stack lies in one, which is mapped as a whole */
};

/* ---- what two copies have in common ---- */

/* A list from one frame on, as far as it is held. */
struct chain {
    uint64_t at[WALK_CHAIN];
    size_t count;
    uint64_t end; /* what it leads to: 0, or what is not held */
};

static void follow(const struct walk *w, unsigned copy, uint64_t from, struct chain *out)
{
    const unsigned char *frame;
    out->count = 0;
    while ((frame = php_stack_frame(w, copy, from)) != NULL && out->count < WALK_CHAIN) {
        out->at[out->count++] = from;
        from = load_u64(frame + FRAME_PREVIOUS);
    }
    out->end = from;
}

/* How many frames, from the root on, are the same ones in both; `count` of them at most. */
static size_t shared(const struct chain *a, const struct chain *b, size_t count)
{
    size_t same = 0;
    while (a->end == b->end && same < count && same < a->count && same < b->count &&
           a->at[a->count - 1 - same] == b->at[b->count - 1 - same]) {
        same++;
    }
    return same;
}

static bool is_equal(const unsigned char *a, const unsigned char *b, size_t at)
{
    return load_u64(a + at) == load_u64(b + at);
}

/* How many of the `count` rootmost frames have the same function in both copies; only the last of them may be at
 * another place in it, for it ran. */
static size_t unchanged(const struct walk *w, const struct chain *a, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t at = a->at[a->count - 1 - i];
        const unsigned char *first = php_stack_frame(w, 0, at), *second = php_stack_frame(w, 1, at);
        if (!is_equal(first, second, FRAME_FUNCTION) || !is_equal(first, second, FRAME_INFO)) {
            return i;
        }
        if (!is_equal(first, second, FRAME_OPLINE)) {
            return i + 1;
        }
    }
    return count;
}

uint64_t php_stack_common(const struct walk *w, bool *whole)
{
    struct chain first, other;
    uint64_t leaf = load_u64(w->root + ROOT_CURRENT);
    follow(w, 0, leaf, &first);
    size_t count = first.count;
    const uint64_t seen[] = {w->last, w->between};
    for (size_t i = 0; i < 2; i++) {
        follow(w, 1, seen[i], &other);
        count = shared(&first, &other, count);
    }
    count = unchanged(w, &first, count);
    *whole = count == first.count && w->between == leaf && w->last == leaf;
    return count > 0 ? first.at[first.count - count] : 0;
}

/* ---- further parts ---- */

/* The last frame met, read again before and behind a further part. */
struct joint {
    uint64_t address;
    unsigned char kept[PHP_FRAME_BYTES], before[PHP_FRAME_BYTES], behind[PHP_FRAME_BYTES];
    uint32_t first, last;
};

static bool stands(const struct walk *w, const struct joint *j)
{
    return !w->twice ||
           (php_stack_got(w, j->first) && php_stack_got(w, j->last) && is_equal(j->kept, j->before, FRAME_FUNCTION) &&
            is_equal(j->kept, j->before, FRAME_PREVIOUS) && is_equal(j->before, j->behind, FRAME_FUNCTION) &&
            is_equal(j->before, j->behind, FRAME_PREVIOUS) && is_equal(j->before, j->behind, FRAME_OPLINE));
}

static void ask_joint(struct walk *w, const struct joint *j, unsigned char *to, uint32_t *piece)
{
    *piece = w->twice ? php_stack_ask(w, j->address, to, PHP_FRAME_BYTES) : 0;
}

/* Asks for the frame at `address`: by itself, or with the part of the stack below it. Its piece, and where to say that
 * it is there. */
static uint32_t ask_further(struct walk *w, uint64_t address, bool alone, bool **is_there)
{
    struct walk_window *v = &w->window;
    if (alone) {
        struct walk_lone *lone = &w->lone[w->lone_count++];
        lone->address = address;
        *is_there = &lone->is_there[v->copy];
        return php_stack_ask(w, address, lone->bytes[v->copy], PHP_FRAME_BYTES);
    }
    v->limit = address + PHP_FRAME_BYTES;
    v->low = most(v->limit - WALK_WINDOW, address & ~(uint64_t)(CHUNK - 1));
    *is_there = &v->is_there[v->copy];
    return php_stack_ask(w, v->low, v->bytes[v->copy], (uint32_t)(v->limit - v->low));
}

/* False: torn, or unreadable. */
static bool fetch(struct walk *w, struct joint *j, uint64_t address, bool alone)
{
    bool *is_there;
    w->pieces = 0;
    ask_joint(w, j, j->before, &j->first);
    uint32_t piece = ask_further(w, address, alone, &is_there);
    ask_joint(w, j, j->behind, &j->last);
    *is_there = php_stack_read(w) && php_stack_got(w, piece);
    return *is_there && stands(w, j);
}

/* ---- frames ---- */

/* Of a deep stack the middle is left out: the root's end goes round in what is kept for it. */
static void emit(struct walk *w, const unsigned char *frame)
{
    struct runtime_stack *out = w->out;
    uint64_t function = load_u64(frame + FRAME_FUNCTION);
    if (function == 0) {
        return; /* what C code puts there to call from */
    }
    uint32_t at = w->met_count < RUNTIME_FRAMES_MAX ? w->met_count : KEEP_LEAF + (w->met_count - KEEP_LEAF) % KEEP_ROOT;
    out->frame[at] = (struct runtime_frame){
        .code = function,
        .position = load_u32(frame + FRAME_INFO),
        .flags = WALK_UNCHECKED,
        .check = load_u64(frame + FRAME_OPLINE),
    };
    w->met_count++;
}

static void reverse(struct runtime_frame *frame, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct runtime_frame kept = frame[i];
        frame[i] = frame[count - 1 - i];
        frame[count - 1 - i] = kept;
    }
}

/* Puts what went round in order. */
static void end_frames(struct walk *w)
{
    struct runtime_stack *out = w->out;
    out->count = w->met_count;
    if (w->met_count > RUNTIME_FRAMES_MAX) {
        uint32_t first = (w->met_count - KEEP_LEAF) % KEEP_ROOT;
        struct runtime_frame *root = out->frame + KEEP_LEAF;
        reverse(root, first);
        reverse(root + first, KEEP_ROOT - first);
        reverse(root, KEEP_ROOT);
        out->count = RUNTIME_FRAMES_MAX;
        out->frame[KEEP_LEAF - 1].flags |= RUNTIME_FRAME_CUT;
    }
}

/* Frames that are far from each other lie elsewhere than in the stack's pages, at most one behind the other. */
static bool reach(struct walk *w, struct joint *j, uint64_t address, unsigned *lone_row)
{
    bool alone = *lone_row == 0 && w->lone_count < WALK_LONE;
    *lone_row = alone;
    return j->address != 0 && address % 8 == 0 && plausible(address) && fetch(w, j, address, alone);
}

enum runtime_end php_stack_frames(struct walk *w, uint64_t from)
{
    struct joint j = {0};
    unsigned lone_row = 0, steps = 0;
    uint64_t at = from;
    while (at != 0 && steps++ < RUNTIME_WALK_MAX && w->batches < WALK_FRAME_BATCHES) {
        const unsigned char *frame = php_stack_frame(w, w->window.copy, at);
        bool was_held = frame != NULL;
        if (!was_held && reach(w, &j, at, &lone_row)) {
            frame = php_stack_frame(w, w->window.copy, at);
        }
        if (frame == NULL) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        lone_row = was_held ? 0 : lone_row;
        emit(w, frame);
        j.address = at;
        memcpy(j.kept, frame, PHP_FRAME_BYTES);
        at = load_u64(frame + FRAME_PREVIOUS);
    }
    end_frames(w);
    if (at != 0 && w->out->count > 0) {
        w->out->frame[w->out->count - 1].flags |= RUNTIME_FRAME_CUT; /* deeper than is followed */
    }
    return w->out->count > 0 ? RUNTIME_COMPLETE : RUNTIME_EMPTY;
}
