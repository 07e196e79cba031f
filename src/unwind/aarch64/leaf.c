/* Code without tables, at the sampled instruction: is this a prologue or an epilogue, in which the
 * frame pointer does not (or no longer) lead to the caller? Looks at a few AArch64 instructions
 * around it. Used for generated code. */
#include "unwind/analyse.h"

#include "unwind/aarch64/decode.h"
#include "unwind/state.h"

/*
 * Prologues of code with frame pointers: words under masks. An address within one of them has the
 * rule that following it from its start gives.
 */
enum { PATTERN_WORDS = 4 };

struct masked {
    uint32_t mask, word;
};

struct pattern {
    struct masked words[PATTERN_WORDS];
    uint8_t count;
    uint8_t last; /* words up to this one are covered; after it FP is right */
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
            (a64_word(code->bytes + place, INSTRUCTION_BYTES) & pattern->words[i].mask) !=
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
    while (begin < at + 2 * INSTRUCTION_BYTES &&
           a64_is_entry_mark(a64_word(code->bytes + begin, code->len - begin))) {
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

/* What calls has saved LR, and beside it FP, to which FP points. */
struct unwind_rule analyse_caller(const struct code *code, uint64_t address)
{
    (void)code;
    (void)address;
    return (struct unwind_rule){.kind = RULE_NONE};
}

bool analyse_is_behind_call(const struct code *code, uint64_t address)
{
    struct instruction in;
    uint64_t at = address - code->address;
    return at >= INSTRUCTION_BYTES && at <= code->len &&
           a64_decode(code->bytes + at - INSTRUCTION_BYTES, INSTRUCTION_BYTES, &in) &&
           (in.operation == OP_CALL || in.operation == OP_CALL_REG);
}
