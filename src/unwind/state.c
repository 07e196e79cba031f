/* What is known of a frame at an instruction: registers and stack words as "CFA plus a constant" or
 * unknown, how a load, a store or two paths that meet change that, and the unwind rule that follows
 * from it. */
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

/* The slot, relative to `at`, that holds a value of this kind, or null. */
static const struct slot *state_find(const struct state *s, enum value_kind at, enum value_kind holds)
{
    for (int i = 0; i < STATE_SLOTS; i++) {
        if (s->slot[i].at.kind == at && s->slot[i].holds.kind == holds) {
            return &s->slot[i];
        }
    }
    return NULL;
}

static bool cfa_by_register(const struct state *s, uint8_t number, struct unwind_rule *rule)
{
    if (s->reg[number].kind != VALUE_CFA) {
        return false;
    }
    rule->kind = RULE_CFA;
    rule->cfa_reg = arch_dwarf_number[number];
    rule->cfa = -s->reg[number].off;
    return true;
}

/* The CFA is kept in a word of a realigned frame. */
static bool cfa_by_word(const struct state *s, uint8_t number, struct unwind_rule *rule)
{
    const struct slot *slot = state_find(s, VALUE_ALIGNED, VALUE_CFA);
    if (slot == NULL || s->reg[number].kind != VALUE_ALIGNED) {
        return false;
    }
    rule->kind = RULE_DEREF;
    rule->cfa_reg = arch_dwarf_number[number];
    rule->cfa = slot->at.off - s->reg[number].off;
    rule->addend = -slot->holds.off;
    return true;
}

/* FP points to the caller's, directly below the return address: as it stands, the frame is known.
 * */
static bool has_frame_pointer(const struct state *s)
{
    const struct value at = {VALUE_CFA, -2 * WORD_BYTES};
    return value_equal(s->reg[arch_fp_number], at) &&
           state_load(s, at).kind == VALUE_CALLER_FP;
}

/* SP before FP, because it is known after any callee; a register that callees may change serves a
 * leaf frame only, so these come last. */
static bool find_cfa(const struct state *s, struct unwind_rule *rule)
{
    const uint8_t sp = arch_sp_number, fp = arch_fp_number;
    bool found = (has_frame_pointer(s) && cfa_by_register(s, fp, rule)) ||
                 cfa_by_register(s, sp, rule) || cfa_by_register(s, fp, rule) ||
                 cfa_by_word(s, fp, rule) || cfa_by_word(s, sp, rule);
    for (uint8_t number = arch_register_count; !found && number > 0; number--) {
        found = cfa_by_register(s, number - 1, rule);
    }
    return found;
}

static bool is_kept(const struct state *s, const struct slot *slot, int32_t red_zone)
{
    struct value sp = s->reg[arch_sp_number];
    return slot != NULL && (sp.kind != slot->at.kind || slot->at.off >= sp.off - red_zone);
}

enum distance { DISTANCE_NONE, DISTANCE_FROM_CFA, DISTANCE_FROM_BASE };

/* Frames of more than 32 KiB are reached from the CFA's base. */
static enum distance measure(const struct unwind_rule *rule, int64_t from_cfa, int16_t *out)
{
    int64_t from_base = from_cfa + rule->cfa;
    if (from_cfa == (int16_t)from_cfa) {
        *out = (int16_t)from_cfa;
        return DISTANCE_FROM_CFA;
    }
    if (rule->kind == RULE_CFA && from_base == (int16_t)from_base) {
        *out = (int16_t)from_base;
        return DISTANCE_FROM_BASE;
    }
    return DISTANCE_NONE;
}

static bool find_ra(const struct state *s, struct unwind_rule *rule)
{
    const struct slot *slot = state_find(s, VALUE_CFA, VALUE_RETURN);
    if (is_kept(s, slot, 0)) {
        enum distance distance = measure(rule, slot->at.off, &rule->ra);
        rule->ra_place = distance == DISTANCE_FROM_BASE ? RA_AT_BASE : RA_AT_CFA;
        return distance != DISTANCE_NONE;
    }
    for (uint8_t number = arch_register_count; number > 0; number--) {
        if (s->reg[number - 1].kind == VALUE_RETURN) {
            rule->ra_place = RA_REGISTER;
            rule->ra = arch_dwarf_number[number - 1];
            return true;
        }
    }
    return false;
}

static bool fp_in_frame(const struct state *s, struct unwind_rule *rule, int32_t red_zone)
{
    const struct slot *slot = state_find(s, VALUE_CFA, VALUE_CALLER_FP);
    enum distance distance =
        is_kept(s, slot, red_zone) ? measure(rule, slot->at.off, &rule->fp) : DISTANCE_NONE;
    if (distance != DISTANCE_NONE) {
        rule->fp_place = distance == DISTANCE_FROM_BASE ? FP_AT_BASE : FP_AT_CFA;
    }
    return distance != DISTANCE_NONE;
}

static bool fp_in_aligned_frame(const struct state *s, struct unwind_rule *rule)
{
    const struct slot *slot = state_find(s, VALUE_ALIGNED, VALUE_CALLER_FP);
    struct value fp = s->reg[arch_fp_number];
    int64_t distance = slot == NULL ? 0 : (int64_t)slot->at.off - fp.off;
    if (!is_kept(s, slot, (int32_t)arch_red_zone) || fp.kind != VALUE_ALIGNED ||
        distance != (int16_t)distance) {
        return false;
    }
    rule->fp_place = FP_AT_FP;
    rule->fp = (int16_t)distance;
    return true;
}

/* A saved FP before one that has not changed: both are right, and the frame is known for longer. */
static void find_fp(const struct state *s, struct unwind_rule *rule)
{
    bool same = s->reg[arch_fp_number].kind == VALUE_CALLER_FP;
    if (fp_in_frame(s, rule, same ? 0 : (int32_t)arch_red_zone)) {
        return;
    }
    rule->fp_place = same ? FP_SAME : FP_UNKNOWN;
    if (!same) {
        (void)fp_in_aligned_frame(s, rule);
    }
}

static struct unwind_rule rule_of(const struct state *s, bool by_sp)
{
    struct unwind_rule rule = {.kind = RULE_NONE};
    if (s->signal || s->end) {
        rule.kind = s->signal ? RULE_SIGNAL : RULE_END;
        return rule;
    }
    bool found = by_sp ? cfa_by_register(s, arch_sp_number, &rule) : find_cfa(s, &rule);
    if (!found || !find_ra(s, &rule)) {
        return (struct unwind_rule){.kind = RULE_NONE};
    }
    find_fp(s, &rule);
    return rule;
}

struct unwind_rule state_rule(const struct state *s)
{
    return rule_of(s, false);
}

struct unwind_rule state_rule_by_sp(const struct state *s)
{
    return rule_of(s, true);
}
