/* One sample of one thread (walk.h): asks for everything that the plan predicts in one batch, walks the frames, and
 * tries again when the stack was torn. A process that runs no PHP at this moment, like a worker without a request, is
 * empty. Runs in catchers while the thread waits, so it allocates nothing. */
#include "runtime/php/walk.h"

enum {
    LEARN_MAX = 6, /* batches that only show that the plan was wrong */
    SLACK = 2048,  /* bytes that the stack may have grown by */
};

/* ---- the first batch ---- */

/* Up to some way behind the frame that runs, or behind the values of the last one that lies in the page. */
static void set_window(struct walk *w)
{
    const struct php_plan *p = w->plan;
    struct walk_window *v = &w->window;
    bool inside = p->current >= p->page && p->current < p->page_limit;
    uint64_t behind = inside ? p->current + PHP_FRAME_BYTES + SLACK : p->top;
    v->limit = least(behind, p->page_limit);
    v->low = most(p->page + PHP_PAGE_HEAD, most(v->limit, WALK_WINDOW) - WALK_WINDOW);
    v->limit = v->above = most(v->limit, v->low);
}

static void ask_frames(struct walk *w, unsigned copy)
{
    struct walk_window *v = &w->window;
    v->copy = copy;
    v->piece[copy] = php_stack_ask(w, v->low, v->bytes[copy], (uint32_t)(v->limit - v->low));
    for (uint32_t i = 0; i < w->lone_count; i++) {
        w->lone[i].piece[copy] = php_stack_ask(w, w->lone[i].address, w->lone[i].bytes[copy], PHP_FRAME_BYTES);
    }
}

/* False: nothing can be read any more, or the root is not there. */
static bool read_first(struct walk *w)
{
    const struct php_plan *plan = w->plan;
    uint64_t current = w->root_at + w->php->layout.current;
    w->pieces = 0;
    w->lone_count = plan->lone_count;
    for (uint32_t i = 0; i < w->lone_count; i++) {
        w->lone[i].address = plan->lone[i];
        w->lone[i].was_met = false;
    }
    set_window(w);
    uint32_t root = php_stack_ask(w, w->root_at, w->root, sizeof w->root);
    php_stack_ask_thread(w);
    php_stack_ask_request(w);
    ask_frames(w, 0);
    uint32_t between = 0, last = 0;
    if (w->twice) {
        between = php_stack_ask(w, current, &w->between, 8);
        ask_frames(w, 1);
        last = php_stack_ask(w, current, &w->last, 8);
    }
    php_stack_ask_functions(w);
    return php_stack_read(w) && php_stack_got(w, root) &&
           (!w->twice || (php_stack_got(w, between) && php_stack_got(w, last)));
}

/* ---- what came ---- */

static void take_frames(struct walk *w)
{
    for (unsigned copy = 0; copy < 2; copy++) {
        bool asked = copy <= w->window.copy;
        w->window.is_there[copy] = asked && php_stack_got(w, w->window.piece[copy]);
        for (uint32_t i = 0; i < w->lone_count; i++) {
            w->lone[i].is_there[copy] = asked && php_stack_got(w, w->lone[i].piece[copy]);
        }
    }
}

static void add_lone(struct php_plan *plan, uint64_t address)
{
    for (uint32_t i = 0; i < plan->lone_count; i++) {
        if (plan->lone[i] == address) {
            return;
        }
    }
    uint32_t at = plan->lone_count < WALK_LONE ? plan->lone_count++ : 0;
    plan->lone[at] = address;
}

/* Was what the batch went by right? If not the plan is corrected, for another batch. */
static bool plan_holds(struct walk *w)
{
    struct php_plan *plan = w->plan;
    uint64_t current = load_u64(w->root + w->php->layout.current), page = load_u64(w->root + ROOT_PAGE),
             limit = load_u64(w->root + ROOT_LIMIT), before = plan->page;
    plan->current = current;
    plan->page = page;
    plan->page_limit = limit > page ? limit : page;
    plan->top = load_u64(w->root + ROOT_TOP);
    if (current == 0) {
        return true;
    }
    if (page == before && php_stack_frame(w, 0, current) != NULL &&
        php_stack_frame(w, w->window.copy, current) != NULL) {
        return true;
    }
    if (current < page || current >= plan->page_limit) {
        add_lone(plan, current);
    }
    return false;
}

/* The first batch, until the plan is right about where to read. */
static enum runtime_end read_stack(struct walk *w)
{
    for (int i = 0; i < LEARN_MAX; i++) {
        if (!read_first(w)) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        if (!php_stack_is_thread(w)) {
            w->plan->entry = 0;
            return RUNTIME_NO_THREAD;
        }
        take_frames(w);
        bool has_request = php_stack_has_request(w);
        bool idle = load_u64(w->root + w->php->layout.current) == 0;
        if (plan_holds(w) && (idle || has_request)) {
            return idle ? RUNTIME_EMPTY : RUNTIME_COMPLETE;
        }
    }
    return RUNTIME_TORN;
}

static enum runtime_end attempt(struct walk *w)
{
    w->out->count = w->met_count = w->head_count = w->line_count = w->generators = 0;
    w->leaf = 0;
    w->is_part = false;
    enum runtime_end end = read_stack(w);
    if (end != RUNTIME_COMPLETE) {
        return end;
    }
    php_stack_take_functions(w);
    uint64_t from = load_u64(w->root + w->php->layout.current);
    if (w->twice) {
        bool whole;
        from = php_stack_common(w, &whole);
        w->is_part = !whole;
        if (from == 0 || (w->is_part && !w->takes_parts)) {
            return RUNTIME_TORN;
        }
    }
    end = php_stack_frames(w, from);
    return end == RUNTIME_COMPLETE ? php_stack_functions(w) : end;
}

void php_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
              struct runtime_stack *out)
{
    struct walk w;
    w.php = state;
    w.plan = plan;
    w.memory = memory;
    w.tid = thread->tid;
    w.out = out;
    w.registers = thread->registers;
    w.twice = !thread->proven_later;
    w.takes_parts = thread->takes_parts;
    w.unreadable = w.is_part = false;
    w.batches = 0;
    out->count = out->marks = out->retries = out->task_bytes = 0;
    out->interpreter = 0;
    enum runtime_end end = RUNTIME_NO_THREAD;
    if (php_stack_find_thread(&w)) {
        end = attempt(&w);
    }
    while (end == RUNTIME_TORN && w.twice && out->retries < WALK_RETRIES_MAX && w.batches < WALK_BATCHES_MAX / 2) {
        out->retries++;
        end = attempt(&w);
    }
    /* between two requests functions are freed, if no cache keeps them */
    w.plan->short_lived = end == RUNTIME_EMPTY ? SHORT_LIVED : w.plan->short_lived - (w.plan->short_lived > 0);
    if (end == RUNTIME_COMPLETE) {
        php_stack_tell_request(&w);
    }
    const struct walk_ending ending = {end, w.batches, w.is_part, w.plan->short_lived > 0};
    walk_end(&ending, out);
}
