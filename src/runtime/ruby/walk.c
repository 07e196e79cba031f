/* One sample of one thread (walk.h): asks for everything that the plan predicts in one batch, walks the frames, tries
 * again when the stack was torn, and fills in marks (lock, garbage collector). Runs in catchers while the thread
 * waits, so it allocates nothing. */
#include "runtime/ruby/walk.h"

enum {
    LEARN_MAX = 6,      /* batches that only show that the plan was wrong */
    SLACK = 6,          /* frames that the stack may have grown by, */
    SLACK_VALUES = 512, /* with so many bytes */
    EC_STACK = 0, EC_WORDS = 8, EC_CFP = 16,
    STACK_MAX = 1 << 30,
    DURING_GC = 1 << 5,
};

/* ---- the first batch ---- */

struct first {
    uint32_t thread, ec, tid, pthread;
};

static void ask_thread(struct walk *w, struct first *f)
{
    const struct ruby_layout *l = w->layout;
    const struct ruby_plan *plan = w->plan;
    uint64_t running = has(l->vm.running)       ? w->ruby->vm + l->vm.running
                       : has(l->ractor.running) ? plan->ractor + l->ractor.running
                                                : 0;
    w->running = w->cfp_between = w->cfp_last = w->gc_flags = 0;
    f->pthread = plan->native != 0 ? stack_ask(w, plan->native + l->thread.pthread, &w->pthread, 8) : 0;
    f->tid = stack_ask(w, plan->pthread + w->ruby->tid_in_pthread, &w->tid_there, 4);
    (void)stack_ask(w, w->ruby->gc_flags, &w->gc_flags, 4);
    (void)stack_ask(w, running, &w->running, 8);
    f->thread = stack_ask(w, plan->thread, w->thread, sizeof w->thread);
}

/* What brackets the frames stands next to them. */
static bool read_first(struct walk *w, struct first *f)
{
    const struct ruby_layout *l = w->layout;
    const struct ruby_plan *plan = w->plan;
    w->pieces = w->slots.count = w->slots.fetched = 0;
    ask_thread(w, f);
    for (uint32_t i = 0; i < plan->escaped_count; i++) {
        stack_add_slot(w, plan->escaped[i]);
    }
    f->ec = stack_ask(w, plan->ec, w->ec, ruby_ec_bytes(l));
    uint64_t slack = (uint64_t)SLACK * l->frame_bytes;
    uint64_t low = plan->cfp > plan->stack + slack ? plan->cfp - slack : plan->stack;
    low = plan->limit - (plan->limit - low) / l->frame_bytes * l->frame_bytes; /* where a frame begins */
    if (plan->limit != 0) {
        stack_ask_window(w, low, plan->top + SLACK_VALUES);
    }
    stack_ask_slots(w); /* some are values of the stack: between the copies, like the others */
    if (w->twice && plan->limit != 0) {
        (void)stack_ask(w, plan->ec + EC_CFP, &w->cfp_between, 8);
        stack_ask_window_again(w);
        (void)stack_ask(w, plan->ec + EC_CFP, &w->cfp_last, 8);
    }
    stack_ask_checks(w);
    return stack_read(w);
}

/* ---- what came ---- */

static bool is_thread(const struct walk *w, const struct first *f)
{
    const struct ruby_layout *l = w->layout;
    const struct ruby_plan *plan = w->plan;
    bool by_native = has(l->thread.native);
    uint64_t there = by_native ? load_u64(w->thread + l->thread.native) : load_u64(w->thread + l->thread.pthread);
    return stack_got(w, f->thread) && load_u64(w->thread + l->thread.vm) == w->ruby->vm &&
           there == (by_native ? plan->native : plan->pthread) &&
           (!by_native || (stack_got(w, f->pthread) && w->pthread == plan->pthread)) && stack_got(w, f->tid) &&
           w->tid_there == w->tid;
}

/* Was what the batch went by right? If not the plan is corrected, for another batch. Fibers change the execution
 * context. */
static bool plan_holds(struct walk *w, const struct first *f)
{
    struct ruby_plan *plan = w->plan;
    uint64_t ec = ruby_ec_of(w->layout, plan->thread, w->thread);
    if (ec != plan->ec || !stack_got(w, f->ec)) {
        plan->ec = ec;
        plan->limit = 0;
        return false;
    }
    uint64_t stack = load_u64(w->ec + EC_STACK), words = load_u64(w->ec + EC_WORDS), cfp = load_u64(w->ec + EC_CFP);
    uint64_t limit = words < STACK_MAX / 8 ? stack + 8 * words : stack;
    bool reaches = plan->limit != 0 && cfp >= w->window.low && cfp <= limit;
    if (stack == plan->stack && limit == plan->limit && (reaches || stack == 0)) {
        return true;
    }
    bool inside = cfp >= stack && cfp <= limit;
    plan->stack = stack;
    plan->limit = limit;
    plan->top = plan->cfp = inside ? cfp : limit;
    return false;
}

/* Do the values that came end where the leaf's do? After a plan was learnt they are those of the gap above them, and
 * each environment would have to be read by itself. If not the plan is corrected. */
static bool values_reach(struct walk *w)
{
    struct ruby_plan *plan = w->plan;
    const struct walk_window *v = &w->window;
    uint64_t leaf = load_u64(w->ec + EC_CFP);
    if (plan->stack == 0) {
        return true;
    }
    stack_take_window(w);
    if (leaf < v->low || leaf + w->layout->frame_bytes > v->limit) {
        return true;
    }
    uint64_t top = load_u64(stack_frame(w, leaf) + 8);
    if (top <= plan->stack || top >= leaf || (top > v->values_low && top <= v->values_limit)) {
        return true;
    }
    plan->top = top;
    return false;
}

/* The first batch, until the plan is right about where to read. */
static enum runtime_end read_thread(struct walk *w)
{
    struct first f;
    bool is_last = false;
    for (int i = 0; i < LEARN_MAX; i++) {
        enum runtime_end end = w->plan->thread == 0 ? stack_find_thread(w) : RUNTIME_COMPLETE;
        if (end != RUNTIME_COMPLETE) {
            return end;
        }
        if (!read_first(w, &f)) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        stack_take_slots(w);
        if (!is_thread(w, &f)) {
            w->plan->thread = 0;
        } else if (plan_holds(w, &f)) {
            if (values_reach(w) || is_last) {
                return RUNTIME_COMPLETE;
            }
            is_last = true;
        }
    }
    return RUNTIME_TORN;
}

/* Is there one stack to walk: all of it, or the part of it that stood? */
static bool has_stood(struct walk *w)
{
    uint64_t leaf = load_u64(w->ec + EC_CFP);
    w->cfp = leaf;
    if (!w->twice) {
        return true;
    }
    w->cfp = stack_common(w);
    w->is_part = w->cfp != leaf || w->cfp_between != leaf || w->cfp_last != leaf;
    return w->cfp != 0 && (!w->is_part || w->takes_parts);
}

/* Where the next sample's values end, by the leaf; a part tells nothing. */
static void remember_leaf(struct walk *w)
{
    struct ruby_plan *plan = w->plan;
    uint64_t leaf = load_u64(w->ec + EC_CFP);
    plan->cfp = leaf;
    if (!w->is_part && leaf >= w->window.low && leaf < w->window.limit) {
        uint64_t top = load_u64(stack_frame(w, leaf) + 8);
        plan->top = top > plan->stack && top < leaf ? top : leaf;
    }
}

static enum runtime_end attempt(struct walk *w)
{
    w->out->count = 0;
    w->is_part = false;
    enum runtime_end end = read_thread(w);
    if (end != RUNTIME_COMPLETE) {
        return end;
    }
    w->out->marks = w->running == w->plan->thread ? RUNTIME_HOLDS_LOCK : 0;
    w->out->marks |= (w->gc_flags & DURING_GC) != 0 ? RUNTIME_IN_GC : 0;
    if (w->plan->stack == 0) {
        return RUNTIME_EMPTY;
    }
    stack_take_checks(w);
    if (!ruby_is_ec_of(w->layout, w->ec, w->plan->thread) || !has_stood(w)) {
        return RUNTIME_TORN;
    }
    remember_leaf(w);
    end = stack_frames(w);
    return end == RUNTIME_COMPLETE ? stack_check(w) : end;
}

void ruby_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
               struct runtime_stack *out)
{
    struct walk w;
    w.ruby = state;
    w.layout = &w.ruby->layout;
    w.plan = plan;
    w.memory = memory;
    w.out = out;
    w.tid = thread->tid;
    w.twice = !thread->proven_later;
    w.takes_parts = thread->takes_parts;
    w.unreadable = w.has_searched = false;
    w.batches = w.failed = 0;
    out->count = out->marks = out->retries = out->task_bytes = 0;
    out->interpreter = 0;
    stack_begin_checks(&w);
    enum runtime_end end = attempt(&w);
    while (end == RUNTIME_TORN && w.twice && out->retries < WALK_RETRIES_MAX && w.batches < WALK_BATCHES_MAX / 2) {
        out->retries++;
        end = attempt(&w);
    }
    const struct walk_ending ending = {end, w.batches, w.is_part, (w.plan->short_lived | w.plan->hurry) != 0};
    walk_end(&ending, out);
}
