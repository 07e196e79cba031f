/* Walks the stack of a goroutine that does not run, as the runtime does (runtime.unwinder, tracebackPCs): how far each
 * function has moved the stack pointer at each of its addresses stands in the pclntab, so nothing is guessed and no
 * frame pointer is needed. What is known of an address is kept: thousands of goroutines wait at few places.
 *
 * The walk ends at a function that is marked as outermost (goexit, mstart), or as one that writes the stack pointer,
 * or where a return address is in no Go function. A stack that contradicts itself - it leaves its bounds, or makes no
 * progress - is that of a goroutine that has been running meanwhile. */
#include "runtime/common/load.h"
#include "runtime/go/memory/memory_private.h"

enum {
    POINTS_MAX = 1 << 18,
    STEPS_MAX = 16384, /* wrappers are not counted as frames */
    INJECTED_FRAME = 16, /* AArch64: what a signal handler puts below the frame of a call that it injects */
};

void go_unwinder_release(struct go_unwinder *u)
{
    map_release(&u->known);
    vec_release(&u->points);
}

static bool is_one_of(struct str name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(name, str_of(names[i]))) {
            return true;
        }
    }
    return false;
}

/* What the next frame depends on besides its address. */
struct arrival {
    bool trapped;  /* the callee was injected: the address is the one about to run, no return address */
    bool panicked; /* the callee shows wrappers */
};

/* The first function at the point that is told, as a return address, and how many are. */
static void name_point(struct go_unwinder *u, uint64_t address, bool panicked, struct go_point *p)
{
    static const char *const injects[] = {"runtime.asyncPreempt", "runtime.sigpanic", "runtime.debugCallV2"};
    static const char *const panics[] = {"runtime.gopanic", "runtime.sigpanic", "runtime.panicwrap"};
    static const char *const switches[] = {"runtime.cgocallback"};
    struct go_frames frames;
    if (!go_table_lookup(u->m->process.table, address, &frames)) {
        p->shown = address + u->m->process.bias + 1;
        p->calls = 1;
        return;
    }
    for (size_t i = 0; i < frames.count; i++) {
        if (frames.at[i].id != u->m->layout->wrapper || panicked) {
            p->shown = p->calls++ == 0 ? frames.at[i].at + u->m->process.bias + 1 : p->shown;
        }
        panicked = is_one_of(frames.at[i].name, panics, 3);
    }
    struct str name = frames.at[frames.count - 1].name;
    p->panics = panicked;
    p->injected = is_one_of(name, injects, 3);
    p->switches = is_one_of(name, switches, 1);
}

static struct go_point make_point(struct go_unwinder *u, uint64_t pc, struct arrival arrival)
{
    struct go_point p = {.calls = 0};
    uint64_t address = pc - u->m->process.bias;
    p.is_code = go_table_step(u->m->process.table, address, &p.step);
    if (p.is_code) {
        name_point(u, arrival.trapped || address == p.step.start ? address : address - 1, arrival.panicked, &p);
    }
    return p;
}

/* Null: no memory. Valid until the next call. */
static const struct go_point *point_of(struct go_unwinder *u, uint64_t pc, struct arrival arrival)
{
    uint64_t key = pc | (uint64_t)arrival.trapped << 63 | (uint64_t)arrival.panicked << 62;
    struct map_slot *slot = map_find(&u->known, key);
    if (slot != NULL) {
        return &u->points.at[slot->value];
    }
    if (u->points.len >= POINTS_MAX) {
        map_clear(&u->known);
        vec_clear(&u->points);
    }
    struct go_point *p = vec_push(&u->points);
    if (p == NULL || !map_put(&u->known, key, u->points.len - 1)) {
        return NULL;
    }
    *p = make_point(u, pc, arrival);
    return p;
}

static bool word_at(struct go_stack *s, uint64_t address, uint64_t *out)
{
    bool there = address >= s->start && address - s->start < s->len && s->len - (address - s->start) >= 8;
    if (!there && (address % 8 != 0 || !s->more(s->context, s, address))) {
        return false;
    }
    *out = load_u64(s->bytes + (address - s->start));
    return true;
}

struct walk {
    uint64_t pc, sp, lr;
    struct arrival arrival;
    bool innermost;
    uint32_t calls;
};

/* Does the walk end with this frame? */
static bool ends(const struct go_point *p, const struct walk *w, bool in_syscall)
{
    bool lost = (p->step.flags & GO_STEP_WRITES_SP) != 0 && !p->switches && !(w->innermost && in_syscall);
    return !p->step.has_frames || lost || (p->step.flags & GO_STEP_TOP) != 0;
}

/* On to the caller, whose address is 0 at the end. */
static bool next(struct go_unwinder *u, struct go_stack *s, const struct go_point *p, struct walk *w)
{
    bool keeps_lr = u->m->keeps_lr;
    uint64_t frame = w->sp + (uint64_t)(int64_t)p->step.delta + (keeps_lr ? 0 : 8);
    if (p->step.delta < 0 || p->step.delta % 8 != 0 || frame > s->limit || frame < w->sp) {
        return false;
    }
    bool saved = !keeps_lr || w->lr == 0 || (w->innermost && w->sp < frame);
    if (saved && !word_at(s, keeps_lr ? w->sp : frame - 8, &w->lr)) {
        return false;
    }
    if (w->lr == w->pc && w->sp == frame) {
        return false;
    }
    *w = (struct walk){.pc = w->lr, .sp = frame, .arrival = {p->injected, p->panics}, .calls = w->calls};
    return true;
}

/* AArch64: below an injected call stands the register that it would have overwritten. */
static bool enter_injected(struct go_unwinder *u, struct go_stack *s, struct walk *w)
{
    uint64_t link;
    if (!word_at(s, w->sp, &link)) {
        return false;
    }
    w->sp += INJECTED_FRAME;
    const struct go_point *p = point_of(u, w->pc, w->arrival);
    if (p != NULL && !p->is_code) {
        w->pc = link;
    } else if (p != NULL && p->step.delta == 0) {
        w->lr = link;
    }
    return true;
}

/* A call of a nil function: the caller's frame is the first. */
static bool enter_nil(struct go_unwinder *u, struct go_stack *s, struct walk *w)
{
    if (!word_at(s, w->sp, &w->pc)) {
        return false;
    }
    w->sp += u->m->keeps_lr ? 0 : 8;
    w->lr = 0;
    return true;
}

bool go_unwind(struct go_unwinder *u, struct go_stack *s)
{
    struct walk w = {.pc = s->pc, .sp = s->sp, .lr = u->m->keeps_lr ? s->lr : 0, .innermost = true};
    s->count = 0;
    if (w.pc == 0 && !enter_nil(u, s, &w)) {
        return false;
    }
    for (unsigned i = 0; i < STEPS_MAX && w.pc != 0; i++) {
        const struct go_point *found = point_of(u, w.pc, w.arrival);
        if (found == NULL) {
            return false;
        }
        struct go_point p = *found;
        if (!p.is_code) {
            break;
        }
        w.calls += p.calls;
        if (p.calls > 0) {
            s->pcs[s->count++] = p.shown;
        }
        if (w.calls >= u->m->layout->depth || s->count == GO_DEPTH_MAX || ends(&p, &w, s->in_syscall)) {
            break;
        }
        if (!next(u, s, &p, &w) || (w.arrival.trapped && u->m->keeps_lr && !enter_injected(u, s, &w))) {
            return false;
        }
    }
    return true;
}
