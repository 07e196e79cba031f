/* A thread by its number for the system, in the lists of all ractors; and those that may be running. Runs in
 * catchers, so it allocates nothing, and a long list is searched through in several samples. What contradicts itself,
 * because threads come and go, is left out. */
#include "runtime/ruby/walk.h"

enum {
    STEPS_MAX = 64,     /* threads and ractors looked at for one sample: three reads each */
    STEPS_ALL = RUBY_THREADS_MAX + RUBY_RACTORS_MAX, /* in all samples: lists may never end */
    MISSED_SAMPLES = 32,
    MISSED_AGAIN = 2,   /* of a thread that was known: it may be back at once, run by another of the system's */
    NEWEST = 6,         /* threads that began last */
};

uint32_t ruby_tid_of(const struct ruby *ruby, struct memory_batch *memory, const unsigned char *thread,
                     uint64_t *native, uint64_t *pthread)
{
    const struct ruby_layout *l = &ruby->layout;
    uint32_t tid;
    *native = 0;
    if (l->thread.native == LAYOUT_NONE) {
        *pthread = load_u64(thread + l->thread.pthread);
    } else {
        *native = load_u64(thread + l->thread.native);
        if (!walk_read_exactly(memory, *native + l->thread.pthread, pthread, sizeof *pthread)) {
            return 0;
        }
    }
    struct memory_piece piece = {*pthread + ruby->tid_in_pthread, &tid, sizeof tid, 0};
    return plausible(*pthread) && memory_batch_read(memory, &piece, 1, NULL) && piece.got == sizeof tid ? tid : 0;
}

/* ---- the search ---- */

struct thread_search {
    struct walk *w;
    unsigned char thread[RUBY_THREAD_BYTES];
    uint32_t steps;
};

static bool read_thread(struct thread_search *s, uint64_t address)
{
    const struct ruby *ruby = s->w->ruby;
    return walk_read_exactly(s->w->memory, address, s->thread, sizeof s->thread) &&
           load_u64(s->thread + ruby->layout.thread.vm) == ruby->vm;
}

/* Has this sample looked at enough? Then the next one goes on from here. */
static bool rests(struct thread_search *s, uint64_t ractor, uint64_t at)
{
    if (s->steps++ < STEPS_MAX) {
        return false;
    }
    s->w->plan->resume = at;
    s->w->plan->resume_ractor = ractor;
    return true;
}

/* True: the thread is found, or the search ends for this sample. */
static bool search_threads(struct thread_search *s, uint64_t ractor, uint64_t head, uint64_t at)
{
    struct ruby_plan *plan = s->w->plan;
    while (at != head) {
        if (rests(s, ractor, at)) {
            return true;
        }
        if (!read_thread(s, at)) {
            return false;
        }
        if (ruby_tid_of(s->w->ruby, s->w->memory, s->thread, &plan->native, &plan->pthread) == s->w->tid) {
            plan->thread = at;
            plan->ractor = ractor;
            return true;
        }
        at = load_u64(s->thread);
    }
    return false;
}

static bool search_list(struct thread_search *s, uint64_t ractor, uint64_t head)
{
    struct ruby_plan *plan = s->w->plan;
    uint64_t at = plan->resume;
    plan->resume = 0;
    return (at != 0 || walk_read_exactly(s->w->memory, head, &at, sizeof at)) && search_threads(s, ractor, head, at);
}

static void search_ractors(struct thread_search *s)
{
    const struct ruby *ruby = s->w->ruby;
    const struct ruby_layout *l = &ruby->layout;
    struct ruby_plan *plan = s->w->plan;
    uint64_t head = ruby->vm + l->vm.ractors, at = plan->resume_ractor + l->ractor.node;
    bool good = plan->resume_ractor != 0 || walk_read_exactly(s->w->memory, head, &at, sizeof at);
    plan->resume_ractor = 0;
    while (good && at != head) {
        uint64_t ractor = at - l->ractor.node;
        good = (plan->resume != 0 || !rests(s, ractor, 0)) && !search_list(s, ractor, ractor + l->ractor.threads) &&
               walk_read_exactly(s->w->memory, at, &at, sizeof at);
    }
}

/* The search is over: the thread is found, or it is in no list, or the lists do not end. */
static void end_search(struct ruby_plan *plan)
{
    if (plan->thread == 0) {
        plan->missed = plan->was_found ? MISSED_AGAIN : MISSED_SAMPLES;
    }
    plan->was_found = plan->thread != 0;
    plan->resume = plan->resume_ractor = plan->steps = 0;
}

enum runtime_end stack_find_thread(struct walk *w)
{
    struct ruby_plan *plan = w->plan;
    struct thread_search s = {.w = w};
    if (w->has_searched) {
        return RUNTIME_TORN; /* what was found is gone already */
    }
    if (plan->missed > 0) {
        plan->missed--;
        return RUNTIME_NO_THREAD;
    }
    w->has_searched = true;
    plan->ec = plan->escaped_count = 0;
    if (has(w->layout->vm.ractors)) {
        search_ractors(&s);
    } else {
        (void)search_list(&s, 0, w->ruby->vm + w->layout->vm.threads);
    }
    plan->steps += s.steps;
    if (plan->thread != 0 || (plan->resume | plan->resume_ractor) == 0 || plan->steps > STEPS_ALL) {
        end_search(plan);
    }
    return plan->thread != 0 ? RUNTIME_COMPLETE : RUNTIME_NO_THREAD;
}

/* ---- which may be running ---- */

struct look {
    const struct ruby *ruby;
    struct memory_batch *memory;
    uint32_t *tids;
    size_t count, most;
};

/* Adds the thread; returns the one before it in the list, 0 when there is none. */
static uint64_t add_thread(struct look *l, uint64_t address)
{
    unsigned char thread[RUBY_THREAD_BYTES];
    uint64_t native, pthread;
    if (!walk_read_exactly(l->memory, address, thread, sizeof thread) ||
        load_u64(thread + l->ruby->layout.thread.vm) != l->ruby->vm) {
        return 0;
    }
    uint32_t tid = ruby_tid_of(l->ruby, l->memory, thread, &native, &pthread);
    bool is_new = tid != 0 && l->count < l->most;
    for (size_t i = 0; i < l->count; i++) {
        is_new = is_new && l->tids[i] != tid;
    }
    if (is_new) {
        l->tids[l->count++] = tid;
    }
    return load_u64(thread + 8);
}

size_t ruby_running(const void *state, struct memory_batch *memory, uint32_t *tids, size_t most)
{
    const struct ruby *ruby = state;
    const struct ruby_layout *at = &ruby->layout;
    struct look l = {ruby, memory, tids, 0, most};
    uint64_t holder = 0, ractor = 0, head = ruby->vm + at->vm.threads, thread = 0;
    uint64_t running = has(at->vm.running) ? ruby->vm + at->vm.running : 0;
    if (has(at->vm.ractors)) { /* the one made last */
        if (!walk_read_exactly(memory, ruby->vm + at->vm.ractors + 8, &ractor, sizeof ractor)) {
            return 0;
        }
        head = ractor - at->ractor.node + at->ractor.threads;
        running = ractor - at->ractor.node + at->ractor.running;
    }
    if (running != 0 && walk_read_exactly(memory, running, &holder, sizeof holder) && holder != 0) {
        (void)add_thread(&l, holder);
    }
    (void)walk_read_exactly(memory, head + 8, &thread, sizeof thread);
    for (int i = 0; i < NEWEST && thread != 0 && thread != head && l.count < most; i++) {
        thread = add_thread(&l, thread);
    }
    return l.count;
}
