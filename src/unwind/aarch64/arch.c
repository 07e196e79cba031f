/* What is AArch64's own while walking: its registers, and the code at which a stack begins or is changed.
 * DWARF for the Arm 64-bit Architecture, section 4.1; Linux arch/arm64/include/uapi/asm/perf_regs.h and
 * sigcontext.h. */
#include "unwind/arch.h"

enum { X27 = 27, X29 = 29, LR = 30, SP = 31, PC = 32, CODE_BYTES = 4 };

const enum elf_machine arch_machine = ELF_AARCH64;
const struct cfi_machine arch_cfi = {.sp = SP, .fp = X29, .ra = LR, .ra_is_register = true,
                                     .ip = LR};
const uint8_t arch_ip = PC;
const uint8_t arch_kept = X27;
const uint64_t arch_cfa_alignment = 16;

/* Pointer authentication and tags live above the 48 bits of a user address; 52-bit addresses are
 * given only to programs that ask for them. */
const uint64_t arch_code_mask = (UINT64_C(1) << 48) - 1;

const uint64_t arch_perf_mask = (UINT64_C(1) << 33) - 1;

/* perf's numbers are DWARF's */
const uint8_t arch_perf_order[64] = {
    0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,
    16,  17,  18,  19,  20,  21,  22,  23,  24,  25,  26,  27,  28,  X29, LR,  SP,
    PC,  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
};

/* The frame record {x29, lr} at x29: AAPCS64 section 6.4.6. */
const struct unwind_rule arch_fp_rule = {
    .kind = RULE_CFA, .cfa_reg = X29, .cfa = 16, .ra_place = RA_AT_CFA, .ra = -8,
    .fp_place = FP_AT_CFA, .fp = -16,
};
const bool arch_fp_gives_sp = false;
const enum fp_place arch_go_fp_place = FP_IS_CFA;
const int16_t arch_go_fp = -8;

/* SP points at the siginfo (128 bytes); then the ucontext, whose sigcontext stands at 176: the
 * fault address, then the registers. Later records (SVE, SME) follow and move nothing. */
#define REG(index) (128 + 176 + 8 + 8 * (index))
#define REG8(index)                                                                                \
    [index] = REG(index), [(index) + 1] = REG((index) + 1), [(index) + 2] = REG((index) + 2),      \
    [(index) + 3] = REG((index) + 3), [(index) + 4] = REG((index) + 4),                            \
    [(index) + 5] = REG((index) + 5), [(index) + 6] = REG((index) + 6),                            \
    [(index) + 7] = REG((index) + 7)
const uint16_t arch_signal_offset[UNWIND_REGISTERS] = {
    REG8(0), REG8(8), REG8(16), REG8(24), [PC] = REG(PC),
};

_Static_assert(REG(PC) + 8 <= UNWIND_SIGNAL_BYTES, "all of them are in what is read of a frame");

/* struct rt_sigframe: the siginfo, the ucontext. A handler without SA_SIGINFO is given the first argument alone. */
uint64_t arch_signal_frame(const struct unwind_registers *registers)
{
    const uint64_t *at = registers->at;
    return at[0] - 1 < 64 && at[1] == at[SP] && at[2] == at[1] + 128 ? at[SP] : 0;
}

static uint32_t instruction(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* mov x8,#0x8b; svc #0 */
bool arch_is_signal_return(const unsigned char *code, size_t len)
{
    return len >= 2 * CODE_BYTES && instruction(code) == 0xd2801168 &&
           instruction(code + CODE_BYTES) == 0xd4000001;
}

/* mov x29,#0; mov x30,#0 shortly before the call (musl's _start, clone), in either order. */
bool arch_is_entry(const unsigned char *code, size_t len)
{
    bool fp = false, lr = false;
    for (size_t at = CODE_BYTES; at <= len; at += CODE_BYTES) {
        uint32_t word = instruction(code + len - at);
        fp |= word == 0xd280001d || word == 0xaa1f03fd;
        lr |= word == 0xd280001e || word == 0xaa1f03fe;
    }
    return fp && lr;
}

/* glibc's __startcontext: mov x0,x19; cbnz x0,setcontext; b exit. In some versions a nop stands before, to which
 * coroutines return. */
bool arch_is_context_start(const unsigned char *code, size_t len)
{
    size_t at = len >= CODE_BYTES && instruction(code) == 0xd503201f ? CODE_BYTES : 0;
    return len >= at + 3 * CODE_BYTES && instruction(code + at) == 0xaa1303e0 &&
           (instruction(code + at + CODE_BYTES) & 0xff00001f) == 0xb5000000 &&
           instruction(code + at + 2 * CODE_BYTES) >> 26 == 5;
}

/* nop, and the zeros that are an undefined instruction. */
size_t arch_padding(const unsigned char *code, size_t len)
{
    size_t at = 0;
    while (len - at >= CODE_BYTES &&
           (instruction(code + at) == 0xd503201f || instruction(code + at) == 0)) {
        at += CODE_BYTES;
    }
    return at;
}
