/* What one AArch64 instruction does to the state of a frame: stack pointer, saved registers, branches
 * and calls. Also recognises function starts and entry code. explore.c and
 * analyse.c call it for every instruction. */
#include "unwind/analyse.h"

#include <string.h>

#include "unwind/aarch64/decode.h"
#include "unwind/state.h"

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

static struct value stored(const struct state *s, const struct instruction *in, uint8_t register_)
{
    return in->wide && register_ != SP ? s->reg[register_] : unknown;
}

static void load_into(struct state *s, const struct instruction *in, uint8_t register_,
                      struct value at)
{
    if (register_ != SP) {
        s->reg[register_] = in->wide ? state_load(s, at) : unknown;
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

bool arch_survey(const unsigned char *bytes, size_t len, uint64_t address, struct survey *out)
{
    struct instruction in;
    if (!a64_decode(bytes, len, &in)) {
        return false;
    }
    enum flow flow = flow_of(&in);
    bool ends = flow == FLOW_INDIRECT || flow == FLOW_RETURN;
    *out = (struct survey){.len = INSTRUCTION_BYTES,
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

void arch_look_ahead(const unsigned char *bytes, size_t len, struct state *s)
{
    static const unsigned char signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
    static const uint32_t clear_fp = 0xd280001d; /* mov x29, #0 */
    uint32_t word = a64_word(bytes, len);
    if (a64_is_bti(word)) {
        word = a64_word(bytes + INSTRUCTION_BYTES, len - INSTRUCTION_BYTES);
    }
    s->signal = s->signal || (len >= sizeof signal_return &&
                              memcmp(bytes, signal_return, sizeof signal_return) == 0);
    s->end = s->end ||
             (!s->no_end && arch_is_entry_like(s) && word == clear_fp);
}

bool arch_looks_like_start(const unsigned char *bytes, size_t len)
{
    struct instruction in;
    if (!a64_decode(bytes, len, &in)) {
        return false;
    }
    bool lowers_sp = in.operation == OP_ADD && in.rd == SP && in.rn == SP && in.imm < 0;
    bool saves = in.operation == OP_STORE && in.rn == SP && in.writeback == WRITEBACK_BEFORE;
    return lowers_sp || saves || a64_is_entry_mark(a64_word(bytes, len));
}
