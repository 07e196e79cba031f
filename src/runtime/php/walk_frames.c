/* The frames of a stack (walk.h): the list from the one that runs to the script's, over what is held, and over what is
 * fetched where it leads elsewhere: to generators' frames on the heap, to older parts of a deep stack. Here is also
 * what two copies of the list have in common. */
#include "runtime/php/walk.h"

enum {
    CHUNK = 2 << 20, /* the allocator's: a page of the stack lies in one, which is mapped as a whole */
};

/* ---- what two copies have in common ---- */

/* A list from one frame on, as far as it is held. */
struct chain {
    uint64_t at[WALK_CHAIN];
    size_t count;
    uint64_t end; /* what it leads to: 0, or what is not held */
};

static void follow(struct walk *w, unsigned copy, uint64_t from, struct chain *out)
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
static size_t unchanged(struct walk *w, const struct chain *a, size_t count)
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

uint64_t php_stack_common(struct walk *w, bool *whole)
{
    struct chain first, other;
    uint64_t leaf = load_u64(w->root + w->php->layout.current);
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

static bool is_generator(const unsigned char *frame)
{
    return (load_u32(frame + FRAME_INFO) & INFO_GENERATOR) != 0;
}

static bool is_in_window(const struct walk_window *v, uint64_t address)
{
    return address >= v->low && address < v->limit;
}

/* The frame met last leads on if it is still the same one. What only the leaf may do meanwhile is to go on to another
 * place in its function. */
static bool stands(struct walk *w, const struct walk_joint *j)
{
    return !w->twice ||
           (php_stack_got(w, j->first) && php_stack_got(w, j->last) && is_equal(j->kept, j->before, FRAME_FUNCTION) &&
            is_equal(j->kept, j->before, FRAME_PREVIOUS) && is_equal(j->before, j->behind, FRAME_FUNCTION) &&
            is_equal(j->before, j->behind, FRAME_PREVIOUS) && is_equal(j->before, j->behind, FRAME_OPLINE) &&
            (j->is_leaf || is_equal(j->kept, j->before, FRAME_OPLINE)));
}

void php_stack_ask_joint(struct walk *w, struct walk_joint *j, bool behind)
{
    uint32_t *piece = behind ? &j->last : &j->first;
    *piece = w->twice ? php_stack_ask(w, j->address, behind ? j->behind : j->before, PHP_FRAME_BYTES) : 0;
}

/* Asks for the frame at `address` by itself. Its piece, and where to say that it is there. */
static uint32_t ask_alone(struct walk *w, uint64_t address, bool **is_there)
{
    struct walk_lone *lone = &w->lone[w->lone_count++];
    *lone = (struct walk_lone){.address = address};
    *is_there = &lone->is_there[w->window.copy];
    return php_stack_ask(w, address, lone->bytes[w->window.copy], PHP_FRAME_BYTES);
}

/* With `len` bytes of the stack that end behind it, if they lie in one of the allocator's chunks. */
static uint32_t ask_window(struct walk *w, uint64_t address, uint64_t len, bool **is_there)
{
    struct walk_window *v = &w->window;
    v->limit = v->above = address + PHP_FRAME_BYTES;
    v->low = most(v->limit - len, address & ~(uint64_t)(CHUNK - 1));
    *is_there = &v->is_there[v->copy];
    return php_stack_ask(w, v->low, v->bytes[v->copy], (uint32_t)(v->limit - v->low));
}

/* False: it is not there, or the frame that leads to it does not stand. */
static bool fetch(struct walk *w, struct walk_joint *j, uint64_t address, uint64_t len)
{
    bool *is_there;
    w->pieces = 0;
    php_stack_ask_joint(w, j, false);
    uint32_t piece = len == 0 ? ask_alone(w, address, &is_there) : ask_window(w, address, len, &is_there);
    php_stack_ask_joint(w, j, true);
    *is_there = php_stack_read(w) && php_stack_got(w, piece);
    return *is_there && stands(w, j);
}

bool php_stack_stands(struct walk *w, struct walk_joint *j)
{
    return php_stack_read(w) && stands(w, j);
}

/* ---- frames ---- */

void php_stack_emit(struct walk *w, uint64_t address, const unsigned char *frame)
{
    struct runtime_stack *out = w->out;
    uint64_t function = load_u64(frame + FRAME_FUNCTION);
    if (function == 0) {
        return; /* what C code puts there to call from */
    }
    *walk_place(out, w->met_count) = (struct runtime_frame){
        .code = function,
        .position = load_u32(frame + FRAME_INFO),
        .flags = WALK_UNCHECKED,
        .check = load_u64(frame + FRAME_OPLINE),
    };
    w->leaf = w->met_count == 0 ? address : w->leaf;
    w->met_count++;
}

void php_stack_cut(struct walk *w)
{
    if (w->met_count > 0) {
        walk_place(w->out, w->met_count - 1)->flags |= RUNTIME_FRAME_CUT;
    }
}

/* Generators' frames lie on the heap, each by itself; others in the stack's pages, of which an older one begins with a
 * frame like those. What is no page (C code's frames on its own stack) may end right below the frame. */
static bool reach(struct walk *w, struct walk_joint *j, uint64_t address)
{
    bool alone = j->may_be_alone && w->lone_count < WALK_LONE;
    j->may_be_alone = !alone;
    return j->address != 0 && address % 8 == 0 && plausible(address) &&
           (alone ? fetch(w, j, address, 0)
                  : fetch(w, j, address, WALK_WINDOW) || (!w->unreadable && fetch(w, j, address, PHP_FRAME_BYTES)));
}

/* Frames of a page are in order, older ones below younger ones, and no frame is met twice: so a ring ends at once. */
static bool is_in_order(struct walk *w, uint64_t at, const unsigned char *frame)
{
    struct walk_window *v = &w->window;
    struct walk_lone *lone = php_stack_lone(w, v->copy, at);
    if (!is_in_window(v, at)) {
        bool is_first = lone != NULL && !lone->was_met;
        if (is_first) {
            lone->was_met = true;
        }
        return is_first;
    }
    if (is_generator(frame) || load_u64(frame + FRAME_FUNCTION) == 0) {
        return w->generators++ < WALK_GENERATORS_MAX;
    }
    bool below = at < v->above;
    v->above = at;
    return below;
}

/* What stands for generators between the innermost one, whose frame was met last, and who asked the outermost. */
static bool is_outer(const unsigned char *frame, uint64_t at)
{
    return load_u64(frame + FRAME_FUNCTION) == 0 && (load_u32(frame + FRAME_INFO) & INFO_KIND) == INFO_OBJECT &&
           at - load_u64(frame + FRAME_THIS) < GENERATOR_OBJECT_MAX;
}

static bool meet(struct walk *w, struct walk_joint *j, uint64_t at, const unsigned char *frame)
{
    bool was_held = j->was_held;
    if (!is_in_order(w, at, frame)) {
        return false;
    }
    if (j->address != 0 && is_outer(frame, at) && !php_stack_outer(w, j, load_u64(frame + FRAME_THIS))) {
        return false;
    }
    php_stack_emit(w, at, frame);
    j->may_be_alone |= was_held || is_generator(frame) || load_u64(frame + FRAME_FUNCTION) == 0;
    j->is_leaf = j->address == 0;
    j->address = at;
    memcpy(j->kept, frame, PHP_FRAME_BYTES);
    return true;
}

enum runtime_end php_stack_frames(struct walk *w, uint64_t from)
{
    struct walk_joint j = {.may_be_alone = true};
    uint64_t at = from;
    while (at != 0 && w->batches < WALK_FRAME_BATCHES) {
        const unsigned char *frame = php_stack_frame(w, w->window.copy, at);
        j.was_held = frame != NULL;
        if (!j.was_held && reach(w, &j, at)) {
            frame = php_stack_frame(w, w->window.copy, at);
        }
        if (frame == NULL || !meet(w, &j, at, frame)) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        at = load_u64(j.kept + FRAME_PREVIOUS);
    }
    walk_keep(w->out, w->met_count);
    if (at != 0 && w->out->count > 0) {
        w->out->frame[w->out->count - 1].flags |= RUNTIME_FRAME_CUT; /* deeper than is followed */
    }
    return w->out->count > 0 ? RUNTIME_COMPLETE : RUNTIME_EMPTY;
}
