/* What a walk holds of the target's memory (walk.h): the batch in hand, the window of frames and values, and
 * environments that lie elsewhere. What is not held is asked for and taken here; whether it makes sense is for others
 * to say. */
#include "runtime/ruby/walk.h"

uint32_t stack_ask(struct walk *w, uint64_t address, void *out, uint32_t len)
{
    if (!plausible(address) || len == 0 || w->pieces == WALK_PIECES) {
        return 0;
    }
    w->piece[w->pieces] = (struct memory_piece){address, out, len, 0};
    return ++w->pieces;
}

bool stack_read(struct walk *w)
{
    if (w->batches == WALK_BATCHES_MAX || w->failed > WALK_FAILED_MAX) {
        return false;
    }
    w->batches++;
    w->unreadable = !memory_batch_read(w->memory, w->piece, w->pieces, NULL);
    for (uint32_t i = 0; i < w->pieces; i++) {
        w->failed += w->piece[i].got != w->piece[i].len;
    }
    return !w->unreadable;
}

bool stack_got(const struct walk *w, uint32_t piece)
{
    return piece != 0 && w->piece[piece - 1].got == w->piece[piece - 1].len;
}

/* ---- the window ---- */

void stack_ask_window(struct walk *w, uint64_t low, uint64_t top)
{
    struct walk_window *v = &w->window;
    const struct ruby_plan *plan = w->plan;
    v->copy = 0;
    v->low = low;
    v->limit = most(low, least(plan->limit, low + (uint64_t)WALK_FRAMES * w->layout->frame_bytes));
    v->values_limit = least(top, low);
    v->values_low = most(plan->stack, most(v->values_limit, WALK_VALUES) - WALK_VALUES);
    v->piece = stack_ask(w, low, v->frames[0], (uint32_t)(v->limit - low));
    v->values_piece = v->values_low >= v->values_limit
                          ? 0
                          : stack_ask(w, v->values_low, v->values, (uint32_t)(v->values_limit - v->values_low));
}

void stack_ask_window_again(struct walk *w)
{
    struct walk_window *v = &w->window;
    v->copy = 1;
    v->again = stack_ask(w, v->low, v->frames[1], (uint32_t)(v->limit - v->low));
}

void stack_take_window(struct walk *w)
{
    struct walk_window *v = &w->window;
    if (!stack_got(w, v->piece) || (v->copy == 1 && !stack_got(w, v->again))) {
        v->limit = v->low;
    }
    if (!stack_got(w, v->values_piece)) {
        v->values_limit = v->values_low;
    }
}

const unsigned char *stack_frame(const struct walk *w, uint64_t address)
{
    return w->window.frames[w->window.copy] + (address - w->window.low);
}

/* ---- environments ---- */

void stack_add_slot(struct walk *w, uint64_t ep)
{
    struct walk_slots *s = &w->slots;
    if (s->count < WALK_SLOTS) {
        s->is_met[s->count] = false;
        s->ep[s->count++] = ep;
    }
}

void stack_ask_slots(struct walk *w)
{
    struct walk_slots *s = &w->slots;
    s->piece = w->pieces;
    for (uint32_t i = s->fetched; i < s->count; i++) {
        if (stack_ask(w, s->ep[i] - 16, s->bytes[i], WALK_ENV) == 0) {
            s->count = i;
        }
    }
}

void stack_take_slots(struct walk *w)
{
    struct walk_slots *s = &w->slots;
    for (uint32_t i = s->fetched; i < s->count; i++) {
        s->is_there[i] = stack_got(w, s->piece + 1 + i - s->fetched);
    }
    s->fetched = s->count;
}

int stack_env(struct walk *w, uint64_t ep, const unsigned char **out)
{
    const struct walk_window *v = &w->window;
    struct walk_slots *s = &w->slots;
    if (!plausible(ep - 16) || ep % 8 != 0) {
        return -1;
    }
    if (ep >= v->values_low + 16 && ep + 8 <= v->values_limit) {
        *out = v->values + (ep - 16 - v->values_low);
        return 1;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->ep[i] == ep) {
            *out = s->bytes[i];
            s->is_met[i] = true;
            return i >= s->fetched ? 0 : s->is_there[i] ? 1 : -1;
        }
    }
    stack_add_slot(w, ep);
    return s->ep[s->count - 1] == ep ? 0 : -1;
}
