/*
 * Which PyThreadState is a thread's: all are checked until it is found, and the plan remembers
 * it. A long list is searched over several samples, because the thread waits.
 */
#include "runtime/python/walk.h"

enum {
    SEARCH_BATCHES = 40,     /* of one sample */
    MISSED_SAMPLES = 100,    /* before an unknown thread is looked for again */
    NEWER = 8,               /* threads checked that are newer than the last search */
    ACTIVE_BIT = 0x10,       /* in the status, 3.12 on */
    STATE_BYTES = 512,       /* 3.11's PyThreadState, more or less */
};

static bool by_pthread(const struct walk *w)
{
    return !has(w->layout->thread.native_thread_id);
}

static bool tid_is(const struct walk *w, const unsigned char *state)
{
    if (by_pthread(w)) {
        return (uint32_t)w->word[WORD_TID] == w->tid;
    }
    return load_u64(state + w->layout->thread.native_thread_id) == w->tid;
}

bool walk_is_thread(const struct walk *w)
{
    const struct python_layout *l = w->layout;
    return load_u64(w->thread + l->thread.interp) == w->plan->interp && tid_is(w, w->thread) &&
           (!by_pthread(w) || load_u64(w->thread + l->thread.thread_id) == w->plan->pthread);
}

bool walk_is_active(const struct walk *w, uint64_t address, const unsigned char *state)
{
    if (has(w->layout->thread.status)) {
        return (load_u32(state + w->layout->thread.status) & ACTIVE_BIT) != 0;
    }
    return w->word[WORD_CURRENT] == address;
}

/* ---- what was found ---- */

static enum runtime_end take_found(struct walk *w, uint64_t address, uint64_t interp,
                                   uint64_t threads)
{
    const struct python_layout *l = w->layout;
    struct python_plan *plan = w->plan;
    plan->thread = address;
    plan->interp = interp;
    plan->threads = threads;
    plan->pthread = by_pthread(w) ? load_u64(w->thread + l->thread.thread_id) : 0;
    plan->missed = plan->search.count = 0;
    plan->search.interp = plan->search.thread = plan->search.found = 0;
    if (l->frames == PYTHON_FRAMES_CFRAME) {
        plan->cframe = load_u64(w->thread + l->thread.frame);
    }
    if (has(l->thread.chunk)) {
        plan->chunk = load_u64(w->thread + l->thread.chunk);
        plan->top = load_u64(w->thread + l->thread.top);
    }
    return RUNTIME_COMPLETE;
}

static enum runtime_end forget_search(struct walk *w, enum runtime_end end)
{
    w->plan->search.interp = w->plan->search.thread = w->plan->search.found = 0;
    w->plan->search.count = 0;
    return end;
}

/* ---- reading ---- */

struct interp {
    uint64_t next, threads, number;
};

static bool read_interp(struct walk *w, uint64_t address, struct interp *out)
{
    const struct python_layout *l = w->layout;
    *out = (struct interp){0};
    w->pieces = 0;
    (void)walk_ask(w, address + l->interp.next, &out->next, 8);
    (void)walk_ask(w, address + l->interp.threads, &out->threads, 8);
    if (has(l->interp.id)) {
        (void)walk_ask(w, address + l->interp.id, &out->number, 8);
    }
    return walk_read(w) && w->pieces >= 2 && w->piece[0].got == 8 && w->piece[1].got == 8;
}

/* One state into `thread`, and its tid where libc keeps it. */
static bool read_state(struct walk *w, uint64_t address, uint64_t interp)
{
    const struct python_layout *l = w->layout;
    w->pieces = 0;
    if (walk_ask(w, address, w->thread, l->thread.bytes) == 0 || !walk_read(w) ||
        w->piece[0].got != l->thread.bytes ||
        load_u64(w->thread + l->thread.interp) != interp) {
        return false;
    }
    if (by_pthread(w)) {
        uint64_t pthread = load_u64(w->thread + l->thread.thread_id);
        w->pieces = 0;
        w->word[WORD_TID] = 0;
        walk_ask_word(w, WORD_TID, pthread + w->python->tid_in_pthread, 4);
        return walk_read(w);
    }
    return true;
}

/* Up to 3.11 the state of a thread that is being started has its parent's id for a moment. It has
 * no frame then (and 3.11's first _PyCFrame lies in the state itself). */
static bool has_run(const struct walk *w, uint64_t address)
{
    uint64_t frame = load_u64(w->thread + w->layout->thread.frame);
    switch (w->layout->frames) {
    case PYTHON_FRAMES_HEAP:
        return frame != 0;
    case PYTHON_FRAMES_CFRAME:
        return has(w->layout->thread.status) || frame - address >= STATE_BYTES;
    default:
        return true;
    }
}

/* ---- the search ---- */

/* The thread's state among one interpreter's. NO_THREAD: not there; COMPLETE: found, and none
 * better is to be looked for; TORN: to be continued, or begun again, with the next sample. */
static enum runtime_end search_threads(struct walk *w, uint64_t interp, uint64_t first)
{
    struct python_plan *plan = w->plan;
    uint64_t address = plan->search.thread != 0 ? plan->search.thread : first;
    for (; address != 0; address = load_u64(w->thread + w->layout->thread.next)) {
        plan->search.thread = address;
        if (w->batches + 2 > SEARCH_BATCHES) {
            return RUNTIME_TORN;
        }
        if (plan->search.count++ > PYTHON_THREADS_MAX) {
            plan->missed = MISSED_SAMPLES;
            return forget_search(w, RUNTIME_NO_THREAD);
        }
        if (!read_state(w, address, interp)) {
            return forget_search(w, RUNTIME_TORN);
        }
        if (!tid_is(w, w->thread)) {
            continue;
        }
        if (plan->several ? walk_is_active(w, address, w->thread) : has_run(w, address)) {
            return take_found(w, address, interp, first);
        }
        plan->search.found = plan->search.found != 0 ? plan->search.found : address;
    }
    plan->search.thread = 0;
    return RUNTIME_NO_THREAD;
}

/* None of the thread's states is active: the first that was met. */
static enum runtime_end settle(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t address = plan->search.found, interp;
    struct interp words;
    w->pieces = 0;
    if (address == 0 || walk_ask(w, address, w->thread, w->layout->thread.bytes) == 0) {
        plan->missed = MISSED_SAMPLES;
        return forget_search(w, RUNTIME_NO_THREAD);
    }
    if (!walk_read(w) || w->piece[0].got != w->layout->thread.bytes) {
        return forget_search(w, RUNTIME_TORN);
    }
    interp = load_u64(w->thread + w->layout->thread.interp);
    if (!read_interp(w, interp, &words)) {
        return forget_search(w, RUNTIME_TORN);
    }
    plan->number = (uint32_t)words.number;
    return take_found(w, address, interp, 0);
}

static enum runtime_end search(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t interp = plan->search.interp != 0 ? plan->search.interp : plan->head;
    struct interp words;
    for (unsigned i = 0; interp != 0 && i < PYTHON_INTERPRETERS_MAX; i++) {
        plan->search.interp = interp;
        if (w->batches + 1 > SEARCH_BATCHES) {
            return RUNTIME_TORN;
        }
        if (!read_interp(w, interp, &words)) {
            return forget_search(w, RUNTIME_TORN);
        }
        plan->several |= words.next != 0;
        plan->number = (uint32_t)words.number;
        plan->threads = interp == w->python->interp ? words.threads : plan->threads;
        enum runtime_end end = search_threads(w, interp, words.threads);
        if (end != RUNTIME_NO_THREAD || plan->missed != 0) {
            return end;
        }
        interp = words.next;
    }
    return settle(w);
}

void walk_find_newer(struct walk *w)
{
    uint64_t address = w->word[WORD_THREADS], known = w->plan->threads;
    w->plan->threads = address;
    for (int i = 0; i < NEWER && address != 0 && address != known; i++) {
        if (address == w->plan->thread || !read_state(w, address, w->plan->interp)) {
            return;
        }
        if (tid_is(w, w->thread) && has_run(w, address)) {
            (void)take_found(w, address, w->plan->interp, w->plan->threads);
            return;
        }
        address = load_u64(w->thread + w->layout->thread.next);
    }
}

/* The heads of the lists: when both are as they were, a missing thread is still missing. */
static bool read_heads(struct walk *w, uint64_t *threads)
{
    const struct python_layout *l = w->layout;
    w->pieces = 0;
    *threads = w->word[WORD_HEAD] = w->word[WORD_CURRENT] = 0;
    walk_ask_word(w, WORD_HEAD, w->python->head, 8);
    walk_ask_word(w, WORD_CURRENT, w->python->current, 8);
    (void)walk_ask(w, w->python->interp + l->interp.threads, threads, 8);
    return walk_read(w) && w->pieces != 0 && w->piece[0].got == 8;
}

enum runtime_end walk_find_thread(struct walk *w)
{
    struct python_plan *plan = w->plan;
    uint64_t threads;
    if (!read_heads(w, &threads)) {
        return RUNTIME_UNREADABLE;
    }
    bool same = plan->head == w->word[WORD_HEAD] && plan->threads == threads;
    if (plan->missed != 0 && same) {
        plan->missed--;
        return RUNTIME_NO_THREAD;
    }
    if (plan->head != w->word[WORD_HEAD]) {
        (void)forget_search(w, RUNTIME_TORN);
        plan->several = false;
    }
    plan->missed = 0;
    plan->head = w->word[WORD_HEAD];
    plan->threads = threads;
    enum runtime_end end = search(w);
    return w->unreadable ? RUNTIME_UNREADABLE : end;
}
