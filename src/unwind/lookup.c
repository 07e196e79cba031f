/* Fills a slot of the rule cache: finds the image at an address and the rule in its table, or decides
 * from the instructions there (prologue, epilogue, entry code, a call before a return address) what
 * the frame looks like. */
#include "unwind/analyse.h"
#include "unwind/walk.h"

enum {
    LEAF_CODE_BYTES = 32, /* on either side, for analyse_leaf */
    CALL_BYTES = 8,       /* before a return address, for analyse_is_behind_call */
};

/* Code bytes: an image's from its file, which costs no access to the process. */
static bool read_code(const struct walk *w, const struct unwind_place *place, uint64_t address,
                      void *out, size_t len)
{
    if (place->table != NULL) {
        return unwind_table_code(place->table, address - place->bias, out, len);
    }
    const struct memory_reader *code = place->unreadable ? NULL : w->space->code;
    return code != NULL && code->read(code->context, address, out, len, NULL);
}

/* As much of [address - before, address + after) as the mapping holds. */
static bool read_around(const struct walk *w, const struct unwind_place *place, uint64_t address,
                        size_t before, size_t after, unsigned char *bytes, struct code *out)
{
    if (address < place->start || address > place->limit) {
        return false;
    }
    uint64_t start = address - place->start < before ? place->start : address - before;
    uint64_t limit = place->limit - address < after ? place->limit : address + after;
    *out = (struct code){start, bytes, (size_t)(limit - start)};
    return out->len > 0 && read_code(w, place, start, bytes, out->len);
}

/* Rules that only the code tells, and that an analysis of it gets wrong: the trampoline that
 * returns from signals, whose stack is the kernel's, first functions, which align their SP, and what the first
 * function of a coroutine returns to. A return address at the trampoline, or there, points at its first byte: what
 * stands before is not it. */
static bool is_special(const struct walk *w, const struct unwind_place *place,
                       struct unwind_rule *rule)
{
    unsigned char bytes[ARCH_ENTRY_CODE_BYTES + ARCH_SIGNAL_CODE_BYTES];
    struct code code;
    uint64_t next = w->exact ? w->address : w->address + 1;
    if (!read_around(w, place, next, ARCH_ENTRY_CODE_BYTES, ARCH_SIGNAL_CODE_BYTES, bytes, &code)) {
        return false;
    }
    size_t before = (size_t)(next - code.address), back = w->exact && before > 8 ? 8 : 0;
    for (size_t i = before - back; i <= before; i++) {
        if (arch_is_signal_return(bytes + i, code.len - i)) {
            *rule = (struct unwind_rule){.kind = RULE_SIGNAL};
            return true;
        }
    }
    if (!w->exact && arch_is_entry(bytes, before)) {
        *rule = (struct unwind_rule){.kind = RULE_END};
        return true;
    }
    if (!w->exact && arch_is_context_start(bytes + before, code.len - before)) {
        *rule = (struct unwind_rule){.kind = RULE_START};
        return true;
    }
    return false;
}

/* The rule that the image has. Go's callers go by frame pointer though they may have CFI: its
 * runtime changes stacks below a call (systemstack), of which CFI knows nothing. */
static void image_rule(const struct walk *w, const struct unwind_place *place, struct method *m)
{
    bool analysed;
    m->is_go = unwind_table_is_go(place->table);
    m->keeps_fp = place->frame_pointers || m->is_go;
    if (place->frame_pointers || w->u->method == UNWIND_CFI_ONLY) {
        unwind_table_no_analysis(place->table);
    }
    if (w->exact || !m->is_go) {
        m->rule = unwind_table_rule(place->table, w->address - place->bias, &analysed);
        m->flags = analysed ? FRAME_ANALYSED : 0;
    }
    if (m->rule.kind == RULE_NONE || m->flags != 0) {
        (void)is_special(w, place, &m->rule);
    }
}

/* The rule where no table describes the address. */
static void fall_back(const struct walk *w, const struct unwind_place *place, struct method *m)
{
    unsigned char bytes[2 * LEAF_CODE_BYTES];
    struct code code;
    if (w->u->method == UNWIND_CFI_ONLY && !m->keeps_fp) {
        return;
    }
    uint64_t next = w->exact ? w->address : w->address + 1;
    if ((w->exact || place->table == NULL) &&
        read_around(w, place, next, LEAF_CODE_BYTES, LEAF_CODE_BYTES, bytes, &code)) {
        m->rule = w->exact ? analyse_leaf(&code, next) : analyse_caller(&code, next);
        m->flags = FRAME_ANALYSED;
    }
    if (m->rule.kind == RULE_NONE) {
        m->rule = arch_fp_rule;
        m->flags = FRAME_BY_FP;
    }
}

static void fill(const struct walk *w, struct unwind_slot *slot, const struct unwind_place *place)
{
    struct method m = {.rule = {.kind = RULE_NONE}, .keeps_fp = true};
    if (place->table != NULL) {
        image_rule(w, place, &m);
    }
    if (m.rule.kind == RULE_NONE) {
        fall_back(w, place, &m);
    }
    if (rule_is_somewhere(&m.rule)) {
        m.flags |= FRAME_ANALYSED; /* the CFA is concluded from what stands in the frame */
    }
    *slot = (struct unwind_slot){
        .space = w->space->id,
        .address = w->address,
        .bias = place->bias,
        .image = place->image,
        .method = m,
    };
}

/* A trampoline may be the first code of its mapping; the byte before it, by which callers are
 * looked up, is then outside. */
static struct unwind_slot *fill_trampoline(const struct walk *w, struct unwind_slot *slot)
{
    struct unwind_place place;
    struct unwind_rule rule;
    if (w->exact || !w->space->find(w->space->context, w->address + 1, &place) ||
        !is_special(w, &place, &rule) || rule.kind != RULE_SIGNAL) {
        return NULL;
    }
    *slot = (struct unwind_slot){
        .space = w->space->id,
        .address = w->address,
        .bias = place.bias,
        .image = place.image,
        .method = {.rule = rule},
    };
    return slot;
}

/* Go's own table and its CFI are by SP alone, and tell nothing of the frame pointer: a function with a frame saves it
 * at a fixed place. That CFI knows nothing of a change of stacks does not matter: with that frame pointer the next step
 * is usual. */
static bool go_rule_by_sp(const struct walk *w, const struct unwind_place *place, struct unwind_rule *out)
{
    bool analysed;
    *out = unwind_table_rule_by_depth(place->table, w->address - place->bias);
    if (out->kind == RULE_NONE) {
        *out = unwind_table_rule(place->table, w->address - place->bias, &analysed);
    }
    if (out->kind == RULE_END) {
        return true;
    }
    if (out->kind != RULE_CFA || out->cfa_reg != arch_cfi.sp) {
        return false;
    }
    if (out->cfa > WORD) {
        out->fp_place = arch_go_fp_place;
        out->fp = arch_go_fp;
    }
    return true;
}

static bool rule_by_sp(const struct walk *w, const struct unwind_place *place, bool is_go, struct unwind_rule *out)
{
    return is_go ? go_rule_by_sp(w, place, out)
                 : unwind_table_rule_by_sp(place->table, w->address - place->bias, out);
}

/* Kept in the cache as well, under an address that no code has. */
bool slot_by_sp(const struct walk *w, struct method *m)
{
    uint64_t key = w->address | UINT64_C(1) << 63;
    struct unwind_place place;
    struct unwind_slot *slot = slot_at(w, key);
    if (slot->address != key || slot->space != w->space->id) {
        struct method found = {.keeps_fp = m->keeps_fp, .is_go = m->is_go, .flags = FRAME_ANALYSED};
        bool good = w->space->find(w->space->context, w->address, &place) && place.table != NULL &&
                    rule_by_sp(w, &place, m->is_go, &found.rule);
        *slot = (struct unwind_slot){.space = w->space->id, .address = key, .method = found};
        slot->method.rule.kind = good ? found.rule.kind : (uint8_t)RULE_NONE;
    }
    *m = slot->method.rule.kind != RULE_NONE ? slot->method : *m;
    return slot->method.rule.kind != RULE_NONE;
}

bool slot_is_outermost(const struct walk *w, const struct method *m)
{
    struct method by_sp = *m;
    return slot_by_sp(w, &by_sp) && by_sp.rule.kind == RULE_END;
}

struct unwind_slot *slot_fill(const struct walk *w, struct unwind_slot *slot)
{
    struct unwind_place place;
    if (!w->space->find(w->space->context, w->address, &place)) {
        return fill_trampoline(w, slot);
    }
    fill(w, slot, &place);
    return slot;
}

bool slot_is_in_call(const struct walk *w, struct unwind_slot *slot)
{
    unsigned char bytes[CALL_BYTES];
    struct unwind_place place;
    struct code code;
    if (slot->call == CALL_UNKNOWN) {
        slot->call = CALL_YES;
        if (w->space->find(w->space->context, slot->address, &place) &&
            read_around(w, &place, slot->address + 1, CALL_BYTES, 0, bytes, &code) &&
            !analyse_is_behind_call(&code, slot->address + 1)) {
            slot->call = CALL_NO;
        }
    }
    return slot->call == CALL_YES;
}
