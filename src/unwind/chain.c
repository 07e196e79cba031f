/* Go's callers that are not in the copy: on the stack of a goroutine, while its thread runs on its own. The kernel
 * followed the frame pointers at the sample's moment; read later, that stack may be another call's. */
#include "unwind/walk.h"

bool chain_begin(struct walk *w)
{
    const struct unwind_stack *s = w->stack;
    uint64_t ip = w->exact ? w->address : w->address + 1;
    for (size_t i = 0; i + 1 < s->chain_len; i++) {
        if ((s->chain[i] & arch_code_mask) == ip) {
            w->chained = i + 1;
            return true;
        }
    }
    return false;
}

/* Nobody has called goexit, to which the first function of a goroutine returns; it calls the end of the goroutine. A
 * chain that ends elsewhere had no room for more. */
static bool is_first(struct walk *w)
{
    struct unwind_slot *slot = slot_of(w);
    return slot == NULL || !slot_is_in_call(w, slot) || slot_is_outermost(w, &slot->method);
}

bool chain_step(struct walk *w, const struct method *m)
{
    const struct unwind_stack *s = w->stack;
    if (!m->is_go || w->chained == s->chain_len) { /* others hardly keep frame pointers */
        w->why = m->is_go && is_first(w) ? STACK_COMPLETE : STACK_TRUNCATED;
        return false;
    }
    w->address = (s->chain[w->chained++] & arch_code_mask) - 1;
    w->exact = false;
    return true;
}
