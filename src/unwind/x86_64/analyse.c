/* What one x86-64 instruction does to the state of a frame: pushes, pops, moves of SP, alignment,
 * branches, calls, traps. Also recognises function starts, padding and entry code. explore.c
 * and analyse.c call it for every instruction. */
#include "unwind/analyse.h"

#include <string.h>

#include "unwind/state.h"
#include "unwind/x86_64/decode.h"

enum { OPCODE_PUSH_IMMEDIATE = 0x6a };

static const uint32_t call_clobbers = 1 << AX | 1 << CX | 1 << DX | 1 << SI | 1 << DI | 1 << R8 |
                                      1 << R9 | 1 << R10 | 1 << R11;

const struct state arch_entry_state = {
    .reg[SP] = {VALUE_CFA, RA_OFFSET},
    .reg[FP] = {VALUE_CALLER_FP, 0},
    .slot[0] = {{VALUE_CFA, RA_OFFSET}, {VALUE_RETURN, 0}},
};
const uint8_t arch_sp_number = SP, arch_fp_number = FP;
const uint8_t arch_register_count = 16;
const uint8_t arch_dwarf_number[STATE_REGISTERS] = {0, 2, 1,  3,  7,  6,  4,  5,
                                                    8, 9, 10, 11, 12, 13, 14, 15};
const uint32_t arch_red_zone = 128;
const uint32_t arch_code_alignment = 1;

static const struct value unknown;

static void forget(struct state *s, uint32_t registers)
{
    for (uint32_t left = registers & 0xffff; left != 0; left &= left - 1) {
        s->reg[__builtin_ctz(left)] = unknown;
    }
}

/* The stack address a memory operand names; a word that moves with an index is none we follow. */
static struct value operand_address(const struct state *s, const struct instruction *in)
{
    return in->base >= 0 && in->index < 0 ? value_plus(s->reg[in->base], in->disp) : unknown;
}

static struct value operand(const struct state *s, const struct instruction *in)
{
    return in->mod == 3 ? s->reg[in->rm] : state_load(s, operand_address(s, in));
}

static void assign_operand(struct state *s, const struct instruction *in, struct value value,
                           int bytes)
{
    if (in->mod == 3) {
        s->reg[in->rm] = value;
    } else {
        state_store(s, operand_address(s, in), value, bytes);
    }
}

static int stack_operand_bytes(const struct instruction *in)
{
    return in->operand_bytes == 2 ? 2 : WORD;
}

static void push(struct state *s, const struct instruction *in, struct value value)
{
    s->reg[SP] = value_plus(s->reg[SP], -stack_operand_bytes(in));
    state_store(s, s->reg[SP], value, stack_operand_bytes(in));
}

static struct value pop(struct state *s, const struct instruction *in)
{
    struct value value = state_load(s, s->reg[SP]);
    s->reg[SP] = value_plus(s->reg[SP], stack_operand_bytes(in));
    return value;
}

/* add, sub and the alignment of SP; everything else that computes a register loses it. */
static struct value computed(const struct state *s, const struct instruction *in)
{
    struct value before = s->reg[in->rm];
    if (in->operand_bytes != 8) {
        return unknown;
    }
    switch (in->reg & 7) {
    case 0:
        return value_plus(before, in->imm);
    case 5:
        return value_plus(before, -in->imm);
    case 4:
        return in->rm == SP && before.kind == VALUE_CFA && in->imm < 0
                   ? (struct value){VALUE_ALIGNED, 0}
                   : unknown;
    default:
        return unknown;
    }
}

static void lea(struct state *s, const struct instruction *in)
{
    s->reg[in->reg] = in->operand_bytes == 8 ? operand_address(s, in) : unknown;
}

static void leave(struct state *s, const struct instruction *in)
{
    s->reg[SP] = s->reg[FP];
    s->reg[FP] = pop(s, in);
}

static void enter(struct state *s, const struct instruction *in)
{
    push(s, in, s->reg[FP]);
    s->reg[FP] = s->reg[SP];
    s->reg[SP] = value_plus(s->reg[SP], -in->imm);
}

static bool frame_is_gone(const struct state *s)
{
    return s->reg[SP].kind == VALUE_CFA && s->reg[SP].off == RA_OFFSET;
}

bool arch_is_entry_like(const struct state *s)
{
    return frame_is_gone(s) && s->reg[FP].kind == VALUE_CALLER_FP;
}

/* Code that sets FP to 0 where nobody's FP has been saved begins a stack: _start, a new thread. */
static void clear(struct state *s, const struct instruction *in)
{
    s->end = s->end || (in->rm == FP && arch_is_entry_like(s) && !s->no_end);
    s->reg[in->rm] = unknown;
}

/* Known not to be as it was at the function's start. */
static bool frame_stands(const struct state *s)
{
    return (s->reg[SP].kind != VALUE_UNKNOWN && !frame_is_gone(s)) ||
           s->reg[FP].kind == VALUE_CFA || s->reg[FP].kind == VALUE_ALIGNED;
}

static void return_from(struct state *s, struct step *out)
{
    out->flow = FLOW_RETURN;
    out->broken = s->end || frame_stands(s);
}

/* The callee may use all that is below SP, and the registers that the convention gives it. */
static void call(struct state *s, struct step *out)
{
    out->flow = FLOW_CALL;
    state_drop_below(s, s->reg[SP]);
    forget(s, call_clobbers);
}

/* A call through the global offset table is known by its slot. */
static bool names_slot(const struct instruction *in)
{
    return in->mod != 3 && in->rip_relative;
}

static uint64_t slot_of(const struct instruction *in, uint64_t next)
{
    return next + (uint64_t)(int64_t)in->disp;
}

static void group_ff(struct state *s, const struct instruction *in, uint64_t next,
                     struct step *out)
{
    switch (in->reg & 7) {
    case 2:
    case 3:
        call(s, out);
        out->has_target = out->through_pointer = names_slot(in);
        out->target = slot_of(in, next);
        break;
    case 4:
    case 5:
        out->flow = FLOW_INDIRECT;
        break;
    case 6:
        push(s, in, operand(s, in));
        break;
    default:
        forget(s, x86_writes(in));
        break;
    }
}

/* `cmp SP, register`: a loop that touches the pages of a large frame ends when they are equal. */
static void compare(struct state *s, const struct instruction *in)
{
    bool wide = in->mod == 3 && in->operand_bytes == 8;
    s->compared = 0;
    if (wide && in->rm == SP) {
        s->compared = (uint8_t)(1 + in->reg);
    } else if (wide && in->reg == SP) {
        s->compared = (uint8_t)(1 + in->rm);
    }
}

static void move(struct state *s, const struct instruction *in)
{
    bool wide = in->operand_bytes == 8, to_register = in->opcode == 0x8b;
    struct value value = to_register ? operand(s, in) : s->reg[in->reg];
    value = wide ? value : unknown;
    if (to_register) {
        s->reg[in->reg] = value;
    } else {
        assign_operand(s, in, value, in->operand_bytes);
    }
}

static void branch(const struct instruction *in, enum flow flow, uint64_t next, struct step *out)
{
    out->flow = (uint8_t)flow;
    out->has_target = true;
    out->target = next + (uint64_t)in->imm;
}

/* `call` of the next instruction, which pops: only fetches the instruction pointer. */
static bool fetches_ip(const struct instruction *in, const unsigned char *next, size_t len)
{
    return in->map == MAP_ONE && in->opcode == 0xe8 && !in->vector && in->imm == 0 && len >= 2 &&
           ((next[0] & 0xf8) == 0x58 || (next[0] == 0x41 && (next[1] & 0xf8) == 0x58));
}

static bool is_jcc(const struct instruction *in)
{
    return (in->map == MAP_ONE && in->opcode >= 0x70 && in->opcode <= 0x7f) ||
           (in->map == MAP_0F && in->opcode >= 0x80 && in->opcode <= 0x8f);
}

/* Pushes, pops and frames; false for other instructions. */
static bool apply_stack(struct state *s, const struct instruction *in)
{
    switch (in->opcode) {
    case 0x50 ... 0x57:
        push(s, in, s->reg[in->rm]);
        return true;
    case 0x58 ... 0x5f:
        s->reg[in->rm] = pop(s, in);
        return true;
    case 0x68:
    case 0x6a:
    case 0x9c: /* flags */
        push(s, in, unknown);
        return true;
    case 0x8f:
        assign_operand(s, in, pop(s, in), stack_operand_bytes(in));
        return true;
    case 0x9d:
        (void)pop(s, in);
        return true;
    case 0xc8:
        enter(s, in);
        return true;
    case 0xc9:
        leave(s, in);
        return true;
    default:
        return false;
    }
}

/* What does not simply go on; false for other instructions. */
static bool apply_flow(struct state *s, const struct instruction *in, uint64_t next,
                       struct step *out)
{
    switch (in->opcode) {
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcf:
        return_from(s, out);
        return true;
    case 0xcc:
        out->flow = FLOW_TRAP;
        return true;
    case 0xe0 ... 0xe3:
        branch(in, FLOW_BRANCH, next, out);
        forget(s, 1 << CX);
        return true;
    case 0xe8:
        call(s, out);
        branch(in, FLOW_CALL, next, out);
        return true;
    case 0xe9:
    case 0xeb:
        branch(in, FLOW_JUMP, next, out);
        return true;
    case 0xf4: /* how libc stops; its compiler may think that control comes back */
        out->flow = s->end ? FLOW_TRAP : FLOW_CALL;
        return true;
    case 0xff:
        group_ff(s, in, next, out);
        return true;
    default:
        return false;
    }
}

/* Moves and sums that a frame may be known by; false for other instructions. */
static bool apply_values(struct state *s, const struct instruction *in, uint64_t next,
                         struct step *out)
{
    bool memory = in->mod != 3;
    switch (in->opcode) {
    case 0x31:
    case 0x33:
        if (!memory && in->reg == in->rm) {
            clear(s, in);
        }
        return !memory && in->reg == in->rm;
    case 0x39:
    case 0x3b:
        compare(s, in);
        return true;
    case 0x81:
    case 0x83:
        if (!memory && (in->reg & 7) != 7) {
            s->reg[in->rm] = computed(s, in);
        }
        return !memory && (in->reg & 7) != 7;
    case 0x88:
    case 0xc6:
        if (memory) {
            assign_operand(s, in, unknown, 1);
        }
        return memory;
    case 0x89:
    case 0x8b:
        move(s, in);
        return true;
    case 0x8d:
        lea(s, in);
        return true;
    case 0xc7:
        if (!memory && (in->reg & 7) == 7) { /* xbegin */
            branch(in, FLOW_BRANCH, next, out);
        } else {
            assign_operand(s, in, unknown, in->operand_bytes);
        }
        return true;
    default:
        return false;
    }
}

static void apply_one_byte(struct state *s, const struct instruction *in, uint64_t next,
                           struct step *out)
{
    if (!apply_stack(s, in) && !apply_flow(s, in, next, out) && !apply_values(s, in, next, out)) {
        forget(s, x86_writes(in));
    }
}

static void apply_0f(struct state *s, const struct instruction *in, struct step *out)
{
    switch (in->opcode) {
    case 0x05:
        out->flow = s->signal || s->end ? FLOW_TRAP : FLOW_NEXT; /* a thread's end: exit */
        forget(s, 1 << AX | 1 << CX | 1 << R11);
        return;
    case 0x0b:
    case 0xff:
        out->flow = FLOW_TRAP;
        return;
    case 0xa0:
    case 0xa8:
        push(s, in, unknown);
        return;
    case 0xa1:
    case 0xa9:
        (void)pop(s, in);
        return;
    default:
        forget(s, x86_writes(in));
        return;
    }
}

static bool is_padding(const struct instruction *in)
{
    if (in->map == MAP_0F) {
        return in->opcode == 0x1f;
    }
    if (in->map != MAP_ONE) {
        return false;
    }
    return (in->opcode == 0x90 && in->rm == 0 && in->prefix != 0xf3) || in->opcode == 0xcc ||
           (in->opcode == 0x8d && in->mod != 3 && !in->rip_relative && in->index < 0 &&
            in->disp == 0 && in->base == in->reg) ||
           (in->opcode == 0x87 && in->mod == 3 && in->reg == in->rm);
}

/* mov $15, %rax (%eax); syscall: rt_sigreturn, whose stack pointer is at a signal frame. */
static bool begins_signal_return(const unsigned char *bytes, size_t len)
{
    static const unsigned char wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    static const unsigned char narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
    return (len >= sizeof wide && memcmp(bytes, wide, sizeof wide) == 0) ||
           (len >= sizeof narrow && memcmp(bytes, narrow, sizeof narrow) == 0);
}

static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

static bool begins_with_endbr64(const unsigned char *bytes, size_t len)
{
    return len >= sizeof endbr64 && memcmp(bytes, endbr64, sizeof endbr64) == 0;
}

/* xor FP, FP, perhaps after endbr64. */
static bool begins_stack(const unsigned char *bytes, size_t len)
{
    size_t at = begins_with_endbr64(bytes, len) ? sizeof endbr64 : 0;
    at += len > at && bytes[at] == 0x48;
    return len - at >= 2 && (bytes[at] == 0x31 || bytes[at] == 0x33) && bytes[at + 1] == 0xed;
}

void arch_look_ahead(const unsigned char *bytes, size_t len, struct state *s)
{
    s->signal = s->signal || begins_signal_return(bytes, len);
    s->end = s->end || (!s->no_end && arch_is_entry_like(s) && begins_stack(bytes, len));
}

static void apply(struct state *s, const struct instruction *in, uint64_t next, struct step *out)
{
    uint8_t compared = s->compared;
    s->compared = 0;
    if (is_padding(in) && in->opcode != 0xcc) {
        return;
    }
    if (is_jcc(in)) {
        bool not_equal = (in->opcode & 15) == 5;
        branch(in, FLOW_BRANCH, next, out);
        out->sp_equals = not_equal ? compared : 0;
        s->compared = compared;
    } else if (in->vector) {
        forget(s, x86_writes(in));
    } else if (in->map == MAP_ONE) {
        apply_one_byte(s, in, next, out);
    } else if (in->map == MAP_0F) {
        apply_0f(s, in, out);
    } else {
        forget(s, x86_writes(in));
    }
}

bool arch_step(const unsigned char *bytes, size_t len, uint64_t address, struct state *s,
               struct step *out)
{
    struct instruction in;
    *out = (struct step){.flow = FLOW_NEXT};
    if (!x86_decode(bytes, len, &in)) {
        return false;
    }
    out->len = in.len;
    out->padding = is_padding(&in);
    struct value sp = s->reg[SP];
    if (fetches_ip(&in, bytes + in.len, len - in.len)) {
        in.opcode = OPCODE_PUSH_IMMEDIATE;
    }
    apply(s, &in, address + in.len, out);
    if (!value_equal(sp, s->reg[SP])) {
        state_drop_below(s, s->reg[SP]); /* what was popped may be overwritten at any time */
    }
    return true;
}

static enum flow flow_of(const struct instruction *in)
{
    if (in->vector || in->map > MAP_0F) {
        return FLOW_NEXT;
    }
    if (is_jcc(in)) {
        return FLOW_BRANCH;
    }
    if (in->map == MAP_0F) {
        return in->opcode == 0x0b || in->opcode == 0xff ? FLOW_TRAP : FLOW_NEXT;
    }
    switch (in->opcode) {
    case 0xe0 ... 0xe3:
        return FLOW_BRANCH;
    case 0xe9:
    case 0xeb:
        return FLOW_JUMP;
    case 0xe8:
        return FLOW_CALL;
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcc:
    case 0xcf:
        return FLOW_TRAP;
    case 0xff:
        return (in->reg & 6) == 2 ? FLOW_CALL : (in->reg & 6) == 4 ? FLOW_TRAP : FLOW_NEXT;
    default:
        return FLOW_NEXT;
    }
}

static bool is_one_of(uint8_t number, uint32_t registers)
{
    return (registers >> number & 1) != 0;
}

/* Neither SP nor FP goes in or out, nor a sum of them that is worth following. */
static bool is_plain(const struct instruction *in)
{
    static const uint32_t followed = 1 << SP | 1 << FP, summed = 1 << R10 | 1 << R11;
    bool memory = in->mod != 3;
    bool frame_memory = memory && in->base >= 0 && is_one_of((uint8_t)in->base, followed);
    if (in->vector || in->map >= MAP_0F38) {
        return true;
    }
    if (in->map == MAP_0F) {
        return in->opcode != 0x05 && in->opcode != 0xa0 && in->opcode != 0xa1 &&
               in->opcode != 0xa8 && in->opcode != 0xa9;
    }
    switch (in->opcode) {
    case 0x39:
    case 0x3b:
        return memory || !is_one_of(in->reg, followed | summed);
    case 0x50 ... 0x5f:
    case 0x68:
    case 0x6a:
    case 0x8f:
    case 0x9c:
    case 0x9d:
    case 0xc8:
    case 0xc9:
    case 0xf4:
    case 0xff:
        return false;
    case 0x81:
    case 0x83:
        return memory || !is_one_of(in->rm, followed | summed);
    case 0x89:
    case 0x8b:
        return (memory || in->operand_bytes != 8) && !frame_memory && !is_one_of(in->reg, followed);
    case 0x88:
    case 0xc6:
    case 0xc7:
        return !frame_memory && (in->opcode == 0x88 || (in->reg & 7) == 0);
    case 0x8d:
        return !frame_memory;
    default:
        return true;
    }
}

/* Immediates count too: in programs that do not move they are how a function's address is taken. */
static uint64_t referred(const struct instruction *in, uint64_t next)
{
    if (in->vector || in->map != MAP_ONE) {
        return 0;
    }
    switch (in->opcode) {
    case 0x8d:
        return in->rip_relative ? slot_of(in, next) : 0;
    case 0x68:
    case 0xb8 ... 0xbf:
    case 0xc7:
        return (uint64_t)in->imm;
    default:
        return 0;
    }
}

bool arch_survey(const unsigned char *bytes, size_t len, uint64_t address, struct survey *out)
{
    struct instruction in;
    if (!x86_decode(bytes, len, &in)) {
        return false;
    }
    uint64_t next = address + in.len;
    *out = (struct survey){
        .len = in.len, .flow = (uint8_t)flow_of(&in), .padding = is_padding(&in)};
    if (out->flow == FLOW_NEXT) {
        out->forgets = x86_writes(&in);
        out->plain = !out->padding && is_plain(&in) && (out->forgets & (1 << SP | 1 << FP)) == 0 &&
                     !begins_signal_return(bytes, len);
        out->refers = referred(&in, next);
    } else if (in.map == MAP_ONE && in.opcode == 0xff) {
        out->has_target = out->through_pointer = out->flow == FLOW_CALL && names_slot(&in);
        out->target = slot_of(&in, next);
    } else if (out->flow != FLOW_TRAP) {
        out->has_target = true;
        out->target = next + (uint64_t)in.imm;
    }
    return true;
}

bool arch_looks_like_start(const unsigned char *bytes, size_t len)
{
    struct instruction in;
    if (begins_with_endbr64(bytes, len)) {
        return true;
    }
    if (!x86_decode(bytes, len, &in) || in.map != MAP_ONE || in.vector) {
        return false;
    }
    bool pushes = in.opcode >= 0x50 && in.opcode <= 0x57;
    bool lowers_sp = (in.opcode == 0x81 || in.opcode == 0x83) && in.mod == 3 && in.rm == SP &&
                     (in.reg & 7) == 5;
    return pushes || lowers_sp;
}
