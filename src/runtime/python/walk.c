/* One sample of one thread (walk.h): asks for everything that the plan predicts in one batch, walks the chain,
 * tries again when the stack was torn, and fills in marks (lock, garbage collector). Runs in catchers while the
 * thread waits, so it allocates nothing. */
#include "runtime/python/walk.h"

enum {
    LEARN_MAX = 4,           /* batches that only show that the plan was wrong */
    SETTLED_SAMPLES = 4,
    HOLDS_GIL_3_13 = 0x20,   /* in the status */
};

/* The end of a field; 0 when there is none. */
static uint32_t end_of(uint32_t offset, uint32_t bytes)
{
    return has(offset) ? offset + bytes : 0;
}

/* ---- what a layout asks for ---- */

static void measure_frame(struct walk *w)
{
    const struct python_layout *l = w->layout;
    uint32_t limit;
    w->view.link_first = least(l->frame.previous, l->frame.code);
    w->view.link_bytes = most(l->frame.previous, l->frame.code) + 8 - w->view.link_first;
    w->view.first = least(w->view.link_first, l->frame.position);
    limit = most(w->view.link_first + w->view.link_bytes,
                 l->frame.position + (l->frames == PYTHON_FRAMES_HEAP ? 4 : 8));
    limit = most(limit, end_of(l->frame.owner, 1));
    limit = most(limit, end_of(l->frame.is_entry, 1));
    limit = most(limit, end_of(l->frame.tlbc_index, 4));
    w->view.first = least(w->view.first, least(l->frame.owner, l->frame.is_entry));
    w->view.first = least(w->view.first, l->frame.tlbc_index);
    w->view.bytes = limit - w->view.first;
}

static bool thread_fits(const struct python_layout *l)
{
    uint32_t limit = most(end_of(l->thread.next, 8), end_of(l->thread.interp, 8));
    limit = most(limit, most(end_of(l->thread.frame, 8), end_of(l->thread.thread_id, 8)));
    limit = most(limit, most(end_of(l->thread.native_thread_id, 8), end_of(l->thread.chunk, 8)));
    limit = most(limit, most(end_of(l->thread.top, 8), end_of(l->thread.status, 4)));
    limit = most(limit, most(end_of(l->thread.holds_gil, 4), end_of(l->thread.gil_requested, 4)));
    limit = most(limit, end_of(l->thread.base_frame, 8));
    return limit <= l->thread.bytes && l->thread.bytes <= WALK_THREAD_MAX;
}

/* Layouts come partly from the process itself: not to be trusted. */
static bool layout_fits(const struct walk *w)
{
    const struct python_layout *l = w->layout;
    uint32_t code = most(end_of(l->object.type, 8), end_of(l->object.size, 8));
    code = most(code, end_of(l->code.tlbc, 8));
    return thread_fits(l) && w->view.bytes <= WALK_FRAME_MAX && w->view.link_bytes <= WALK_FRAME_MAX &&
           has(l->frame.previous) && has(l->frame.code) && has(l->frame.position) &&
           code <= l->code.bytes && l->code.bytes <= WALK_CODE_MAX;
}

/* ---- the first batch ---- */

struct wanted {
    uint64_t address; /* 0: not there */
    enum walk_word word;
    uint32_t len;
};

enum { WANTED_GROUPS = 3, WANTED_MAX = 5 };

static uint64_t field(uint64_t structure, uint32_t offset)
{
    return structure != 0 && has(offset) ? structure + offset : 0;
}

/* The words beside the thread's state, those of one structure together. */
static void list_wanted(const struct walk *w, struct wanted out[WANTED_GROUPS][WANTED_MAX])
{
    const struct python *py = w->python;
    const struct python_layout *l = w->layout;
    const struct python_plan *plan = w->plan;
    bool by_cframe = l->frames == PYTHON_FRAMES_CFRAME;
    uint32_t gil = by_cframe ? l->interp.gil : LAYOUT_NONE;
    uint64_t pthread = has(l->thread.native_thread_id) ? 0 : plan->pthread;
    struct wanted all[WANTED_GROUPS][WANTED_MAX] = {
        {{py->head, WORD_HEAD, 8},
         {py->current, WORD_CURRENT, 8},
         {field(py->runtime, l->runtime.finalizing), WORD_FINALIZING, 8}},
        {{field(plan->interp, l->interp.threads), WORD_THREADS, 8},
         {field(plan->interp, l->interp.collecting), WORD_COLLECTING, 4},
         {field(plan->interp, l->interp.code_generation), WORD_GENERATION, 8},
         {field(plan->interp, l->interp.tlbc_generation), WORD_TLBC_GENERATION, 4},
         {field(plan->interp, gil), WORD_GIL, 8}},
        {{by_cframe ? field(plan->gil, l->interp.gil_holder) : 0, WORD_GIL_HOLDER, 8},
         {by_cframe ? field(plan->gil, l->interp.gil_locked) : 0, WORD_GIL_LOCKED, 4},
         {field(pthread, py->tid_in_pthread), WORD_TID, 4}},
    };
    memcpy(out, all, sizeof all);
}

/* One piece for those of a group that are near the first of them; the others for themselves. */
static void ask_group(struct walk *w, int group, const struct wanted wanted[WANTED_MAX])
{
    uint64_t low = UINT64_MAX, len = 0;
    for (int i = 0; i < WANTED_MAX; i++) {
        uint64_t address = wanted[i].address;
        low = address != 0 && address < low ? address : low;
    }
    for (int i = 0; i < WANTED_MAX; i++) {
        uint64_t end = wanted[i].address + wanted[i].len - low;
        if (wanted[i].address != 0 && end > WALK_NEAR_MAX) {
            walk_ask_word(w, wanted[i].word, wanted[i].address, wanted[i].len);
        } else if (wanted[i].address != 0 && end > len) {
            len = end;
        }
    }
    w->near[group] = walk_ask(w, low, w->arena + w->room.used, (uint32_t)len);
    w->room.used += ((uint32_t)len + 7) & ~7U;
}

static void ask_words(struct walk *w)
{
    struct wanted wanted[WANTED_GROUPS][WANTED_MAX];
    list_wanted(w, wanted);
    for (int g = 0; g < WANTED_GROUPS; g++) {
        ask_group(w, g, wanted[g]);
    }
}

static void take_words(struct walk *w)
{
    struct wanted wanted[WANTED_GROUPS][WANTED_MAX];
    list_wanted(w, wanted);
    for (int g = 0; g < WANTED_GROUPS; g++) {
        const struct memory_piece *piece = w->near[g] != 0 ? &w->piece[w->near[g] - 1] : NULL;
        for (int i = 0; i < WANTED_MAX && piece != NULL; i++) {
            const struct wanted *word = &wanted[g][i];
            uint64_t offset = word->address - piece->address;
            if (word->address != 0 && offset < piece->got && piece->got - offset >= word->len) {
                memcpy(&w->word[word->word], (unsigned char *)piece->out + offset, word->len);
            }
        }
    }
}

/* What brackets the frames stands as near to them as can be: the thread's state, whose top pointer
 * is read again behind them. */
static bool read_first(struct walk *w, uint32_t heads)
{
    const struct python_layout *l = w->layout;
    struct python_plan *plan = w->plan;
    bool by_cframe = l->frames == PYTHON_FRAMES_CFRAME;
    w->pieces = w->head.count = 0;
    memset(w->word, 0, sizeof w->word);
    w->head.bytes = (l->code.bytes + 7) & ~7U;
    w->room.used = heads * w->head.bytes;
    ask_words(w);
    walk_divide(w);
    uint32_t thread = walk_ask(w, plan->thread, w->thread, l->thread.bytes);
    if (by_cframe) {
        walk_ask_word(w, WORD_TOP, plan->cframe + l->thread.cframe_top, 8);
    }
    walk_ask_frames(w);
    if (w->twice) {
        uint64_t top = by_cframe ? plan->cframe + l->thread.cframe_top
                                 : plan->thread + l->thread.frame;
        walk_ask_word(w, WORD_TOP_BETWEEN, top, 8);
        walk_ask_frames_again(w);
    }
    if (by_cframe) {
        walk_ask_word(w, WORD_TOP_LAST, plan->cframe + l->thread.cframe_top, 8);
    }
    if (!by_cframe || w->twice) {
        walk_ask_word(w, WORD_CFRAME_LAST, plan->thread + l->thread.frame, 8);
    }
    if (heads != 0) {
        walk_ask_heads(w);
    }
    walk_ask_task(w);
    if (!walk_read(w) || thread == 0 || w->piece[thread - 1].got != l->thread.bytes) {
        return false;
    }
    take_words(w);
    return true;
}

/* ---- what the state tells ---- */

static bool holds_lock(const struct walk *w)
{
    const struct python_layout *l = w->layout;
    uint64_t thread = w->plan->thread;
    if (has(l->thread.holds_gil)) {
        return load_u32(w->thread + l->thread.holds_gil) != 0;
    }
    if (l->frames == PYTHON_FRAMES_CURRENT) {
        return has(l->thread.status) &&
               (load_u32(w->thread + l->thread.status) & HOLDS_GIL_3_13) != 0;
    }
    if (has(l->interp.gil)) {
        return w->word[WORD_GIL_HOLDER] == thread && (uint32_t)w->word[WORD_GIL_LOCKED] == 1;
    }
    return w->word[WORD_CURRENT] == thread;
}

static void take_marks(struct walk *w)
{
    const struct python_layout *l = w->layout;
    uint8_t marks = holds_lock(w) ? RUNTIME_HOLDS_LOCK : 0;
    if (has(l->thread.gil_requested) && load_u32(w->thread + l->thread.gil_requested) != 0) {
        marks |= RUNTIME_WAITS_LOCK;
    }
    marks |= (uint32_t)w->word[WORD_COLLECTING] != 0 ? RUNTIME_IN_GC : 0;
    w->out->marks = marks;
}

/* The leaf, by the thread's state. */
static void take_top(struct walk *w)
{
    const struct python_layout *l = w->layout;
    uint64_t frame = load_u64(w->thread + l->thread.frame);
    w->chain.leaf = l->frames == PYTHON_FRAMES_CFRAME ? w->word[WORD_TOP] : frame;
    w->chain.base = has(l->thread.base_frame) ? load_u64(w->thread + l->thread.base_frame) : 0;
    w->chain.chunk = has(l->thread.chunk) ? load_u64(w->thread + l->thread.chunk) : 0;
    w->chain.limit = has(l->thread.top) ? load_u64(w->thread + l->thread.top) : 0;
    w->chain.lower = w->chain.limit;
    w->plan->chunk = w->chain.chunk;
    w->plan->top = w->chain.limit;
}

static bool top_stands(const struct walk *w)
{
    if (w->twice && w->word[WORD_TOP_BETWEEN] != w->chain.leaf) {
        return false;
    }
    if (w->layout->frames == PYTHON_FRAMES_CFRAME) {
        return w->word[WORD_TOP] == w->word[WORD_TOP_LAST] &&
               (!w->twice || w->word[WORD_CFRAME_LAST] == w->plan->cframe);
    }
    return w->word[WORD_CFRAME_LAST] == w->chain.leaf;
}

/* Is there one stack to walk: all of it, or the part of it that stood? */
static bool has_stood(struct walk *w)
{
    uint64_t from;
    if (!w->part.wanted || w->chain.leaf == 0 || !walk_common(w, &from)) {
        return top_stands(w);
    }
    w->part.is = from != w->chain.leaf || w->word[WORD_TOP_BETWEEN] != from;
    if (w->part.is) {
        w->chain.leaf = from;
        w->chain.lower = w->chain.limit + 1; /* no top: the next sample's window goes by the real one */
    }
    return from != 0;
}

/* Was what the batch went by right? If not the plan is corrected, for another batch. */
static bool plan_holds(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t cframe = load_u64(w->thread + w->layout->thread.frame);
    uint64_t gil = w->word[WORD_GIL];
    if (w->layout->frames != PYTHON_FRAMES_CFRAME ||
        (cframe == plan->cframe && gil == plan->gil)) {
        return true;
    }
    plan->cframe = cframe;
    plan->gil = gil;
    return false;
}

/* Several interpreters: another state of this thread may be the one that runs. */
static bool is_settled(struct walk *w)
{
    struct python_plan *plan = w->plan;
    if (w->word[WORD_HEAD] != plan->head) {
        return false;
    }
    if (!plan->several || walk_is_active(w, plan->thread, w->thread)) {
        plan->settled = 0;
        return true;
    }
    if (plan->settled == 0) {
        plan->settled = SETTLED_SAMPLES;
        return false;
    }
    plan->settled--;
    return true;
}

/* The first batch, until the plan is right about where to read. */
static enum runtime_end read_thread(struct walk *w)
{
    for (int i = 0; i < LEARN_MAX; i++) {
        if (w->plan->thread == 0) {
            enum runtime_end end = walk_find_thread(w);
            if (end != RUNTIME_COMPLETE) {
                return end;
            }
        }
        bool there = read_first(w, walk_heads(w));
        if (w->unreadable) {
            return RUNTIME_UNREADABLE;
        }
        if (!there || !walk_is_thread(w) || !is_settled(w)) {
            w->plan->thread = 0;
        } else if (plan_holds(w)) {
            take_top(w);
            if (w->chain.leaf != 0 || w->word[WORD_THREADS] == w->plan->threads) {
                return RUNTIME_COMPLETE;
            }
            walk_find_newer(w);
        }
    }
    return RUNTIME_TORN;
}

static void restart(struct walk *w)
{
    w->out->count = w->emitted = w->outside.count = 0;
    w->last = NULL;
    w->chain.joint = w->chain.older = 0;
    w->chain.misses = w->copy_missing = w->chain.recents = 0;
    w->part.is = false;
}

static enum runtime_end attempt(struct walk *w)
{
    restart(w);
    enum runtime_end end = read_thread(w);
    if (end != RUNTIME_COMPLETE) {
        return end;
    }
    take_marks(w);
    walk_take_generation(w);
    walk_take_frames(w);
    walk_take_heads(w);
    walk_take_task(w);
    if (!has_stood(w)) {
        return RUNTIME_TORN;
    }
    if (w->word[WORD_FINALIZING] != 0 || w->chain.leaf == 0) {
        return RUNTIME_EMPTY;
    }
    end = walk_frames(w);
    if (end != RUNTIME_COMPLETE) {
        return end;
    }
    if (!w->part.is) {
        walk_remember_outside(w);
    }
    bool checked = walk_check_codes(w);
    return w->unreadable ? RUNTIME_UNREADABLE : checked ? RUNTIME_COMPLETE : RUNTIME_TORN;
}

/* Positions in a thread's own copies of bytecode need the copies: once they are known, again. */
static enum runtime_end attempt_with_copies(struct walk *w)
{
    enum runtime_end end = attempt(w);
    return end == RUNTIME_COMPLETE && w->copy_missing != 0 ? attempt(w) : end;
}

/* The interpreter's number + 1. Up to 3.12 a state that a thread takes over keeps the number of the thread
 * that made it, so that another state of this one is found: then only one that runs is certain. */
static uint32_t interpreter_of(const struct walk *w)
{
    const struct python_layout *l = w->layout;
    bool certain = l->frames == PYTHON_FRAMES_CURRENT ||
                   walk_is_active(w, w->plan->thread, w->thread);
    return w->plan->several && has(l->interp.id) && certain ? w->plan->number + 1 : 0;
}

/* A frame of a part that only an interpreter loop being entered stands for is none. */
static bool has_part(struct runtime_stack *out)
{
    if (out->count > 0 && (out->frame[0].flags & RUNTIME_FRAME_SHIM) != 0) {
        out->count--;
        memmove(&out->frame[0], &out->frame[1], out->count * sizeof out->frame[0]);
    }
    return out->count > 0;
}

static void finish(struct walk *w, enum runtime_end end)
{
    struct runtime_stack *out = w->out;
    if (end == RUNTIME_COMPLETE && w->part.is && !has_part(out)) {
        end = RUNTIME_TORN;
    }
    if (end == RUNTIME_COMPLETE) {
        walk_name_task(w);
        out->interpreter = interpreter_of(w);
    }
    const struct walk_ending ending = {end, w->batches, w->part.is, w->plan->short_lived != 0};
    walk_end(&ending, out);
}

void python_walk(const void *state, void *plan, const struct runtime_thread *thread,
                 struct memory_batch *memory, struct runtime_stack *out)
{
    struct walk w;
    enum runtime_end end = RUNTIME_UNREADABLE;
    w.python = state;
    w.layout = &w.python->layout;
    w.plan = plan;
    w.memory = memory;
    w.out = out;
    w.tid = thread->tid;
    w.twice = !thread->proven_later;
    w.part.wanted = w.twice && thread->takes_parts;
    w.part.is = false;
    w.unreadable = false;
    w.batches = 0;
    walk_begin_codes(&w);
    walk_begin_task(&w);
    out->count = out->marks = out->retries = out->task_bytes = 0;
    out->interpreter = 0;
    measure_frame(&w);
    if (layout_fits(&w)) {
        end = attempt_with_copies(&w);
    }
    while (end == RUNTIME_TORN && w.twice && out->retries < WALK_RETRIES_MAX &&
           w.batches < WALK_BATCHES_MAX / 2) {
        out->retries++;
        end = attempt_with_copies(&w);
    }
    if (end == RUNTIME_TORN && w.plan->thread != 0 &&
        w.word[WORD_THREADS] != w.plan->threads) {
        w.plan->thread = 0; /* perhaps its state is none any more */
    }
    finish(&w, end);
}
