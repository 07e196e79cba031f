/* One sample of one thread (walk.h): asks for everything that the plan predicts in one batch, walks the contexts, tries
 * again when the stack was torn. Runs in catchers while the thread waits, so it allocates nothing. The thread that
 * began the process runs the first interpreter; others are found by thread.c, or run none that is known. */
#include "runtime/perl/walk.h"

enum { LEARN_MAX = 4 /* batches that only show that the plan was wrong */ };

static bool is_right(const struct walk *w)
{
    bool good = w->plan->count > 0 && calls_got(w, w->words[0].cop_piece) && calls_got(w, w->words[0].info_piece) &&
                w->words[0].info == w->plan->info[0].at;
    for (uint32_t i = 0; good && i < w->plan->count; i++) {
        good = calls_is_as_planned(w, i, 0) && (!w->twice || calls_is_as_planned(w, i, 1));
    }
    return good;
}

/* The first batch, until the plan is right about where to read. */
static enum runtime_end read_thread(struct walk *w)
{
    for (int i = 0; i < LEARN_MAX; i++) {
        if (!calls_read_first(w)) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        if (!calls_is_own(w)) {
            memset(w->plan, 0, sizeof *w->plan);
            return RUNTIME_NO_THREAD;
        }
        bool right = is_right(w);
        calls_remember(w);
        if (right) {
            return RUNTIME_COMPLETE;
        }
        if (!calls_got(w, w->words[0].info_piece)) {
            return RUNTIME_UNREADABLE;
        }
        enum runtime_end end = calls_learn(w, w->words[0].info);
        if (end != RUNTIME_COMPLETE) {
            w->plan->count = 0;
            return end;
        }
    }
    w->plan->count = 0; /* the next sample begins anew */
    return RUNTIME_TORN;
}

static enum runtime_end attempt(struct walk *w)
{
    w->out->count = w->emitted = 0;
    w->is_part = false;
    w->last = NULL;
    enum runtime_end end = read_thread(w);
    if (end != RUNTIME_COMPLETE) {
        return end;
    }
    if (!calls_begin(w)) {
        return RUNTIME_TORN;
    }
    end = calls_frames(w);
    end = end == RUNTIME_COMPLETE ? calls_places(w) : end;
    return end == RUNTIME_COMPLETE && w->out->count == 0 ? RUNTIME_EMPTY : end;
}

/* Which interpreter the thread runs; false: none that is known. */
static bool choose(struct walk *w, uint32_t tid)
{
    struct perl_thread *own = &w->plan->thread;
    own->tid = tid;
    if (tid == w->perl->tid) {
        w->interpreter = w->perl->main;
        return true;
    }
    if (w->perl->interpreter == 0 || (own->interpreter == 0 && !perl_find_thread(w->perl, w->memory, own))) {
        return false;
    }
    w->interpreter = perl_interpreter_at(w->layout, own->interpreter);
    return w->interpreter.at != w->perl->main.at;
}

void perl_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
               struct runtime_stack *out)
{
    struct walk w;
    w.perl = state;
    w.layout = &w.perl->layout;
    w.plan = plan;
    w.memory = memory;
    w.out = out;
    w.registers = thread->registers;
    w.twice = !thread->proven_later;
    w.takes_parts = thread->takes_parts;
    w.unreadable = w.is_part = w.short_lived = false;
    w.batches = w.failed = 0;
    out->count = out->marks = out->retries = out->task_bytes = 0;
    out->interpreter = 0;
    enum runtime_end end = choose(&w, thread->tid) ? attempt(&w) : RUNTIME_NO_THREAD;
    while (end == RUNTIME_TORN && w.twice && out->retries < WALK_RETRIES_MAX && w.batches < WALK_BATCHES_MAX / 2) {
        out->retries++;
        end = attempt(&w);
    }
    const struct walk_ending ending = {end, w.batches, w.is_part, w.short_lived};
    walk_end(&ending, out);
}
