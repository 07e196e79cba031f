#include "unwind/state.h"

#include <string.h>

enum { WORD_BYTES = 8 };

struct value state_load(const struct state *s, struct value at)
{
    for (int i = 0; i < STATE_SLOTS; i++) {
        if (at.kind != VALUE_UNKNOWN && value_equal(s->slot[i].at, at)) {
            return s->slot[i].holds;
        }
    }
    return (struct value){0};
}

void state_store(struct state *s, struct value at, struct value value, int bytes)
{
    struct slot *unused = NULL;
    if (at.kind == VALUE_UNKNOWN) {
        return; /* by convention no word of this frame: compilers know where they saved registers */
    }
    for (int i = STATE_SLOTS; i-- > 0;) {
        int64_t distance = (int64_t)s->slot[i].at.off - at.off;
        if (s->slot[i].at.kind == at.kind && distance > -WORD_BYTES && distance < bytes) {
            s->slot[i] = (struct slot){0};
        }
        unused = s->slot[i].at.kind == VALUE_UNKNOWN ? &s->slot[i] : unused;
    }
    if (unused != NULL && value.kind != VALUE_UNKNOWN) {
        *unused = (struct slot){at, value};
    }
}

void state_drop_below(struct state *s, struct value limit)
{
    for (int i = 0; i < STATE_SLOTS; i++) {
        if (s->slot[i].at.kind == limit.kind && s->slot[i].at.off < limit.off) {
            s->slot[i] = (struct slot){0};
        }
    }
}

bool state_meet(struct state *into, const struct state *other)
{
    struct state before = *into;
    if (memcmp(into, other, sizeof *into) == 0) {
        return false;
    }
    for (int i = 0; i < STATE_REGISTERS; i++) {
        if (!value_equal(into->reg[i], other->reg[i])) {
            into->reg[i] = (struct value){0};
        }
    }
    for (int i = 0; i < STATE_SLOTS; i++) {
        struct slot *slot = &into->slot[i];
        if (slot->at.kind != VALUE_UNKNOWN &&
            !value_equal(slot->holds, state_load(other, slot->at))) {
            *slot = (struct slot){0};
        }
    }
    if (into->end != other->end || into->signal != other->signal) {
        into->reg[arch_sp_number] = (struct value){0}; /* neither is right for both */
        into->end = into->signal = false;
    }
    into->no_end = into->no_end || other->no_end;
    into->compared = into->compared == other->compared ? into->compared : 0;
    return memcmp(into, &before, sizeof before) != 0;
}

const struct slot *state_find(const struct state *s, enum value_kind at, enum value_kind holds)
{
    for (int i = 0; i < STATE_SLOTS; i++) {
        if (s->slot[i].at.kind == at && s->slot[i].holds.kind == holds) {
            return &s->slot[i];
        }
    }
    return NULL;
}
