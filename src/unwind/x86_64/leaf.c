/* Code without tables, at the sampled instruction: is this a prologue or an epilogue, in which the
 * frame pointer does not (or no longer) lead to the caller? Looks at a few x86-64 instructions
 * around it. Used for generated code. */
#include "unwind/analyse.h"

#include <string.h>

#include "unwind/state.h"
#include "unwind/x86_64/decode.h"

/*
 * Prologues and epilogues of code with frame pointers: bytes before `|` stand before the address,
 * those after it at the address, `?` is any digit. `cfa` is from SP, `fp_saved` tells that the
 * caller's FP is at CFA - 16.
 */
struct pattern {
    const char *bytes;
    uint8_t cfa;
    bool fp_saved;
};

static const struct pattern patterns[] = {
    {"|554889e5", 8, false},         /* push FP; mov SP, FP */
    {"|55488bec", 8, false},
    {"|f30f1efa554889e5", 8, false}, /* endbr64 before it */
    {"|f30f1efa55488bec", 8, false},
    {"55|4889e5", 16, true},
    {"55|488bec", 16, true},
    {"|4883ec08ffd1", 8, false},     /* a trampoline: sub 8, SP; call *CX */
    {"4883ec08|ffd1", 16, false},
    {"|493b661076", 8, false},       /* Go: cmp 16(R14), SP; jbe */
    {"|493b66100f86", 8, false},
    {"493b6610|76", 8, false},
    {"493b6610|0f86", 8, false},
    {"|4c8d6424??4d3b6610", 8, false}, /* large frames: lea -n(SP), R12; cmp 16(R14), R12 */
    {"4c8d6424??|4d3b6610", 8, false},
    {"|4c8da424????????4d3b6610", 8, false},
    {"4c8da424????????|4d3b6610", 8, false},
    {"4d3b6610|76", 8, false},
    {"4d3b6610|0f86", 8, false},
    {"|64488b0c25f8ffffff483b6110", 8, false}, /* Go before 1.17: mov FS:-8, CX; cmp 16(CX), SP */
    {"64488b0c25f8ffffff|483b6110", 8, false},
    {"483b6110|76", 8, false},
    {"483b6110|0f86", 8, false},
};

/* leave, or pop FP; a tail call. */
static const struct pattern tail_calls[] = {
    {"c9|e9", 8, false},  {"5d|e9", 8, false},  {"c9|ff2", 8, false},
    {"5d|ff2", 8, false}, {"c9|ffe", 8, false}, {"5d|ffe", 8, false},
};

static int digit_value(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

/* The bytes at `at` as digits; fewer than the digits ask for: no match. An odd digit is the first
 * of its byte. */
static bool digits_match(const struct code *code, size_t at, const char *digits, size_t count)
{
    if (at > code->len || (count + 1) / 2 > code->len - at) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        int half = code->bytes[at + i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
        if (digits[i] != '?' && digit_value(digits[i]) != half) {
            return false;
        }
    }
    return true;
}

static bool pattern_matches(const struct code *code, size_t at, const char *bytes)
{
    size_t before = (size_t)(strchr(bytes, '|') - bytes);
    const char *after = bytes + before + 1;
    return before / 2 <= at && digits_match(code, at - before / 2, bytes, before) &&
           digits_match(code, at, after, strlen(after));
}

static bool decode_at(const struct code *code, size_t at, struct instruction *in)
{
    return at < code->len && x86_decode(code->bytes + at, code->len - at, in);
}

/* leave and pop FP are single bytes, which may as well end another instruction, say xor CX, CX. */
static bool is_end_of_another(const struct code *code, size_t at)
{
    enum { LONGEST = 4 };
    for (size_t len = 2; len <= LONGEST && len <= at; len++) {
        struct instruction in;
        if (decode_at(code, at - len, &in) && in.len == len && in.has_modrm && in.mod == 3) {
            return true;
        }
    }
    return false;
}

static struct unwind_rule frame_rule(int64_t cfa, bool fp_saved)
{
    struct unwind_rule rule = {
        .kind = RULE_CFA,
        .cfa_reg = arch_dwarf_number[SP],
        .cfa = (int32_t)cfa,
        .ra_place = RA_AT_CFA,
        .ra = RA_OFFSET,
        .fp_place = fp_saved ? FP_AT_CFA : FP_SAME,
        .fp = fp_saved ? 2 * RA_OFFSET : 0,
    };
    return rule;
}

static bool moves_fp(const struct instruction *in, uint8_t opcode)
{
    return !in->vector && in->map == MAP_ONE && in->opcode == opcode && in->operand_bytes == 8 &&
           in->reg == FP && in->mod != 3 && in->base == SP && in->index < 0 && in->disp >= 0;
}

/* Go before 1.21: sub $n, SP; mov FP, n-8(SP); lea n-8(SP), FP. */
static bool go_prologue(const struct code *code, size_t at, struct unwind_rule *rule)
{
    struct instruction in, next;
    if (!decode_at(code, at, &in)) {
        return false;
    }
    if (moves_fp(&in, 0x89) && decode_at(code, at + in.len, &next) && moves_fp(&next, 0x8d) &&
        next.disp == in.disp) {
        *rule = frame_rule((int64_t)in.disp + 16, false);
        return true;
    }
    bool lowers_sp = in.map == MAP_ONE && (in.opcode == 0x81 || in.opcode == 0x83) &&
                     in.mod == 3 && in.rm == SP && (in.reg & 7) == 5;
    if (lowers_sp && decode_at(code, at + in.len, &next) && moves_fp(&next, 0x89) &&
        next.disp == in.imm - WORD) {
        *rule = frame_rule(WORD, false);
        return true;
    }
    size_t store_bytes = in.disp == (int8_t)in.disp ? 5 : 8;
    if (moves_fp(&in, 0x8d) && at >= store_bytes && decode_at(code, at - store_bytes, &next) &&
        next.len == store_bytes && moves_fp(&next, 0x89) && next.disp == in.disp) {
        *rule = frame_rule((int64_t)in.disp + 16, true);
        return true;
    }
    return false;
}

/* From here to a return in a straight line, without a change of FP: its frame is gone, or there is
 * none, and SP tells the caller. */
static bool straight_to_return(const struct code *code, size_t at, struct unwind_rule *rule)
{
    enum { STRAIGHT_MAX = 16 };
    struct state s = {.reg[SP] = {VALUE_ALIGNED, 0}, .reg[FP] = {VALUE_CALLER_FP, 0}};
    for (int i = 0; i < STRAIGHT_MAX && at < code->len; i++) {
        struct step step;
        struct value sp = s.reg[SP];
        if (!arch_step(code->bytes + at, code->len - at, code->address + at, &s, &step)) {
            return false;
        }
        if (step.flow == FLOW_RETURN) {
            bool known = sp.kind == VALUE_ALIGNED && sp.off >= 0 &&
                         s.reg[FP].kind == VALUE_CALLER_FP;
            *rule = known ? frame_rule((int64_t)sp.off + WORD, false) : *rule;
            return known;
        }
        if (step.flow != FLOW_NEXT) {
            return false;
        }
        at += step.len;
    }
    return false;
}

static const struct pattern *find_pattern(const struct code *code, size_t at)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (pattern_matches(code, at, patterns[i].bytes)) {
            return &patterns[i];
        }
    }
    for (size_t i = 0; i < sizeof tail_calls / sizeof tail_calls[0]; i++) {
        if (pattern_matches(code, at, tail_calls[i].bytes) && !is_end_of_another(code, at)) {
            return &tail_calls[i];
        }
    }
    return NULL;
}

struct unwind_rule analyse_leaf(const struct code *code, uint64_t address)
{
    struct unwind_rule rule = {.kind = RULE_NONE};
    uint64_t at = address - code->address;
    if (at >= code->len) {
        return rule;
    }
    const struct pattern *pattern = find_pattern(code, at);
    if (pattern != NULL) {
        return frame_rule(pattern->cfa, pattern->fp_saved);
    }
    if (!go_prologue(code, at, &rule)) {
        (void)straight_to_return(code, at, &rule);
    }
    return rule;
}

struct unwind_rule analyse_caller(const struct code *code, uint64_t address)
{
    struct unwind_rule rule = {.kind = RULE_NONE};
    (void)straight_to_return(code, address - code->address, &rule);
    return rule;
}

bool analyse_is_behind_call(const struct code *code, uint64_t address)
{
    enum { BEFORE = 8, DIRECT_BYTES = 5, INDIRECT_MIN = 2, INDIRECT_MAX = 7 };
    uint64_t at = address - code->address;
    if (at < BEFORE || at > code->len) {
        return false;
    }
    if (code->bytes[at - DIRECT_BYTES] == 0xe8) {
        return true;
    }
    for (size_t len = INDIRECT_MIN; len <= INDIRECT_MAX; len++) {
        struct instruction in;
        if (code->bytes[at - len] == 0xff && x86_decode(code->bytes + at - len, len, &in) &&
            in.len == len && (in.reg & 7) == 2) {
            return true;
        }
    }
    return false;
}
