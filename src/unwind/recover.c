/* A register that rules do not follow, followed after all: the stack is walked once more. */
#include "unwind/walk.h"

enum { FRAMES_MAX_AGAIN = 32 };

/* The caller's value of a register, by the rule that describes it in the frame pointer's place. */
static bool follow(struct walk *w, const struct unwind_rule *rule, uint64_t cfa, uint64_t *value)
{
    switch (rule->fp_place) {
    case FP_SAME:
        return true;
    case FP_AT_CFA:
        return stack_load(w, cfa + (uint64_t)(int64_t)rule->fp, value);
    default:
        return false;
    }
}

/* Steps `again` to its caller and `value` with it. */
static bool step_with(struct walk *again, uint8_t reg, uint64_t *value)
{
    struct unwind_place place;
    struct unwind_rule rule;
    uint64_t address = again->address;
    struct unwind_slot *slot = slot_of(again);
    struct method m = slot == NULL ? (struct method){.flags = FRAME_GUESSED} : slot->method;
    return m.flags == 0 && m.rule.kind != RULE_SIGNAL &&
           again->space->find(again->space->context, address, &place) && place.table != NULL &&
           unwind_table_register(place.table, address - place.bias, reg, &rule) &&
           walk_step(again, &m) && follow(again, &rule, again->sp, value);
}

/* From the registers of the last exact frame, as they were there. */
static void begin_again(struct walk *again, const struct walk *w)
{
    again->u = w->u;
    again->space = w->space;
    again->stack = w->stack;
    again->full = w->full;
    again->address = unwind_ip(w->full);
    again->sp = unwind_sp(w->full);
    again->fp = w->full->at[arch_cfi.fp];
    again->sp_known = true;
    again->fp_known = (w->full->known >> arch_cfi.fp & 1) != 0;
    again->exact = true;
    again->switched = w->switched;
    again->verified = w->verified;
    again->differs = w->differs;
    again->last_ra = w->last_ra;
    again->recovered = false;
    again->chained = 0;
    again->chunk_address = 1;
}

bool walk_recover(struct walk *w)
{
    struct walk again;
    uint8_t reg = w->borrowed_reg;
    if (w->exact || reg >= UNWIND_REGISTERS || (w->full->known >> reg & 1) == 0) {
        return false;
    }
    begin_again(&again, w);
    uint64_t value = w->full->at[reg];
    for (unsigned i = 0; i < FRAMES_MAX_AGAIN; i++) {
        if (!step_with(&again, reg, &value)) {
            return false;
        }
        if (again.address == w->address && again.sp == w->sp) {
            w->recovered_value = value;
            return true;
        }
    }
    return false;
}
