/*
 * state: what is known about a frame before an instruction, and how one instruction changes it.
 *
 * The registers and a few words of the stack are known as sums: the CFA, or a stack pointer that
 * was aligned by an unknown amount, plus a constant. So one mechanism follows pushes, frame
 * pointers, realigned stacks, and assembler that keeps the old stack pointer in any register or in
 * memory. Where two ways into an instruction disagree about a value it is unknown from there on.
 *
 * The functions arch_* are those of x86_64/analyse.c and aarch64/analyse.c.
 */
#ifndef UNWIND_STATE_H
#define UNWIND_STATE_H

#include "unwind/rule.h"

#include <stddef.h>

enum value_kind {
    VALUE_UNKNOWN,
    VALUE_CFA,       /* CFA + off */
    VALUE_ALIGNED,   /* the stack pointer as it was after its alignment, + off */
    VALUE_CALLER_FP, /* what the frame pointer register held at the function's start */
    VALUE_RETURN,    /* the return address */
    VALUE_NUMBER,    /* off itself */
};

struct value {
    uint32_t kind : 3; /* enum value_kind */
    int32_t off : 29;  /* frames of up to 256 MiB */
};

enum {
    VALUE_OFF_MAX = 1 << 28,
    STATE_REGISTERS = 32, /* numbered as the processor does */
    PLAIN_REGISTERS = 24,
    STATE_SLOTS = 6,      /* words of the stack whose value is known */
};

struct slot {
    struct value at; /* VALUE_CFA or VALUE_ALIGNED; VALUE_UNKNOWN: not used */
    struct value holds;
};

struct state {
    struct value reg[STATE_REGISTERS];
    struct slot slot[STATE_SLOTS];
    bool end;       /* an outermost frame: nothing returns from here */
    bool no_end;    /* it has been found that something does */
    bool signal;    /* the signal return sequence */
    uint8_t compared; /* 1 + the register SP was just compared with */
};

/* Where an instruction leads. */
enum flow {
    FLOW_NEXT,
    FLOW_CALL,     /* to `target`, or through the pointer there, if it is known; then on */
    FLOW_JUMP,     /* to `target` */
    FLOW_BRANCH,   /* to `target`, or on */
    FLOW_RETURN,
    FLOW_INDIRECT, /* to an address that is unknown: a table's, or another function */
    FLOW_TRAP,     /* ends here: no instruction after it is reached by it */
};

struct step {
    uint32_t len;
    uint8_t flow;        /* enum flow */
    bool has_target;
    bool through_pointer; /* `target` is where the address of the called function stands */
    bool padding;        /* does nothing: stands between functions and before aligned labels */
    bool broken;         /* a return or the like that no correct frame would do */
    uint8_t sp_equals;   /* 1 + the register that SP equals where the branch is not taken */
    uint64_t target;     /* of direct jumps and calls */
};

/* What an instruction shows by itself, without a state. */
struct survey {
    uint32_t len;
    uint8_t flow; /* enum flow; of indirect jumps and returns FLOW_TRAP */
    bool has_target, through_pointer, padding; /* as in struct step */
    bool plain;       /* leads on and changes no more than `forgets`, whatever the state */
    uint32_t forgets; /* registers, as a mask by number, below PLAIN_REGISTERS */
    uint64_t target;
    uint64_t refers;  /* an address that it computes, which may be a function's; 0: none */
};

struct value state_load(const struct state *s, struct value at);

/* The `bytes` bytes at `at` are overwritten with `value`. */
void state_store(struct state *s, struct value at, struct value value, int bytes);

/* Words below `limit`, if both are relative to the same, have lost their values. */
void state_drop_below(struct state *s, struct value limit);

/* Leaves in `into` what both agree on; true when that changed it. */
bool state_meet(struct state *into, const struct state *other);

static inline struct value value_plus(struct value value, int64_t bytes)
{
    int64_t off = value.off + bytes;
    bool sum = value.kind == VALUE_CFA || value.kind == VALUE_ALIGNED;
    bool fits = off >= -VALUE_OFF_MAX && off < VALUE_OFF_MAX;
    return sum && fits ? (struct value){value.kind, (int32_t)off} : (struct value){0};
}

static inline bool value_equal(struct value a, struct value b)
{
    return a.kind == b.kind && a.off == b.off;
}

/* How to step to the caller from here. */
struct unwind_rule state_rule(const struct state *s);

/* The same by nothing but SP, for who does not know the frame pointer. */
struct unwind_rule state_rule_by_sp(const struct state *s);

/* At a function's first instruction. */
extern const struct state arch_entry_state;
extern const uint8_t arch_sp_number, arch_fp_number;           /* in struct state.reg */
extern const uint8_t arch_dwarf_number[STATE_REGISTERS];
extern const uint8_t arch_register_count;
extern const uint32_t arch_red_zone;       /* bytes below SP that signal handlers leave alone */
extern const uint32_t arch_code_alignment; /* of instructions, bytes */

/* Decodes the instruction at `bytes` and applies it. False when it is not one, or cut off. */
bool arch_step(const unsigned char *bytes, size_t len, uint64_t address, struct state *s,
               struct step *out);

bool arch_survey(const unsigned char *bytes, size_t len, uint64_t address, struct survey *out);

/* The frame is as at the function's start: what holds at a return and at a tail call. */
bool arch_is_entry_like(const struct state *s);

/* What must be known about the bytes before the rule of their first instruction is known: that they
 * return from a signal handler, or begin a stack. */
void arch_look_ahead(const unsigned char *bytes, size_t len, struct state *s);

/* The bytes look like a function's first ones. */
bool arch_looks_like_start(const unsigned char *bytes, size_t len);

#endif
