/*
 * decode: lengths and operands of x86-64 instructions, as far as following a function needs them.
 *
 * Every encoding that compilers and libraries' assembler use has its length here: legacy prefixes
 * and REX, the one-byte map, 0F, 0F 38, 0F 3A, 3DNow, VEX, EVEX and XOP. What an instruction
 * computes is the caller's business; `writes` tells which general register it may change.
 *
 * Source: Intel SDM volume 2, chapter 2 and appendix A; AMD APM volume 3 for 3DNow and XOP.
 */
#ifndef UNWIND_DECODE_H
#define UNWIND_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INSTRUCTION_BYTES_MAX = 15 };

/* General registers, as instructions number them. */
enum { AX, CX, DX, BX, SP, FP, SI, DI, R8, R9, R10, R11 };

enum { WORD = 8, RA_OFFSET = -8 /* of the return address from the CFA */ };

enum opcode_map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER };

struct instruction {
    uint8_t len;
    uint8_t map;    /* enum opcode_map */
    uint8_t opcode;
    uint8_t prefix; /* the last of 66, F2, F3; 0: none */
    uint8_t operand_bytes; /* 2, 4 or 8: of operands that are not bytes */
    bool rex;       /* byte registers 4..7 are the low bytes of SP, FP, SI, DI */
    bool vector;    /* VEX, EVEX or XOP */
    bool has_modrm;
    uint8_t mod;
    uint8_t reg;    /* with REX.R; group opcodes look at the low three bits */
    uint8_t rm;     /* register number when mod is 3 */
    int8_t base, index; /* of the memory operand; -1: none */
    bool rip_relative;
    uint8_t vvvv;
    int32_t disp;
    int64_t imm;    /* also the distance of a direct branch */
};

/* False when the bytes are no instruction, or are cut. */
bool x86_decode(const unsigned char *bytes, size_t len, struct instruction *out);

/* The general registers, as a mask by number, that the instruction may change, except for what
 * pushes, pops, calls and returns do to SP. */
uint32_t x86_writes(const struct instruction *in);

#endif
