#include "unwind/analyse.h"

#include <string.h>

#include "unwind/aarch64/decode.h"
#include "unwind/state.h"

enum { FP = 29, LR = 30, SP = SP_NUMBER };
enum { WORD = 8, NOP_BYTES = INSTRUCTION_BYTES };

/* x0 to x18 are the callee's; the link register holds the return address of the call. */
static const uint32_t call_clobbers = 0x7ffff | 1u << LR;

const struct state arch_entry_state = {
    .reg[SP] = {VALUE_CFA, 0},
    .reg[FP] = {VALUE_CALLER_FP, 0},
    .reg[LR] = {VALUE_RETURN, 0},
};
const uint8_t arch_sp_number = SP, arch_fp_number = FP;
const uint8_t arch_register_count = 31; /* without SP, which is looked at before */
const uint8_t arch_dwarf_number[STATE_REGISTERS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
const uint32_t arch_red_zone = 0;
const uint32_t arch_code_alignment = INSTRUCTION_BYTES;

static const struct value unknown;

static void forget(struct state *s, uint32_t registers)
{
    for (uint32_t left = registers; left != 0; left &= left - 1) {
        s->reg[__builtin_ctz(left)] = unknown;
    }
}

bool arch_is_entry_like(const struct state *s)
{
    return value_equal(s->reg[SP], arch_entry_state.reg[SP]) &&
           s->reg[FP].kind == VALUE_CALLER_FP && s->reg[LR].kind == VALUE_RETURN;
}

/* Known not to be as it was at the function's start. */
static bool frame_stands(const struct state *s)
{
    bool sp_known = s->reg[SP].kind != VALUE_UNKNOWN;
    return (sp_known && !value_equal(s->reg[SP], arch_entry_state.reg[SP])) ||
           s->reg[FP].kind == VALUE_CFA;
}

/* Numbers of 32 bits and more are none that a frame is moved by. */
static struct value number(int64_t value)
{
    bool fits = value >= 0 && value < VALUE_OFF_MAX;
    return fits ? (struct value){VALUE_NUMBER, (int32_t)value} : unknown;
}

static void set_number(struct state *s, const struct instruction *in)
{
    /* Code that sets FP to 0 where nobody's FP has been saved begins a stack: _start, a thread. */
    if (in->rd == FP && in->imm == 0) {
        s->end = s->end || (s->reg[FP].kind == VALUE_CALLER_FP && !s->no_end &&
                            value_equal(s->reg[SP], arch_entry_state.reg[SP]));
    }
    s->reg[in->rd] = number(in->imm);
}

static void keep_number(struct state *s, const struct instruction *in)
{
    struct value before = s->reg[in->rd];
    if (before.kind != VALUE_NUMBER || in->shift >= 32) {
        s->reg[in->rd] = unknown;
        return;
    }
    s->reg[in->rd] = number((before.off & ~((int64_t)0xffff << in->shift)) | in->imm);
}

static void add_register(struct state *s, const struct instruction *in)
{
    struct value term = in->rm == SP ? unknown : s->reg[in->rm];
    int64_t bytes = in->imm < 0 ? -(int64_t)term.off : term.off;
    s->reg[in->rd] = term.kind == VALUE_NUMBER ? value_plus(s->reg[in->rn], bytes) : unknown;
}

static struct value base_of(const struct state *s, const struct instruction *in)
{
    return in->rn > SP ? unknown : s->reg[in->rn];
}

static struct value stored(const struct state *s, const struct instruction *in, uint8_t number_)
{
    return in->wide && number_ != SP ? s->reg[number_] : unknown;
}

static void load_into(struct state *s, const struct instruction *in, uint8_t number_,
                      struct value at)
{
    if (number_ != SP) {
        s->reg[number_] = in->wide ? state_load(s, at) : unknown;
    }
}

static void access_memory(struct state *s, const struct instruction *in)
{
    struct value base = base_of(s, in), moved = value_plus(base, in->imm);
    struct value at = in->writeback == WRITEBACK_AFTER ? base : moved;
    struct value second = value_plus(at, in->bytes);
    bool general = in->wide || in->writes != 0;
    if (in->operation == OP_STORE) {
        state_store(s, at, stored(s, in, in->rt), in->bytes);
        if (in->pair) {
            state_store(s, second, stored(s, in, in->rt2), in->bytes);
        }
    } else if (general) {
        load_into(s, in, in->rt, at);
        if (in->pair) {
            load_into(s, in, in->rt2, second);
        }
    }
    if (in->writeback != WRITEBACK_NONE) {
        s->reg[in->rn] = moved;
    }
}

static void return_from(struct state *s, struct step *out)
{
    out->flow = FLOW_RETURN;
    out->broken = s->end || frame_stands(s);
}

static void call(struct state *s)
{
    state_drop_below(s, s->reg[SP]);
    forget(s, call_clobbers);
}

static enum flow flow_of(const struct instruction *in)
{
    switch (in->operation) {
    case OP_JUMP:
        return FLOW_JUMP;
    case OP_BRANCH:
        return FLOW_BRANCH;
    case OP_CALL:
    case OP_CALL_REG:
        return FLOW_CALL;
    case OP_JUMP_REG:
        return FLOW_INDIRECT;
    case OP_RETURN:
        return FLOW_RETURN;
    case OP_TRAP:
        return FLOW_TRAP;
    default:
        return FLOW_NEXT;
    }
}

static bool has_target(const struct instruction *in)
{
    return in->operation == OP_JUMP || in->operation == OP_BRANCH || in->operation == OP_CALL;
}

static void apply(struct state *s, const struct instruction *in, struct step *out)
{
    switch (in->operation) {
    case OP_ADD:
        s->reg[in->rd] = value_plus(s->reg[in->rn], in->imm);
        break;
    case OP_ADD_REG:
        add_register(s, in);
        break;
    case OP_MOVE:
        if (in->rd != SP) {
            s->reg[in->rd] = in->rm == SP ? unknown : s->reg[in->rm];
        }
        break;
    case OP_NUMBER:
        set_number(s, in);
        break;
    case OP_KEEP:
        keep_number(s, in);
        break;
    case OP_ADDRESS:
        forget(s, in->rd == SP ? 0 : 1u << in->rd);
        break;
    case OP_STORE:
    case OP_LOAD:
        access_memory(s, in);
        break;
    case OP_CALL:
    case OP_CALL_REG:
        call(s);
        break;
    case OP_RETURN:
        return_from(s, out);
        break;
    case OP_SYSCALL:
        out->flow = s->signal || s->end ? FLOW_TRAP : FLOW_NEXT; /* a thread's end: exit */
        forget(s, 1);
        break;
    default:
        forget(s, in->writes);
        break;
    }
}

bool arch_step(const unsigned char *bytes, size_t len, uint64_t address, struct state *s,
               struct step *out)
{
    struct instruction in;
    if (!a64_decode(bytes, len, &in)) {
        return false;
    }
    *out = (struct step){.len = INSTRUCTION_BYTES,
                         .flow = (uint8_t)flow_of(&in),
                         .has_target = has_target(&in),
                         .padding = in.operation == OP_NOP,
                         .target = address + (uint64_t)in.imm};
    struct value sp = s->reg[SP];
    apply(s, &in, out);
    if (!value_equal(sp, s->reg[SP])) {
        state_drop_below(s, s->reg[SP]); /* what was popped may be overwritten at any time */
    }
    return true;
}

/* Neither SP, FP nor the link register goes in or out. */
static bool is_plain(const struct instruction *in)
{
    static const uint32_t followed = 1u << SP | 1u << FP | 1u << LR;
    const uint32_t noted = (1u << PLAIN_REGISTERS) - 1;
    bool memory = in->operation == OP_LOAD || in->operation == OP_STORE;
    if (memory) {
        bool frame = in->rn <= SP && (followed >> in->rn & 1) != 0;
        bool saves = in->wide && ((followed >> in->rt & 1) != 0 ||
                                  (in->pair && (followed >> in->rt2 & 1) != 0));
        return !frame && !saves && in->writeback == WRITEBACK_NONE && (in->writes & ~noted) == 0;
    }
    return in->operation == OP_OTHER && (in->writes & ~noted) == 0;
}

bool arch_glance(const unsigned char *bytes, size_t len, uint64_t address, struct glance *out)
{
    struct instruction in;
    if (!a64_decode(bytes, len, &in)) {
        return false;
    }
    enum flow flow = flow_of(&in);
    bool ends = flow == FLOW_INDIRECT || flow == FLOW_RETURN;
    *out = (struct glance){.len = INSTRUCTION_BYTES,
                           .flow = (uint8_t)(ends ? FLOW_TRAP : flow),
                           .has_target = has_target(&in),
                           .padding = in.operation == OP_NOP,
                           .plain = is_plain(&in),
                           .forgets = in.writes,
                           .target = address + (uint64_t)in.imm};
    if (in.operation == OP_ADDRESS && in.shift == 0) {
        out->refers = address + (uint64_t)in.imm;
    }
    return true;
}

static uint32_t word_at(const unsigned char *bytes, size_t len)
{
    return len < INSTRUCTION_BYTES ? 0
                                   : bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                                         (uint32_t)bytes[3] << 24;
}

enum {
    WORD_PACIASP = (int)0xd503233f,
    WORD_PACIBSP = (int)0xd503237f,
    WORD_CLEAR_FP = (int)0xd280001d, /* mov x29, #0 */
};

static bool is_bti(uint32_t word)
{
    return (word & 0xffffff3f) == 0xd503241f;
}

static bool is_entry_mark(uint32_t word)
{
    return word == (uint32_t)WORD_PACIASP || word == (uint32_t)WORD_PACIBSP || is_bti(word);
}

void arch_look_ahead(const unsigned char *bytes, size_t len, struct state *s)
{
    static const unsigned char signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
    uint32_t word = word_at(bytes, len);
    if (is_bti(word)) {
        word = word_at(bytes + INSTRUCTION_BYTES, len - INSTRUCTION_BYTES);
    }
    s->signal = s->signal || (len >= sizeof signal_return &&
                              memcmp(bytes, signal_return, sizeof signal_return) == 0);
    s->end = s->end ||
             (!s->no_end && arch_is_entry_like(s) && word == (uint32_t)WORD_CLEAR_FP);
}

bool arch_looks_like_start(const unsigned char *bytes, size_t len)
{
    struct instruction in;
    if (!a64_decode(bytes, len, &in)) {
        return false;
    }
    bool lowers_sp = in.operation == OP_ADD && in.rd == SP && in.rn == SP && in.imm < 0;
    bool saves = in.operation == OP_STORE && in.rn == SP && in.writeback == WRITEBACK_BEFORE;
    return lowers_sp || saves || is_entry_mark(word_at(bytes, len));
}

/*
 * Prologues of code with frame pointers: words under masks. An address within one of them, after
 * its first `marks` (paciasp, bti), has the rule that following it from its start gives.
 */
enum { PATTERN_WORDS = 4 };

struct masked {
    uint32_t mask, word;
};

struct pattern {
    struct masked words[PATTERN_WORDS];
    uint8_t count;
    uint8_t last; /* addresses of words up to this one are told; behind it FP is right */
};

#define STP_FP_LR_BEFORE {0xffc07fff, 0xa9807bfd}    /* stp x29, x30, [sp, #-n]! */
#define STP_FP_LR {0xffc07fff, 0xa9007bfd}           /* stp x29, x30, [sp, #n] */
#define SUB_SP {0xff8003ff, 0xd10003ff}              /* sub sp, sp, #n */
#define ADD_FP_SP {0xff8003ff, 0x910003fd}           /* add x29, sp, #n; mov x29, sp */
#define GO_LDR_LIMIT {0xffffffff, 0xf9400b90}        /* ldr x16, [x28, #16] */
#define GO_CMP_SP {0xffffffff, 0xeb3063ff}           /* cmp sp, x16 */
#define GO_SUB_X17 {0xff8003ff, 0xd10003f1}          /* sub x17, sp, #n */
#define GO_CMP_X17 {0xffffffff, 0xeb10023f}          /* cmp x17, x16 */
#define BRANCH_LOWER {0xff00001e, 0x54000002}        /* b.lo and b.hs; b.ls: 8 and 9 */
#define BRANCH_LOWER_SAME {0xff00001e, 0x54000008}
#define GO_STR_LR {0xffe00fff, 0xf8000ffe}           /* str x30, [sp, #-n]! */
#define GO_STUR_FP {0xffffffff, 0xf81f83fd}          /* stur x29, [sp, #-8] */
#define GO_SUB_FP {0xffffffff, 0xd10023fd}           /* sub x29, sp, #8 */
#define GO_SUB_X20 {0xff8003ff, 0xd10003f4}          /* sub x20, sp, #n */
#define GO_STP_X20 {0xffffffff, 0xa93ffa9d}          /* stp x29, x30, [x20, #-8] */
#define GO_MOV_SP {0xffffffff, 0x9100029f}           /* mov sp, x20 */

static const struct pattern patterns[] = {
    {{STP_FP_LR_BEFORE, ADD_FP_SP}, 2, 1},
    {{SUB_SP, STP_FP_LR, ADD_FP_SP}, 3, 2},
    {{GO_LDR_LIMIT, GO_CMP_SP, BRANCH_LOWER_SAME}, 3, 2},
    {{GO_LDR_LIMIT, GO_CMP_SP, BRANCH_LOWER}, 3, 2},
    {{GO_LDR_LIMIT, GO_SUB_X17, GO_CMP_X17, BRANCH_LOWER_SAME}, 4, 3},
    {{GO_LDR_LIMIT, GO_SUB_X17, GO_CMP_X17, BRANCH_LOWER}, 4, 3},
    {{GO_STR_LR, GO_STUR_FP, GO_SUB_FP}, 3, 2},
    {{GO_SUB_X20, GO_STP_X20, GO_MOV_SP, GO_SUB_FP}, 4, 3},
};

static bool pattern_matches(const struct code *code, size_t at, const struct pattern *pattern)
{
    for (size_t i = 0; i < pattern->count; i++) {
        size_t place = at + i * INSTRUCTION_BYTES;
        if (place > code->len || code->len - place < INSTRUCTION_BYTES ||
            (word_at(code->bytes + place, INSTRUCTION_BYTES) & pattern->words[i].mask) !=
                pattern->words[i].word) {
            return false;
        }
    }
    return true;
}

/* The rule after following `count` instructions from `at`, where a function begins. */
static struct unwind_rule follow(const struct code *code, size_t at, size_t count)
{
    struct state s = arch_entry_state;
    for (size_t i = 0; i < count; i++, at += INSTRUCTION_BYTES) {
        struct step step;
        if (!arch_step(code->bytes + at, code->len - at, code->address + at, &s, &step)) {
            return (struct unwind_rule){.kind = RULE_NONE};
        }
    }
    return state_rule(&s);
}

static bool in_prologue(const struct code *code, size_t at, struct unwind_rule *rule)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        for (size_t before = 0; before <= patterns[i].last; before++) {
            size_t bytes = before * INSTRUCTION_BYTES;
            if (bytes <= at && pattern_matches(code, at - bytes, &patterns[i])) {
                *rule = follow(code, at - bytes, before);
                return true;
            }
        }
    }
    return false;
}

/* From here to a return in a straight line, without a change of FP or the link register: the frame
 * is gone, or there is none. */
static bool straight_to_return(const struct code *code, size_t at, struct unwind_rule *rule)
{
    enum { STRAIGHT_MAX = 16 };
    struct state s = arch_entry_state;
    for (int i = 0; i < STRAIGHT_MAX && at < code->len; i++, at += INSTRUCTION_BYTES) {
        struct step step;
        struct value sp = s.reg[SP];
        bool same = s.reg[FP].kind == VALUE_CALLER_FP && s.reg[LR].kind == VALUE_RETURN;
        if (!arch_step(code->bytes + at, code->len - at, code->address + at, &s, &step)) {
            return false;
        }
        if (step.flow == FLOW_RETURN && same && sp.kind == VALUE_CFA && sp.off >= 0) {
            *rule = (struct unwind_rule){.kind = RULE_CFA,
                                         .cfa_reg = SP,
                                         .cfa = sp.off,
                                         .ra_place = RA_REGISTER,
                                         .ra = LR,
                                         .fp_place = FP_SAME};
            return true;
        }
        if (step.flow != FLOW_NEXT) {
            return false;
        }
    }
    return false;
}

struct unwind_rule analyse_leaf(const struct code *code, uint64_t address)
{
    struct unwind_rule rule = {.kind = RULE_NONE};
    uint64_t at = address - code->address;
    if (at >= code->len || code->len - at < INSTRUCTION_BYTES) {
        return rule;
    }
    size_t begin = at;
    while (begin < at + 2 * NOP_BYTES &&
           is_entry_mark(word_at(code->bytes + begin, code->len - begin))) {
        begin += INSTRUCTION_BYTES;
    }
    if (begin > at && in_prologue(code, begin, &rule)) {
        return rule; /* the marks change nothing */
    }
    if (!in_prologue(code, at, &rule)) {
        (void)straight_to_return(code, at, &rule);
    }
    return rule;
}

bool analyse_is_behind_call(const struct code *code, uint64_t address)
{
    struct instruction in;
    uint64_t at = address - code->address;
    return at >= INSTRUCTION_BYTES && at <= code->len &&
           a64_decode(code->bytes + at - INSTRUCTION_BYTES, INSTRUCTION_BYTES, &in) &&
           (in.operation == OP_CALL || in.operation == OP_CALL_REG);
}
