/* Runs the programs of CIEs and FDEs and reports a row at each change of the rule. Followed are the
 * CFA, the return address and the frame pointer; expressions are recognised by their form, not
 * evaluated. Loops and stacks are bounded. */
#include "unwind/program.h"

/* DW_CFA_*: the first three keep an operand in the low six bits. */
enum {
    OP_ADVANCE = 0x40,
    OP_OFFSET = 0x80,
    OP_RESTORE = 0xc0,
    OP_NOP = 0x00,
    OP_SET_LOC = 0x01,
    OP_ADVANCE1 = 0x02,
    OP_ADVANCE2 = 0x03,
    OP_ADVANCE4 = 0x04,
    OP_OFFSET_EXTENDED = 0x05,
    OP_RESTORE_EXTENDED = 0x06,
    OP_UNDEFINED = 0x07,
    OP_SAME = 0x08,
    OP_REGISTER = 0x09,
    OP_REMEMBER = 0x0a,
    OP_RESTORE_STATE = 0x0b,
    OP_DEF_CFA = 0x0c,
    OP_DEF_CFA_REGISTER = 0x0d,
    OP_DEF_CFA_OFFSET = 0x0e,
    OP_DEF_CFA_EXPRESSION = 0x0f,
    OP_EXPRESSION = 0x10,
    OP_OFFSET_EXTENDED_SF = 0x11,
    OP_DEF_CFA_SF = 0x12,
    OP_DEF_CFA_OFFSET_SF = 0x13,
    OP_VAL_OFFSET = 0x14,
    OP_VAL_OFFSET_SF = 0x15,
    OP_VAL_EXPRESSION = 0x16,
    OP_ADVANCE8 = 0x1d,
    OP_NEGATE_RA_STATE_WITH_PC = 0x2c,
    OP_NEGATE_RA_STATE = 0x2d,
    OP_ARGS_SIZE = 0x2e,
    OP_NEGATIVE_OFFSET = 0x2f,
};

/* DW_OP_* */
enum {
    EX_DEREF = 0x06,
    EX_CONST1U = 0x08,
    EX_CONST1S = 0x09,
    EX_CONST2U = 0x0a,
    EX_CONST2S = 0x0b,
    EX_CONST4U = 0x0c,
    EX_CONST4S = 0x0d,
    EX_CONSTU = 0x10,
    EX_CONSTS = 0x11,
    EX_MINUS = 0x1c,
    EX_PLUS = 0x22,
    EX_PLUS_UCONST = 0x23,
    EX_LIT0 = 0x30,
    EX_BREG0 = 0x70,
    EX_BREGX = 0x92,
};

/* Operands are mostly one byte; the rest of the work is the cursor's. */
static inline uint8_t take_u8(struct cursor *c)
{
    if (c->len == 0) {
        return cursor_u8(c);
    }
    c->len--;
    return *c->ptr++;
}

static inline uint64_t take_uleb(struct cursor *c)
{
    return c->len > 0 && *c->ptr < 0x80 ? take_u8(c) : cursor_uleb(c);
}

/* What an expression comes to: register + offset, or *(register + offset) + addend. */
struct form {
    bool known, deref;
    uint64_t reg;
    int64_t offset, addend;
};

static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static void add_to_form(struct form *f, int64_t value)
{
    if (f->deref) {
        f->addend = add(f->addend, value);
    } else {
        f->offset = add(f->offset, value);
    }
}

/* A constant that was pushed; *is_constant tells whether `op` is one. */
static int64_t constant(struct cursor *c, uint8_t op, bool *is_constant)
{
    *is_constant = true;
    if (op >= EX_LIT0 && op < EX_LIT0 + 32) {
        return op - EX_LIT0;
    }
    switch (op) {
    case EX_CONST1U:
        return cursor_u8(c);
    case EX_CONST1S:
        return (int8_t)cursor_u8(c);
    case EX_CONST2U:
        return cursor_u16(c);
    case EX_CONST2S:
        return (int16_t)cursor_u16(c);
    case EX_CONST4U:
        return cursor_u32(c);
    case EX_CONST4S:
        return (int32_t)cursor_u32(c);
    case EX_CONSTU:
        return (int64_t)cursor_uleb(c);
    case EX_CONSTS:
        return cursor_sleb(c);
    default:
        *is_constant = false;
        return 0;
    }
}

/* One operation on a form; false for those no form expresses. */
static bool step_form(struct form *f, struct cursor *c)
{
    bool is_constant;
    uint8_t op = cursor_u8(c);
    if (op == EX_DEREF && !f->deref) {
        f->deref = true;
        return true;
    }
    if (op == EX_PLUS_UCONST) {
        add_to_form(f, (int64_t)cursor_uleb(c));
        return true;
    }
    int64_t value = constant(c, op, &is_constant);
    if (!is_constant) {
        return false;
    }
    uint8_t sign = cursor_u8(c);
    add_to_form(f, sign == EX_MINUS ? (int64_t)(0 - (uint64_t)value) : value);
    return sign == EX_PLUS || sign == EX_MINUS;
}

static struct form form_of(struct cursor c)
{
    struct form f = {0};
    uint8_t op = cursor_u8(&c);
    if (op >= EX_BREG0 && op < EX_BREG0 + 32) {
        f.reg = op - EX_BREG0;
    } else if (op == EX_BREGX) {
        f.reg = cursor_uleb(&c);
    } else {
        return f;
    }
    f.offset = cursor_sleb(&c);
    while (c.len > 0) {
        if (!step_form(&f, &c)) {
            return f;
        }
    }
    f.known = !c.short_read;
    return f;
}

static bool fits32(int64_t value)
{
    return value >= INT32_MIN && value <= INT32_MAX;
}

/* The PLT of x86-64, `SP + 8 + ((ip & 15) >= N) * 8`: one FDE covers all entries, each of which
 * pushes a word at its byte N. Linkers differ in N with the entry's instructions. */
static bool is_plt(const struct cfi_machine *machine, struct cursor c, uint8_t *threshold)
{
    const unsigned char *p = c.ptr;
    if (c.len != 11 || p[0] != EX_BREG0 + machine->sp || p[1] != 8 ||
        p[2] != EX_BREG0 + machine->ip || p[3] != 0 || machine->ip == machine->sp) {
        return false;
    }
    /* lit15 and litN ge lit3 shl plus */
    *threshold = (uint8_t)(p[6] - EX_LIT0);
    return p[4] == EX_LIT0 + 15 && p[5] == 0x1a && *threshold < 16 && p[7] == 0x2a &&
           p[8] == EX_LIT0 + 3 && p[9] == 0x24 && p[10] == EX_PLUS;
}

/* `*(SP + k + index * 8) + addend`, where a register holds the index (OpenSSL's multiplications). Rules
 * have no room for it; the word is found by what it is. */
static bool is_indexed(const struct cfi_machine *machine, struct cursor c, int64_t *addend)
{
    enum { LIT8_MUL_PLUS_DEREF = 0x06221e38 };
    bool by_sp = cursor_u8(&c) == EX_BREG0 + machine->sp && cursor_sleb(&c) >= 0;
    uint8_t index = cursor_u8(&c);
    bool by_index = index >= EX_BREG0 && index < EX_BREG0 + 32 && cursor_sleb(&c) == 0;
    bool counted = cursor_u32(&c) == LIT8_MUL_PLUS_DEREF && cursor_u8(&c) == EX_PLUS_UCONST;
    *addend = (int64_t)cursor_uleb(&c);
    return by_sp && by_index && counted && !c.short_read && c.len == 0 && *addend <= INT16_MAX;
}

static void set_cfa(struct cfi_state *s, uint64_t reg, int64_t offset)
{
    bool fits = reg <= UINT8_MAX && fits32(offset);
    s->cfa_kind = fits ? RULE_CFA : RULE_NONE;
    s->cfa_reg = (uint8_t)reg;
    s->cfa = fits ? (int32_t)offset : 0;
    s->addend = 0;
}

static void set_cfa_expression(const struct cfi_machine *machine, struct cfi_state *s,
                               struct cursor expression)
{
    uint8_t threshold;
    if (is_plt(machine, expression, &threshold)) {
        set_cfa(s, machine->sp, threshold);
        s->cfa_kind = RULE_PLT;
        return;
    }
    int64_t addend;
    if (is_indexed(machine, expression, &addend)) {
        set_cfa(s, machine->sp, RULE_CFA_SOMEWHERE);
        s->cfa_kind = RULE_DEREF;
        s->addend = (int32_t)addend;
        return;
    }
    struct form f = form_of(expression);
    set_cfa(s, f.reg, f.offset);
    if (!f.known || !fits32(f.addend)) {
        s->cfa_kind = RULE_NONE;
    } else if (f.deref && s->cfa_kind == RULE_CFA) {
        s->cfa_kind = RULE_DEREF;
        s->addend = (int32_t)f.addend;
    }
}

static struct cfi_place place_of(enum cfi_place_kind kind, uint64_t reg, int64_t offset)
{
    if (reg > UINT8_MAX || !fits32(offset)) {
        return (struct cfi_place){.kind = CFI_UNKNOWN};
    }
    return (struct cfi_place){(uint8_t)kind, (uint8_t)reg, (int32_t)offset};
}

static struct cfi_place place_of_expression(struct cursor expression)
{
    struct form f = form_of(expression);
    return f.known && !f.deref ? place_of(CFI_AT_REGISTER, f.reg, f.offset)
                               : (struct cfi_place){.kind = CFI_UNKNOWN};
}

struct machine_run {
    const struct cfi_machine *machine;
    const struct cfi_cie *cie;
    struct cfi_state *state;
    struct cfi_state remembered[CFI_REMEMBERED_MAX];
    unsigned depth;
    bool broken;
};

static struct cfi_place *place_for(struct machine_run *r, uint64_t reg)
{
    if (reg == r->cie->ra_column) {
        return &r->state->ra;
    }
    return reg == r->machine->fp ? &r->state->fp : NULL;
}

static void set_place(struct machine_run *r, uint64_t reg, struct cfi_place place)
{
    struct cfi_place *at = place_for(r, reg);
    if (at != NULL) {
        *at = place;
    }
}

static void restore(struct machine_run *r, uint64_t reg)
{
    set_place(r, reg, reg == r->cie->ra_column ? r->cie->initial.ra : r->cie->initial.fp);
}

static int64_t factored(const struct machine_run *r, uint64_t value)
{
    return (int64_t)(value * (uint64_t)r->cie->data_align);
}

static void set_offset(struct machine_run *r, uint64_t reg, int64_t offset)
{
    set_place(r, reg, place_of(CFI_AT_CFA, 0, offset));
}

static struct cursor take_block(struct cursor *c)
{
    uint64_t len = take_uleb(c);
    const void *bytes = cursor_take(c, len);
    return cursor_of(bytes, bytes == NULL ? 0 : len);
}

static void remember(struct machine_run *r)
{
    r->broken = r->depth == CFI_REMEMBERED_MAX;
    if (!r->broken) {
        r->remembered[r->depth++] = *r->state;
    }
}

static void restore_state(struct machine_run *r)
{
    r->broken = r->depth == 0;
    if (!r->broken) {
        *r->state = r->remembered[--r->depth];
    }
}

/* The offset of a CFA that is an expression cannot be changed. */
static void redefine_cfa(struct machine_run *r, uint64_t reg, int64_t offset)
{
    if (r->state->cfa_kind == RULE_CFA) {
        set_cfa(r->state, reg, offset);
    }
}

static void run_cfa(struct machine_run *r, struct cursor *c, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case OP_DEF_CFA:
        reg = take_uleb(c);
        set_cfa(r->state, reg, (int64_t)take_uleb(c));
        break;
    case OP_DEF_CFA_SF:
        reg = take_uleb(c);
        set_cfa(r->state, reg, factored(r, (uint64_t)cursor_sleb(c)));
        break;
    case OP_DEF_CFA_REGISTER:
        redefine_cfa(r, take_uleb(c), r->state->cfa);
        break;
    case OP_DEF_CFA_OFFSET:
        redefine_cfa(r, r->state->cfa_reg, (int64_t)take_uleb(c));
        break;
    case OP_DEF_CFA_OFFSET_SF:
        redefine_cfa(r, r->state->cfa_reg, factored(r, (uint64_t)cursor_sleb(c)));
        break;
    default: /* OP_DEF_CFA_EXPRESSION */
        set_cfa_expression(r->machine, r->state, take_block(c));
        break;
    }
}

static void run_register(struct machine_run *r, struct cursor *c, uint8_t op)
{
    uint64_t reg = take_uleb(c);
    switch (op) {
    case OP_OFFSET_EXTENDED:
        set_offset(r, reg, factored(r, take_uleb(c)));
        break;
    case OP_OFFSET_EXTENDED_SF:
        set_offset(r, reg, factored(r, (uint64_t)cursor_sleb(c)));
        break;
    case OP_NEGATIVE_OFFSET:
        set_offset(r, reg, (int64_t)(0 - (uint64_t)factored(r, take_uleb(c))));
        break;
    case OP_RESTORE_EXTENDED:
        restore(r, reg);
        break;
    case OP_UNDEFINED:
        set_place(r, reg, (struct cfi_place){.kind = CFI_UNDEFINED});
        break;
    case OP_SAME:
        set_place(r, reg, (struct cfi_place){.kind = CFI_SAME});
        break;
    case OP_REGISTER:
        set_place(r, reg, place_of(CFI_IN_REGISTER, take_uleb(c), 0));
        break;
    case OP_EXPRESSION:
        set_place(r, reg, place_of_expression(take_block(c)));
        break;
    case OP_VAL_EXPRESSION:
        (void)take_block(c);
        set_place(r, reg, (struct cfi_place){.kind = CFI_UNKNOWN});
        break;
    default: /* OP_VAL_OFFSET, OP_VAL_OFFSET_SF: the operand's sign does not matter here */
        (void)take_uleb(c);
        set_place(r, reg, (struct cfi_place){.kind = CFI_UNKNOWN});
        break;
    }
}

static void run_other(struct machine_run *r, struct cursor *c, uint8_t op)
{
    switch (op) {
    case OP_NOP:
    case OP_NEGATE_RA_STATE: /* signed or not, the address is stripped when it is used */
    case OP_NEGATE_RA_STATE_WITH_PC:
        break;
    case OP_ARGS_SIZE:
        (void)take_uleb(c);
        break;
    case OP_REMEMBER:
        remember(r);
        break;
    case OP_RESTORE_STATE:
        restore_state(r);
        break;
    case OP_DEF_CFA:
    case OP_DEF_CFA_SF:
    case OP_DEF_CFA_REGISTER:
    case OP_DEF_CFA_OFFSET:
    case OP_DEF_CFA_OFFSET_SF:
    case OP_DEF_CFA_EXPRESSION:
        run_cfa(r, c, op);
        break;
    case OP_OFFSET_EXTENDED:
    case OP_OFFSET_EXTENDED_SF:
    case OP_NEGATIVE_OFFSET:
    case OP_RESTORE_EXTENDED:
    case OP_UNDEFINED:
    case OP_SAME:
    case OP_REGISTER:
    case OP_EXPRESSION:
    case OP_VAL_OFFSET:
    case OP_VAL_OFFSET_SF:
    case OP_VAL_EXPRESSION:
        run_register(r, c, op);
        break;
    default: /* its operands are not known, so neither is the rest */
        r->broken = true;
    }
}

/* How far the location moves, in units of code_align; *absolute: to there. */
static bool is_advance(struct cursor *c, uint8_t op, uint64_t *delta)
{
    if ((op & 0xc0) == OP_ADVANCE) {
        *delta = op & 0x3f;
        return true;
    }
    switch (op) {
    case OP_ADVANCE1:
        *delta = take_u8(c);
        return true;
    case OP_ADVANCE2:
        *delta = cursor_u16(c);
        return true;
    case OP_ADVANCE4:
        *delta = cursor_u32(c);
        return true;
    case OP_ADVANCE8:
        *delta = cursor_u64(c);
        return true;
    default:
        return false;
    }
}

static bool fits16(int64_t value)
{
    return value >= INT16_MIN && value <= INT16_MAX;
}

/* The distance of a saved register from the CFA; false where it stands by another base. */
static bool distance(const struct cfi_state *s, const struct cfi_place *place, int64_t *out)
{
    *out = place->offset;
    if (place->kind == CFI_AT_REGISTER && s->cfa_kind == RULE_CFA && place->reg == s->cfa_reg) {
        *out -= s->cfa;
        return true;
    }
    return place->kind == CFI_AT_CFA;
}

/* From the register that the CFA is computed from, where the CFA is too far away. */
static bool is_near_base(const struct cfi_state *s, int64_t at)
{
    return s->cfa_kind == RULE_CFA && fits16(at + s->cfa);
}

static bool set_ra(const struct cfi_state *s, const struct cfi_place *ra, struct unwind_rule *out)
{
    int64_t at;
    if (ra->kind == CFI_IN_REGISTER) {
        out->ra_place = RA_REGISTER;
        out->ra = ra->reg;
        return true;
    }
    if (!distance(s, ra, &at)) {
        return false;
    }
    if (fits16(at)) {
        out->ra_place = RA_AT_CFA;
        out->ra = (int16_t)at;
        return true;
    }
    out->ra_place = RA_AT_BASE;
    out->ra = (int16_t)(at + s->cfa);
    return is_near_base(s, at);
}

/* Compilers leave the rule of a register in place when an epilogue has popped it: a slot below SP
 * means that the register has its value back. (Memory below SP is not sampled either.) */
static bool is_popped(const struct cfi_machine *machine, const struct cfi_state *s, int64_t at)
{
    return s->cfa_kind == RULE_CFA && s->cfa_reg == machine->sp && at + s->cfa < 0;
}

static void set_saved_fp(const struct cfi_machine *machine, const struct cfi_state *s, int64_t at,
                         struct unwind_rule *out)
{
    if (is_popped(machine, s, at)) {
        out->fp_place = FP_SAME;
    } else if (fits16(at)) {
        out->fp_place = FP_AT_CFA;
        out->fp = (int16_t)at;
    } else if (is_near_base(s, at)) {
        out->fp_place = FP_AT_BASE;
        out->fp = (int16_t)(at + s->cfa);
    }
}

static void set_fp(const struct cfi_machine *machine, const struct cfi_state *s,
                   struct unwind_rule *out)
{
    int64_t at;
    out->fp_place = FP_UNKNOWN;
    if (s->fp.kind == CFI_UNSPECIFIED || s->fp.kind == CFI_SAME) {
        out->fp_place = FP_SAME; /* a callee-saved register that is not mentioned is not touched */
    } else if (distance(s, &s->fp, &at)) {
        set_saved_fp(machine, s, at, out);
    } else if (s->fp.kind == CFI_AT_REGISTER && s->fp.reg == machine->fp && fits16(at)) {
        out->fp_place = FP_AT_FP;
        out->fp = (int16_t)at;
    }
}

static struct unwind_rule rule_of(const struct machine_run *r)
{
    const struct cfi_state *s = r->state;
    struct unwind_rule rule = {.kind = s->cfa_kind, .cfa_reg = s->cfa_reg, .cfa = s->cfa,
                               .addend = s->addend};
    struct cfi_place ra = s->ra;
    if (r->cie->is_signal) {
        return (struct unwind_rule){.kind = RULE_SIGNAL};
    }
    if (s->ra.kind == CFI_UNDEFINED) {
        return (struct unwind_rule){.kind = RULE_END};
    }
    if (s->ra.kind <= CFI_SAME && r->machine->ra_is_register) {
        ra = place_of(CFI_IN_REGISTER, r->cie->ra_column, 0);
    }
    if (s->cfa_kind == RULE_NONE || !set_ra(s, &ra, &rule)) {
        return (struct unwind_rule){.kind = RULE_NONE};
    }
    set_fp(r->machine, s, &rule);
    return rule;
}

static inline void run_operation(struct machine_run *r, struct cursor *c, uint8_t op)
{
    if ((op & 0xc0) == OP_OFFSET) {
        set_offset(r, op & 0x3f, factored(r, take_uleb(c)));
    } else if ((op & 0xc0) == OP_RESTORE) {
        restore(r, op & 0x3f);
    } else {
        run_other(r, c, op);
    }
}

bool cfi_run(const struct cfi_machine *machine, const struct cfi_cie *cie, struct cursor program,
             struct cfi_state *state, uint64_t start, uint64_t limit,
             bool (*row)(void *, uint64_t, const struct unwind_rule *), void *context)
{
    struct machine_run r;
    r.machine = machine;
    r.cie = cie;
    r.state = state;
    r.depth = 0; /* so that what is remembered need not be cleared */
    r.broken = false;
    struct cursor c = program;
    uint64_t at = start, delta;
    while (c.len > 0 && !r.broken) {
        uint8_t op = take_u8(&c);
        if (is_advance(&c, op, &delta)) {
            /* a location is an address and may not leave the function */
            if (c.short_read || (delta > 0 && cie->code_align > UINT64_MAX / delta)) {
                return false;
            }
            delta *= cie->code_align;
            if (delta == 0 || row == NULL) {
                continue;
            }
            struct unwind_rule rule = rule_of(&r);
            if (!row(context, at, &rule) || delta >= limit - at) {
                return true;
            }
            at += delta;
        } else {
            run_operation(&r, &c, op);
        }
    }
    if (r.broken || c.short_read) {
        return false;
    }
    if (row != NULL) {
        struct unwind_rule rule = rule_of(&r);
        (void)row(context, at, &rule);
    }
    return true;
}
