/* Generators that yield from others (walk.h). Of such a chain only the innermost one runs, and its frame leads to one
 * that stands for all others, in the object of the outermost; that leads to who asked. The chain leads from the
 * outermost's object inwards, and ends at the frame it began with: else it is none. */
#include "runtime/php/walk.h"

struct chain {
    uint64_t at[PLAN_OUTER], frame_at[PLAN_OUTER];
    unsigned char object[PLAN_OUTER][GENERATOR_BYTES], frame[PLAN_OUTER][PHP_FRAME_BYTES];
    uint32_t piece[PLAN_OUTER];
    bool is_there[PLAN_OUTER]; /* object */
    uint32_t count;  /* that are known, */
    uint32_t inner;  /* of them, if the last one is the innermost: 1 */
};

static void ask_object(struct walk *w, struct chain *c, uint32_t i, uint64_t address)
{
    c->at[i] = address;
    c->piece[i] = php_stack_ask(w, address + w->php->layout.generator, c->object[i], GENERATOR_BYTES);
}

/* What the plan predicts, between the first and the last read of the frame that leads here. */
static bool read_objects(struct walk *w, struct chain *c, struct walk_joint *j, uint64_t outermost)
{
    const struct php_plan *plan = w->plan;
    w->pieces = 0;
    php_stack_ask_joint(w, j, false);
    ask_object(w, c, 0, outermost);
    for (uint32_t i = 1; i < plan->outer_count && plan->outer[0] == outermost; i++) {
        ask_object(w, c, i, plan->outer[i]);
    }
    if (!php_stack_read(w)) {
        return false;
    }
    for (uint32_t i = 0; i < PLAN_OUTER; i++) {
        c->is_there[i] = php_stack_got(w, c->piece[i]);
    }
    return !w->twice || php_stack_got(w, j->first);
}

/* The chain from the outermost one on; false: it is none. One that is longer than is followed ends early. */
static bool follow(struct walk *w, struct chain *c, uint64_t outermost, uint64_t innermost_frame)
{
    uint64_t at = outermost;
    for (c->count = 0; at != 0 && c->count < PLAN_OUTER; c->count++) {
        uint32_t i = c->count;
        if (c->at[i] != at) {
            w->pieces = 0;
            ask_object(w, c, i, at);
            c->is_there[i] = php_stack_read(w) && php_stack_got(w, c->piece[i]);
        }
        if (!c->is_there[i] || at % 8 != 0) {
            return false;
        }
        c->frame_at[i] = load_u64(c->object[i] + GENERATOR_FRAME);
        at = load_u64(c->object[i] + GENERATOR_INNER);
    }
    c->inner = at == 0;
    return c->count > 1 && (at != 0 || c->frame_at[c->count - 1] == innermost_frame);
}

static void remember(struct php_plan *plan, const struct chain *c)
{
    plan->outer_count = c->count;
    memcpy(plan->outer, c->at, c->count * sizeof c->at[0]);
}

static bool emit(struct walk *w, const struct chain *c)
{
    for (uint32_t i = c->count - c->inner; i > 0; i--) {
        if (!php_stack_got(w, c->piece[i - 1]) || load_u64(c->frame[i - 1] + FRAME_FUNCTION) == 0) {
            return false;
        }
        php_stack_emit(w, c->frame_at[i - 1], c->frame[i - 1]);
    }
    return true;
}

bool php_stack_outer(struct walk *w, struct walk_joint *j, uint64_t outermost)
{
    struct chain c;
    memset(c.at, 0, sizeof c.at);
    memset(c.piece, 0, sizeof c.piece);
    if (!read_objects(w, &c, j, outermost) || !follow(w, &c, outermost, j->address)) {
        return false;
    }
    remember(w->plan, &c);
    w->pieces = 0;
    for (uint32_t i = 0; i < c.count - c.inner; i++) {
        c.piece[i] = php_stack_ask(w, c.frame_at[i], c.frame[i], PHP_FRAME_BYTES);
    }
    php_stack_ask_joint(w, j, true);
    j->first = j->last; /* it was there */
    if (!php_stack_stands(w, j)) {
        return false;
    }
    if (c.inner == 0) {
        php_stack_cut(w);
    }
    return emit(w, &c);
}
