/*
 * decode: what AArch64 instructions do to the registers a frame is described by.
 *
 * An instruction is sorted into the few kinds that move the stack pointer, save or load registers
 * there, or branch; of all others only the general register they write is reported.
 *
 * Source: Arm Architecture Reference Manual, chapter C4 (encoding index) and C6.
 */
#ifndef UNWIND_DECODE_H
#define UNWIND_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSTRUCTION_BYTES = 4 };

/* General registers, as instructions number them; 31 is SP only where noted. */
enum { FP = 29, LR = 30, SP = 31 };

enum operation {
    OP_OTHER,
    OP_ADD,      /* rd = rn + imm; 31 is SP in both */
    OP_ADD_REG,  /* rd = rn + rm, or - rm when imm is negative; 31 is SP in rd and rn */
    OP_MOVE,     /* rd = rm */
    OP_NUMBER,   /* rd = imm */
    OP_KEEP,     /* movk: rd = rd with 16 bits replaced by those of imm, from bit `shift` on */
    OP_ADDRESS,  /* rd = address of something: imm is the distance from this instruction */
    OP_STORE,    /* [rn + imm] = rt, and rt2 after it if `pair` */
    OP_LOAD,
    OP_JUMP,
    OP_BRANCH,   /* conditional */
    OP_CALL,
    OP_JUMP_REG,
    OP_CALL_REG,
    OP_RETURN,
    OP_SYSCALL,
    OP_TRAP,
    OP_NOP,
};

enum writeback { WRITEBACK_NONE, WRITEBACK_BEFORE, WRITEBACK_AFTER };

struct instruction {
    uint8_t operation; /* enum operation */
    uint8_t rd, rn, rm;
    uint8_t rt, rt2;
    bool pair, wide;   /* wide: rt and rt2 are 64-bit general registers */
    uint8_t bytes;     /* per register, of loads and stores */
    uint8_t writeback; /* enum writeback */
    uint8_t shift;
    int64_t imm;
    uint32_t writes;   /* other general registers that change, as a mask */
};

/* False: fewer than 4 bytes, or a word that no processor executes. */
bool a64_decode(const unsigned char *bytes, size_t len, struct instruction *out);

/* The instruction's word; 0, which is none, when fewer bytes are left. */
uint32_t a64_word(const unsigned char *bytes, size_t len);

bool a64_is_bti(uint32_t word);

/* bti and pacia(b)sp, with which functions begin; they do not change the frame. */
bool a64_is_entry_mark(uint32_t word);

#endif
