/* What is x86-64's own while walking: its registers, and the code at which a stack begins or is changed.
 * System V psABI, figure 3.36 (DWARF numbers); Linux arch/x86/include/uapi/asm/perf_regs.h and struct
 * sigcontext. */
#include "unwind/arch.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP };

const enum elf_machine arch_machine = ELF_X86_64;
const struct cfi_machine arch_cfi = {.sp = RSP, .fp = RBP, .ra = RIP, .ip = RIP};
const uint8_t arch_ip = RIP;
const uint8_t arch_kept = R14;
const uint64_t arch_cfa_alignment = 8;
const uint64_t arch_code_mask = UINT64_MAX;

/* all but the segment registers, of which DS to GS are refused */
const uint64_t arch_perf_mask = 0xff01ff;

const uint8_t arch_perf_order[64] = {
    RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, RIP, 255, 255, 255, 255, 255, 255, 255, R8, R9, R10,
    R11, R12, R13, R14, R15, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255,
};

const struct unwind_rule arch_fp_rule = {
    .kind = RULE_CFA, .cfa_reg = RBP, .cfa = 16, .ra_place = RA_AT_CFA, .ra = -8,
    .fp_place = FP_AT_CFA, .fp = -16,
};
const bool arch_fp_gives_sp = true;
const enum fp_place arch_go_fp_place = FP_AT_CFA;
const int16_t arch_go_fp = -16;

/* uc_mcontext stands 40 bytes into the ucontext, to which SP points when the handler returned. */
#define GREG(index) (40 + 8 * (index))
const uint16_t arch_signal_offset[UNWIND_REGISTERS] = {
    [R8] = GREG(0),   [R9] = GREG(1),   [R10] = GREG(2),  [R11] = GREG(3),  [R12] = GREG(4),
    [R13] = GREG(5),  [R14] = GREG(6),  [R15] = GREG(7),  [RDI] = GREG(8),  [RSI] = GREG(9),
    [RBP] = GREG(10), [RBX] = GREG(11), [RDX] = GREG(12), [RAX] = GREG(13), [RCX] = GREG(14),
    [RSP] = GREG(15), [RIP] = GREG(16),
};

_Static_assert(GREG(16) + 8 <= UNWIND_SIGNAL_BYTES, "all of them are in what is read of a frame");

/* struct rt_sigframe: the return address, the ucontext (304 bytes), the siginfo. RAX is cleared, for handlers that take
 * no fixed number of arguments. */
uint64_t arch_signal_frame(const struct unwind_registers *registers)
{
    const uint64_t *at = registers->at;
    bool is = at[RAX] == 0 && at[RDI] - 1 < 64 && at[RDX] == at[RSP] + 8 && at[RSI] == at[RDX] + 304;
    return is ? at[RDX] : 0;
}

/* mov $15,%rax (or %eax); syscall */
bool arch_is_signal_return(const unsigned char *code, size_t len)
{
    static const unsigned char wide[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    static const unsigned char narrow[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
    return (len >= sizeof wide && memcmp(code, wide, sizeof wide) == 0) ||
           (len >= sizeof narrow && memcmp(code, narrow, sizeof narrow) == 0);
}

/* The psABI (3.4.1) has the outermost frame marked by a zero RBP. A _start does so and aligns SP
 * before its call, in either order; musl's clone does so, pops the argument and calls %r9. Other
 * code has no reason to do both. */
bool arch_is_entry(const unsigned char *code, size_t len)
{
    static const unsigned char clone[] = {0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1};
    static const unsigned char align[] = {0x48, 0x83, 0xe4, 0xf0};
    bool aligned = false, zeroed = false;
    if (len >= sizeof clone && memcmp(code + len - sizeof clone, clone, sizeof clone) == 0) {
        return true;
    }
    for (size_t i = sizeof align; i <= len; i++) {
        const unsigned char *p = code + len - i;
        aligned |= memcmp(p, align, sizeof align) == 0;
        zeroed |= p[0] == 0x31 && p[1] == 0xed;
    }
    return aligned && zeroed;
}

/* glibc's __start_context: mov %rbx,%rsp; mov (%rsp),%rdi (earlier pop %rdi); test %rdi,%rdi */
bool arch_is_context_start(const unsigned char *code, size_t len)
{
    static const unsigned char branch_target[] = {0xf3, 0x0f, 0x1e, 0xfa};
    static const unsigned char load[] = {0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff};
    static const unsigned char pop[] = {0x48, 0x89, 0xdc, 0x5f, 0x48, 0x85, 0xff};
    if (len >= sizeof branch_target && memcmp(code, branch_target, sizeof branch_target) == 0) {
        code += sizeof branch_target;
        len -= sizeof branch_target;
    }
    return (len >= sizeof load && memcmp(code, load, sizeof load) == 0) ||
           (len >= sizeof pop && memcmp(code, pop, sizeof pop) == 0);
}

/* A multi-byte nop: 66 prefixes, perhaps a segment, 0f 1f and its operand. */
static size_t nop_bytes(const unsigned char *p, size_t len)
{
    static const uint8_t displacement[] = {0, 1, 4};
    size_t i = 0;
    while (i < len && i < 12 && (p[i] == 0x66 || p[i] == 0x2e)) {
        i++;
    }
    if (i < len && p[i] == 0x90) {
        return i + 1;
    }
    if (len - i < 3 || p[i] != 0x0f || p[i + 1] != 0x1f || p[i + 2] >= 0xc0) {
        return 0;
    }
    size_t mode = p[i + 2] >> 6, bytes = i + 3 + ((p[i + 2] & 7) == 4) + displacement[mode];
    return bytes <= len ? bytes : 0;
}

size_t arch_padding(const unsigned char *code, size_t len)
{
    size_t at = 0;
    while (at < len) {
        size_t bytes = code[at] == 0xcc || code[at] == 0 ? 1 : nop_bytes(code + at, len - at);
        if (bytes == 0) {
            return at;
        }
        at += bytes;
    }
    return at;
}
