/* Decodes AArch64 instructions as far as frames need it: which kind it is (moves SP, saves, loads,
 * branches) and which registers it changes. Everything else is one kind, with the register it
 * writes. Tables follow the Arm manual's encoding index. */
#include "unwind/aarch64/decode.h"

static uint32_t field(uint32_t word, unsigned low, unsigned bits)
{
    return word >> low & ((1u << bits) - 1);
}

static int64_t signed_field(uint32_t word, unsigned low, unsigned bits)
{
    int64_t value = field(word, low, bits);
    return value >= (int64_t)1 << (bits - 1) ? value - ((int64_t)1 << bits) : value;
}

/* Register 31 is the zero register wherever it is not noted as SP. */
static uint32_t bit(uint32_t number)
{
    return number == 31 ? 0 : 1u << number;
}

static void set_rd(struct instruction *in, enum operation operation, uint32_t word)
{
    in->operation = (uint8_t)operation;
    in->rd = (uint8_t)field(word, 0, 5);
    in->rn = (uint8_t)field(word, 5, 5);
    in->rm = (uint8_t)field(word, 16, 5);
}

static void set_branch(struct instruction *in, enum operation operation, int64_t words)
{
    in->operation = (uint8_t)operation;
    in->imm = words * INSTRUCTION_BYTES;
}

static void decode_add_immediate(uint32_t word, struct instruction *in)
{
    int64_t imm = (int64_t)field(word, 10, 12) << (field(word, 22, 1) ? 12 : 0);
    bool wide = field(word, 31, 1), flags = field(word, 29, 1);
    if (flags || !wide) { /* with flags 31 is the zero register: cmp */
        in->writes = flags ? bit(field(word, 0, 5)) : 1u << field(word, 0, 5);
        return;
    }
    set_rd(in, OP_ADD, word);
    in->imm = field(word, 30, 1) ? -imm : imm;
}

static void decode_move_wide(uint32_t word, struct instruction *in)
{
    unsigned shift = 16 * field(word, 21, 2), opc = field(word, 29, 2);
    uint64_t imm = (uint64_t)field(word, 5, 16) << shift;
    if (field(word, 0, 5) == 31) {
        return;
    }
    set_rd(in, opc == 3 ? OP_KEEP : OP_NUMBER, word);
    in->imm = (int64_t)(opc == 0 ? ~imm : imm);
    in->shift = (uint8_t)shift;
}

static void decode_immediate(uint32_t word, struct instruction *in)
{
    uint32_t rd = field(word, 0, 5);
    switch (field(word, 23, 3)) {
    case 0:
    case 1: /* adr, adrp */
        set_rd(in, OP_ADDRESS, word);
        in->imm = signed_field(word, 5, 19) * 4 + field(word, 29, 2);
        in->shift = field(word, 31, 1) ? 12 : 0;
        break;
    case 2:
        decode_add_immediate(word, in);
        break;
    case 4: /* logical; 31 is SP unless flags are set */
        in->writes = field(word, 29, 2) == 3 ? bit(rd) : 1u << rd;
        break;
    case 5:
        decode_move_wide(word, in);
        break;
    default:
        in->writes = bit(rd);
        break;
    }
}

static void decode_register(uint32_t word, struct instruction *in)
{
    if ((word & 0xffe0ffe0) == 0xaa0003e0) { /* orr rd, xzr, rm */
        set_rd(in, OP_MOVE, word);
    } else if ((word & 0x1fe00000) == 0x0b200000 && !field(word, 29, 1)) { /* 31 is SP */
        bool plain = field(word, 31, 1) && field(word, 10, 3) == 0 && field(word, 13, 3) == 3;
        set_rd(in, plain ? OP_ADD_REG : OP_OTHER, word);
        in->writes = plain ? 0 : 1u << in->rd;
        in->imm = field(word, 30, 1) ? -1 : 1;
    } else {
        in->writes = bit(field(word, 0, 5));
    }
}

static void decode_pair(uint32_t word, struct instruction *in)
{
    static const uint8_t writebacks[] = {WRITEBACK_NONE, WRITEBACK_AFTER, WRITEBACK_NONE,
                                         WRITEBACK_BEFORE};
    unsigned opc = field(word, 30, 2);
    bool vector = field(word, 26, 1), load = field(word, 22, 1);
    in->operation = load ? OP_LOAD : OP_STORE;
    in->pair = true;
    in->wide = !vector && opc == 2;
    in->bytes = (uint8_t)(vector ? 4 << opc : opc == 2 ? 8 : opc == 1 && !load ? 16 : 4);
    in->imm = signed_field(word, 15, 7) * in->bytes;
    in->writeback = writebacks[field(word, 23, 2)];
    in->rn = (uint8_t)field(word, 5, 5);
    in->rt = (uint8_t)field(word, 0, 5);
    in->rt2 = (uint8_t)field(word, 10, 5);
    in->writes = load && !vector ? bit(in->rt) | bit(in->rt2) : 0;
}

static void decode_single(uint32_t word, struct instruction *in)
{
    unsigned size = field(word, 30, 2), opc = field(word, 22, 2), mode = field(word, 10, 2);
    bool vector = field(word, 26, 1), scaled = field(word, 24, 1);
    bool by_register = !scaled && field(word, 21, 1);
    bool prefetch = !vector && size == 3 && opc == 2;
    unsigned log = vector && opc >= 2 ? 4 : size;
    if (by_register && mode != 2) { /* atomics, and loads with pointer authentication */
        in->writes = 1u << field(word, 0, 5) | (mode == 3 ? 1u << field(word, 5, 5) : 0);
        in->writes &= mode == 0 ? ~(1u << 31) : ~0u;
        return;
    }
    in->operation = (vector ? (opc & 1) != 0 : opc != 0) ? OP_LOAD : OP_STORE;
    in->wide = !vector && size == 3 && !prefetch;
    in->bytes = (uint8_t)(1u << log);
    in->rn = by_register ? 32 : (uint8_t)field(word, 5, 5);
    in->rt = (uint8_t)field(word, 0, 5);
    in->imm = scaled ? (int64_t)field(word, 10, 12) << log : signed_field(word, 12, 9);
    in->writeback = scaled || by_register ? WRITEBACK_NONE
                    : mode == 1           ? WRITEBACK_AFTER
                    : mode == 3           ? WRITEBACK_BEFORE
                                          : WRITEBACK_NONE;
    in->writes = in->operation == OP_LOAD && !vector && !prefetch ? bit(in->rt) : 0;
}

static void decode_memory(uint32_t word, struct instruction *in)
{
    if ((word & 0x3a000000) == 0x28000000) {
        decode_pair(word, in);
    } else if ((word & 0x3a000000) == 0x38000000) {
        decode_single(word, in);
    } else if ((word & 0x3b000000) == 0x18000000) { /* from beside the code */
        in->writes = field(word, 26, 1) ? 0 : bit(field(word, 0, 5));
    } else if ((word & 0x3f000000) == 0x08000000) { /* exclusive, ordered, compare and swap */
        in->writes = bit(field(word, 0, 5)) | bit(field(word, 10, 5)) | bit(field(word, 16, 5));
    } else if ((word & 0xbe000000) == 0x0c000000) { /* vector structures; perhaps with writeback */
        in->writes = field(word, 23, 1) ? 1u << field(word, 5, 5) : 0;
    } else {
        in->writes = bit(field(word, 0, 5)) | 1u << field(word, 5, 5); /* tags and others */
    }
}

static void decode_branch_register(uint32_t word, struct instruction *in)
{
    static const uint8_t operations[16] = {
        [0] = OP_JUMP_REG, [1] = OP_CALL_REG, [2] = OP_RETURN, [4] = OP_TRAP, [5] = OP_TRAP,
        [8] = OP_JUMP_REG, [9] = OP_CALL_REG,
    };
    in->operation = operations[field(word, 21, 4)];
    in->rn = (uint8_t)field(word, 5, 5);
}

static void decode_branch(uint32_t word, struct instruction *in)
{
    if ((word & 0x7c000000) == 0x14000000) {
        set_branch(in, field(word, 31, 1) ? OP_CALL : OP_JUMP, signed_field(word, 0, 26));
    } else if ((word & 0x7e000000) == 0x34000000 || (word & 0xff000000) == 0x54000000) {
        set_branch(in, OP_BRANCH, signed_field(word, 5, 19));
    } else if ((word & 0x7e000000) == 0x36000000) {
        set_branch(in, OP_BRANCH, signed_field(word, 5, 14));
    } else if ((word & 0xfe000000) == 0xd6000000) {
        decode_branch_register(word, in);
    } else if ((word & 0xff000000) == 0xd4000000) {
        in->operation = (word & 0xffe0001f) == 0xd4000001 ? OP_SYSCALL : OP_TRAP;
    } else if (word == 0xd503201f) {
        in->operation = OP_NOP;
    } else if ((word & 0xfff00000) == 0xd5300000 || (word & 0xfff80000) == 0xd5280000) {
        in->writes = bit(field(word, 0, 5)); /* mrs, sysl */
    }
}

/* Of vector instructions few write a general register: moves, and conversions to integers. */
static void decode_vector(uint32_t word, struct instruction *in)
{
    static const uint8_t to_general = 1 << 0 | 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6; /* by opcode */
    bool converts = (word & 0x5f20fc00) == 0x1e200000 || (word & 0x5f200000) == 0x1e000000;
    bool moves = (word & 0xbfe0fc00) == 0x0e003c00 || (word & 0xbfe0fc00) == 0x0e002c00;
    converts = converts && (to_general >> field(word, 16, 3) & 1) != 0;
    in->writes = converts || moves ? bit(field(word, 0, 5)) : 0;
}

static void decode_sve(uint32_t word, struct instruction *in)
{
    bool adds_length = (word & 0xffa0f800) == 0x04205000; /* addvl, addpl: 31 is SP */
    uint32_t rd = field(word, 0, 5);
    in->writes = adds_length ? 1u << rd : rd < 29 ? 1u << rd : 0;
}

uint32_t a64_word(const unsigned char *bytes, size_t len)
{
    return len < INSTRUCTION_BYTES ? 0
                                   : bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                                         (uint32_t)bytes[3] << 24;
}

bool a64_is_bti(uint32_t word)
{
    return (word & 0xffffff3f) == 0xd503241f;
}

bool a64_is_entry_mark(uint32_t word)
{
    static const uint32_t paciasp = 0xd503233f, pacibsp = 0xd503237f;
    return word == paciasp || word == pacibsp || a64_is_bti(word);
}

bool a64_decode(const unsigned char *bytes, size_t len, struct instruction *out)
{
    struct instruction in = {.operation = OP_OTHER};
    uint32_t word = a64_word(bytes, len);
    switch (field(word, 25, 4)) {
    case 0x0: /* udf; also SME */
        if (word >> 16 == 0) {
            return false;
        }
        break;
    case 0x1:
    case 0x3:
        return false;
    case 0x2:
        decode_sve(word, &in);
        break;
    case 0x8:
    case 0x9:
        decode_immediate(word, &in);
        break;
    case 0xa:
    case 0xb:
        decode_branch(word, &in);
        break;
    case 0x4:
    case 0x6:
    case 0xc:
    case 0xe:
        decode_memory(word, &in);
        break;
    case 0x5:
    case 0xd:
        decode_register(word, &in);
        break;
    default:
        decode_vector(word, &in);
        break;
    }
    *out = in;
    return true;
}
