/* The chain of a thread's frames, over what is held of its memory. A frame whose pointers, owner, position or order on
 * the data stack are impossible, and a chain that is a circle, make the stack torn. Of more than RUNTIME_FRAMES_MAX
 * frames the leaf-most three quarters and the root-most quarter are kept. */
#include "runtime/python/walk.h"

enum {
    BYTECODE_MAX = 1 << 26, /* bytes; CPython's own limit is on the number of lines and constants */
    OWNER_SHIM = 3,         /* 3.12 on: this and above */
    OWNER_MAX = 4,
    LOCALS_READ = 512,      /* bytes, of the leaf-most frame on the data stack */
};

/* A frame's fields. */
struct fields {
    uint64_t code, previous;
    uint64_t position;
    uint32_t copy; /* tlbc_index */
    bool shim, entry;
};

static uint64_t word_at(const struct walk *w, const unsigned char *at, uint32_t field)
{
    return load_u64(at + field - w->view.first);
}

/* From 3.13 on it carries tags in its two lowest bits: Include/internal/pycore_stackref.h. */
static uint64_t untagged(const struct walk *w, uint64_t pointer)
{
    return w->layout->frames == PYTHON_FRAMES_CURRENT ? pointer & ~(uint64_t)3 : pointer;
}

static bool copies_agree(const struct walk *w, const struct walk_bytes *bytes)
{
    const struct python_layout *l = w->layout;
    const unsigned char *link = bytes->link;
    return link == NULL ||
           (load_u64(link + l->frame.code - w->view.link_first) ==
                word_at(w, bytes->at, l->frame.code) &&
            load_u64(link + l->frame.previous - w->view.link_first) ==
                word_at(w, bytes->at, l->frame.previous));
}

static bool read_owner(const struct walk *w, const unsigned char *at, struct fields *out)
{
    const struct python_layout *l = w->layout;
    uint8_t owner = has(l->frame.owner) ? at[l->frame.owner - w->view.first] : 0;
    bool entry_told = has(l->frame.is_entry);
    out->shim = !entry_told && owner >= OWNER_SHIM;
    out->entry = !has(l->frame.owner) || (entry_told && at[l->frame.is_entry - w->view.first] != 0);
    return owner <= (entry_told ? OWNER_SHIM - 1 : OWNER_MAX);
}

static bool read_fields(const struct walk *w, const unsigned char *at, struct fields *out)
{
    const struct python_layout *l = w->layout;
    bool heap = on_heap(w);
    const unsigned char *position = at + l->frame.position - w->view.first;
    out->code = untagged(w, word_at(w, at, l->frame.code));
    out->previous = word_at(w, at, l->frame.previous);
    out->position = heap ? load_u32(position) : load_u64(position);
    out->copy = has(l->frame.tlbc_index) ? load_u32(at + l->frame.tlbc_index - w->view.first) : 0;
    return read_owner(w, at, out) &&
           (out->shim || (plausible(out->code) && out->code % 8 == 0)) &&
           (out->previous == 0 || (plausible(out->previous) && out->previous % 8 == 0));
}

/* ---- the position ---- */

static bool heap_position(const struct walk *w, const struct fields *f, struct runtime_frame *out)
{
    bool units = w->layout->lines == PYTHON_LINETABLE; /* 3.10 counts code units */
    if ((uint32_t)f->position == UINT32_MAX) {
        out->position = UINT32_MAX;
        out->flags |= RUNTIME_FRAME_UNSTARTED;
        return true;
    }
    out->position = (uint32_t)f->position << (units ? 1 : 0);
    return f->position < BYTECODE_MAX;
}

static bool inline_position(struct walk *w, const struct fields *f, const struct plan_code *known,
                            struct runtime_frame *out)
{
    uint64_t start = f->code + w->layout->code.bytecode;
    uint64_t limit = known != NULL && known->units != 0 ? 2 * (uint64_t)known->units : BYTECODE_MAX;
    if (f->copy != 0 && (known == NULL || known->copy == 0)) {
        w->copy_missing = f->copy;
        out->position = UINT32_MAX;
        out->check = 0; /* so that it is asked for */
        return true;
    }
    uint64_t offset = f->position - (f->copy != 0 ? known->copy : start);
    if (offset == (uint64_t)-2) {
        out->position = UINT32_MAX;
        out->flags |= RUNTIME_FRAME_UNSTARTED;
        return true;
    }
    out->position = (uint32_t)offset;
    return offset < limit && offset % 2 == 0;
}

/* ---- what is kept ---- */

static void finish(struct walk *w, bool whole)
{
    struct runtime_stack *out = w->out;
    if (w->last != NULL && (w->last->flags & RUNTIME_FRAME_SHIM) == 0) {
        w->last->flags |= RUNTIME_FRAME_ENTRY | (whole ? 0 : RUNTIME_FRAME_CUT);
    }
    walk_keep(out, w->emitted);
}

/* ---- the chain ---- */

static void emit_shim(struct walk *w)
{
    if (w->last == NULL) {
        w->last = walk_place(w->out, w->emitted++);
        *w->last = (struct runtime_frame){.flags = RUNTIME_FRAME_SHIM};
    } else if ((w->last->flags & RUNTIME_FRAME_SHIM) == 0) {
        w->last->flags |= RUNTIME_FRAME_ENTRY;
    }
}

static bool emit(struct walk *w, const struct fields *f)
{
    struct plan_code *known = walk_code(w, f->code);
    struct runtime_frame frame = {.code = f->code, .check = known != NULL ? known->check : 0};
    frame.flags = f->entry ? RUNTIME_FRAME_ENTRY : 0;
    if (!(on_heap(w) ? heap_position(w, f, &frame)
                                                  : inline_position(w, f, known, &frame))) {
        return false;
    }
    if (known != NULL && w->emitted < PLAN_LEAVES) {
        w->plan->leaves[w->emitted] = (uint8_t)(known - w->plan->codes + 1);
    }
    w->last = walk_place(w->out, w->emitted++);
    *w->last = frame;
    return true;
}

/* Within a chunk the chain only goes down. A frame at the very top was popped just now: its bytes
 * are whole as long as nothing is pushed. */
static bool in_order(struct walk *w, uint64_t address)
{
    if (on_heap(w)) {
        return true;
    }
    if (address == w->chain.limit && w->chain.joint == 0) {
        return !w->twice;
    }
    if (address < w->chain.chunk || address >= w->chain.limit) {
        return true;
    }
    bool lower = address < w->chain.lower;
    if (w->chain.lower == w->plan->top) { /* the first: a large frame's locals need not be read again */
        uint64_t limit = address + w->view.first + w->view.bytes + LOCALS_READ;
        w->plan->top = limit < w->plan->top ? limit : w->plan->top;
    }
    w->chain.lower = address;
    return lower;
}

static void note_outside(struct walk *w, uint64_t address)
{
    w->chain.recent[w->chain.recents++ % WALK_RECENT] = address;
    if (w->outside.count < PLAN_OUTSIDE) {
        w->outside.at[w->outside.count++] = address;
    }
}

static bool take(struct walk *w, uint64_t address, const struct walk_bytes *bytes, uint64_t *next)
{
    struct fields f;
    if (!in_order(w, address) || !copies_agree(w, bytes) || !read_fields(w, bytes->at, &f) ||
        f.previous == address) {
        return false;
    }
    if (bytes->outside) {
        note_outside(w, address);
    }
    w->chain.joint = address;
    w->chain.joint_code = word_at(w, bytes->at, w->layout->frame.code);
    w->chain.joint_previous = *next = f.previous;
    if (f.shim) {
        emit_shim(w);
        return true;
    }
    return emit(w, &f);
}

/* 1: it is held. 0: the walk ends here, whole up to here. -1: torn. */
static int hold(struct walk *w, uint64_t address, struct walk_bytes *bytes)
{
    if (walk_held(w, address, bytes)) {
        return 1;
    }
    if (!walk_fetch(w, address)) {
        return -1;
    }
    if (w->unreadable || w->batches == WALK_BATCHES_MAX) {
        return 0;
    }
    return walk_held(w, address, bytes) ? 1 : -1;
}

enum runtime_end walk_frames(struct walk *w)
{
    uint64_t address = w->chain.leaf, seen = 0;
    uint32_t steps = 0, lap = 64;
    struct walk_bytes bytes;
    int held = 1;
    while (address != 0 && address != w->chain.base && steps < RUNTIME_WALK_MAX) {
        held = hold(w, address, &bytes);
        if (held <= 0) {
            break;
        }
        uint64_t here = address;
        /* a ring is met again within twice its length */
        if (here == seen || !take(w, here, &bytes, &address)) {
            return RUNTIME_TORN;
        }
        if (++steps == lap) {
            seen = here;
            lap *= 2;
        }
    }
    if (held < 0 || w->unreadable) {
        return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
    }
    finish(w, held == 1 && steps < RUNTIME_WALK_MAX);
    return w->emitted != 0 ? RUNTIME_COMPLETE : RUNTIME_EMPTY;
}

/* ---- the plan ---- */

static bool met(const struct walk *w, uint64_t address)
{
    for (uint32_t i = 0; i < w->outside.count; i++) {
        if (w->outside.at[i] == address) {
            return true;
        }
    }
    return false;
}

/* How many root-most frames are those of the stack before. */
static uint32_t common_tail(const struct walk *w)
{
    const struct python_plan *plan = w->plan;
    uint32_t tail = 0, most = least(plan->chain_count, w->outside.count);
    while (tail < most && plan->outside[plan->chain_count - 1 - tail] ==
                              w->outside.at[w->outside.count - 1 - tail]) {
        tail++;
    }
    return tail;
}

/* The last stack's frames in their order; behind them some that may come back. */
void walk_remember_outside(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t extra[PLAN_EXTRAS];
    uint32_t extras = 0, count = w->outside.count, tail = common_tail(w);
    if (plan->chain_count == count && tail == count) {
        return;
    }
    for (uint32_t i = 0; i < plan->outside_count && extras < PLAN_EXTRAS; i++) {
        bool stays = i < plan->chain_count && i >= plan->chain_count - tail;
        if (!stays && !met(w, plan->outside[i])) {
            extra[extras++] = plan->outside[i];
        }
    }
    extras = least(extras, PLAN_OUTSIDE - count);
    memcpy(plan->outside, w->outside.at, count * sizeof extra[0]);
    memcpy(plan->outside + count, extra, extras * sizeof extra[0]);
    plan->chain_count = (uint16_t)count;
    plan->outside_count = (uint16_t)(count + extras);
    walk_sort(plan->outside, plan->outside_count, plan->order);
}
