/* What data a function's instructions name. Nothing is disassembled: on x86-64 each position is tried as the start of
 * one of the few forms in which Go's compiler names a variable (a ModRM byte of mode 0 and register 5: an offset from
 * the next instruction). A position within another instruction may look like one by chance; whoever asks checks what
 * the address leads to. On AArch64 instructions have one size, and the page is followed in its register.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2.2.1.6; Arm Architecture
 * Reference Manual, C6.2: ADRP, ADD (immediate), LDR and STR (immediate, unsigned offset). */
#include "runtime/common/load.h"
#include "runtime/go/memory/memory_private.h"

enum {
    RATE = 512 * 1024, /* the first value of runtime.MemProfileRate */
    RATE_REACH = 32,   /* bytes between its load and where it is stored */
};

struct operands {
    struct go_operand *out;
    size_t count;
};

static void add(struct operands *all, struct go_operand operand)
{
    if (all->count < GO_OPERANDS_MAX) {
        all->out[all->count++] = operand;
    }
}

/* ---- x86-64 ---- */

struct form {
    uint8_t prefix[2]; /* 0: none; for a REX.W prefix 0x48 also 0x4c */
    uint8_t opcode;
    uint8_t constant;  /* bytes of an immediate */
    uint8_t bytes;
    bool only_first;   /* ModRM.reg is 0 (MOV), or */
    bool only_last;    /* 7 (CMP) */
};

static const struct form forms[] = {
    {{0x48}, 0x8b, 0, 8, false, false}, /* MOV r64, m */
    {{0x48}, 0x89, 0, 8, false, false}, /* MOV m, r64 */
    {{0x48}, 0x87, 0, 8, false, false}, /* XCHG */
    {{0x48}, 0x39, 0, 8, false, false}, /* CMP m, r64 */
    {{0x48}, 0x3b, 0, 8, false, false}, /* CMP r64, m */
    {{0x48}, 0x8d, 0, 0, false, false}, /* LEA */
    {{0x48}, 0xc7, 4, 8, true, false},  /* MOV m, imm32 */
    {{0x48}, 0x83, 1, 8, false, true},  /* CMP m, imm8 */
    {{0}, 0x8b, 0, 4, false, false},    /* MOV r32, m */
};

/* The operand, if an instruction of this form begins here. */
static bool decode(const struct form *form, const unsigned char *code, size_t have, uint64_t address,
                   struct go_operand *out)
{
    bool wide = form->prefix[0] != 0;
    size_t at = wide ? 1 : 0, len = at + 6 + form->constant;
    if (have < len || (wide && (code[0] & 0xfb) != form->prefix[0]) || code[at] != form->opcode) {
        return false;
    }
    unsigned modrm = code[at + 1];
    if ((modrm & 0xc7) != 5 || (form->only_first && modrm >> 3 != 0) || (form->only_last && modrm >> 3 != 7)) {
        return false;
    }
    *out = (struct go_operand){
        .address = address + len + (uint64_t)(int64_t)(int32_t)load_u32(code + at + 2),
        .bytes = form->bytes,
        .stores_zero = form->only_first && load_u32(code + at + 6) == 0,
        .compares = form->only_last && code[at + 6] == 0,
    };
    return true;
}

static void scan_x86_64(struct operands *all, const unsigned char *code, size_t len, uint64_t address)
{
    size_t rate_at = SIZE_MAX;
    for (size_t i = 0; i + 6 <= len; i++) {
        if ((code[i] & 0xf8) == 0xb8 && load_u32(code + i + 1) == RATE) { /* MOV r32, imm32 */
            rate_at = i;
        }
        bool behind_rex = i > 0 && (code[i - 1] & 0xf0) == 0x40;
        for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
            struct go_operand found;
            if ((forms[f].prefix[0] != 0 || !behind_rex) && decode(&forms[f], code + i, len - i, address + i, &found)) {
                found.after_rate = rate_at != SIZE_MAX && i - rate_at <= RATE_REACH;
                add(all, found);
            }
        }
    }
}

/* ---- AArch64 ---- */

static uint64_t page_of(uint32_t instruction, uint64_t address)
{
    uint64_t pages = (instruction >> 29 & 3) | (uint64_t)(instruction >> 5 & 0x7ffff) << 2;
    pages = (pages ^ 0x100000) - 0x100000; /* a sign of 21 bits */
    return (address & ~(uint64_t)0xfff) + (pages << 12);
}

/* MOV x, #RATE: as ORR with a bit mask, or MOVZ. */
static bool loads_rate(uint32_t word)
{
    return (word & 0xffffffe0) == 0xb26d03e0 || (word & 0xffffffe0) == 0xd2a00100;
}

/* What a register is known to hold. Nothing else that writes it is followed: a page is used soon, by instructions that
 * name no other register, and a whole address is believed for the next instruction only, as Go's assembler wrote them
 * before it put the offset into the load. */
struct register_file {
    uint64_t pages[32], whole[32]; /* 0: unknown */
    size_t whole_at[32];           /* where the instruction is that may use it */
};

static uint64_t known(const struct register_file *r, unsigned number, size_t at)
{
    return r->whole[number] != 0 && r->whole_at[number] == at ? r->whole[number] : r->pages[number];
}

static void take_address(struct operands *all, struct register_file *r, uint32_t word, size_t at)
{
    unsigned to = word & 31, base = word >> 5 & 31;
    uint64_t address = r->pages[base] + (word >> 10 & 0xfff);
    add(all, (struct go_operand){.address = address});
    r->whole[to] = address;
    r->whole_at[to] = at + 4;
    r->pages[to] = to == base ? 0 : r->pages[to];
}

static void scan_aarch64(struct operands *all, const unsigned char *code, size_t len, uint64_t address)
{
    struct register_file r = {.pages = {0}};
    size_t rate_at = SIZE_MAX;
    for (size_t i = 0; i + 4 <= len; i += 4) {
        uint32_t word = load_u32(code + i);
        unsigned to = word & 31, base = word >> 5 & 31;
        uint64_t held = known(&r, base, i);
        rate_at = loads_rate(word) ? i : rate_at;
        if ((word & 0x9f000000) == 0x90000000) { /* ADRP */
            r.pages[to] = page_of(word, address + i);
            r.whole[to] = 0;
        } else if ((word & 0xffc00000) == 0x91000000 && r.pages[base] != 0) { /* ADD x, x, #imm */
            take_address(all, &r, word, i);
        } else if ((word & 0xbf800000) == 0xb9000000 && held != 0) { /* LDR, STR of 4 or 8 bytes */
            unsigned bytes = word >> 30 & 1 ? 8 : 4;
            bool stores = (word >> 22 & 1) == 0;
            add(all, (struct go_operand){
                .address = held + (uint64_t)(word >> 10 & 0xfff) * bytes,
                .bytes = (uint8_t)bytes,
                .stores_zero = stores && to == 31,
                .after_rate = stores && rate_at != SIZE_MAX && i - rate_at <= RATE_REACH,
            });
        }
    }
}

size_t go_operands(enum elf_machine machine, const unsigned char *code, size_t len, uint64_t address,
                   struct go_operand out[static GO_OPERANDS_MAX])
{
    struct operands all = {.out = out};
    if (machine == ELF_X86_64) {
        scan_x86_64(&all, code, len, address);
    } else if (machine == ELF_AARCH64) {
        scan_aarch64(&all, code, len, address);
    }
    return all.count;
}
