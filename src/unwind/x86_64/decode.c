/* Decodes the length and the operands of x86-64 instructions: prefixes, opcode maps, ModRM, VEX and
 * EVEX. Lengths must be right for everything, meanings only for what moves the stack. Bytes that are
 * no instruction are refused. */
#include "unwind/x86_64/decode.h"

#include <string.h>

/*
 * What follows an opcode, one letter per opcode:
 *   .  nothing            M  ModRM               B  ModRM, 8-bit immediate
 *   b  8-bit immediate    w  16-bit              Z  ModRM, 16- or 32-bit immediate
 *   z  16 or 32 bits      v  16, 32 or 64 bits   T  ModRM, 8 bits if its reg is 0 or 1
 *   o  an address         e  16 and 8 bits       U  the same with 16 or 32 bits
 *   j  8-bit distance     J  32-bit distance     p  a prefix
 *   x  no instruction in 64-bit code, or the first byte of another encoding
 */
static const char one_byte_form[256 + 1] =
    "MMMMbzxxMMMMbzxx" /* 00 */
    "MMMMbzxxMMMMbzxx"
    "MMMMbzpxMMMMbzpx" /* 20 */
    "MMMMbzpxMMMMbzpx"
    "xxxxxxxxxxxxxxxx" /* 40 */
    "................"
    "xxxMppppzZbB...." /* 60 */
    "jjjjjjjjjjjjjjjj"
    "BZxBMMMMMMMMMMMM" /* 80 */
    "..........x....."
    "oooo....bz......" /* a0 */
    "bbbbbbbbvvvvvvvv"
    "BBw.xxBZe.w..bx." /* c0 */
    "MMMMxxx.MMMMMMMM"
    "jjjjbbbbJJxj...." /* e0 */
    "p.pp..TU......MM";

static const char form_0f[256 + 1] =
    "MMMMx.....x.xM.B" /* 00 */
    "MMMMMMMMMMMMMMMM"
    "MMMMxxxxMMMMMMMM" /* 20 */
    "......x.xxxxxxxx"
    "MMMMMMMMMMMMMMMM" /* 40 */
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM" /* 60 */
    "BBBBMMM.MMMMMMMM"
    "JJJJJJJJJJJJJJJJ" /* 80 */
    "MMMMMMMMMMMMMMMM"
    "...MBMMM...MBMMM" /* a0 */
    "MMMMMMMMMMBMMMMM"
    "MMBMBBBM........" /* c0 */
    "MMMMMMMMMMMMMMMM"
    "MMMMMMMMMMMMMMMM" /* e0 */
    "MMMMMMMMMMMMMMMM";

/*
 * Which general register an opcode writes: - none, r ModRM.reg, m ModRM.rm when it is a register,
 * 2 both, + the one in the opcode's low bits, a implied ones (any of the first eight but SP and
 * FP), c ModRM.rm and implied ones, g a group that written_by_group knows.
 */
static const char one_byte_write[256 + 1] =
    "mmrraa--mmrraa--" /* 00 */
    "mmrraa--mmrraa--"
    "mmrraa--mmrraa--" /* 20 */
    "mmrraa----------"
    "----------------" /* 40 */
    "--------++++++++"
    "---r-----r-raaaa" /* 60 */
    "----------------"
    "gg-g--22mmrrmr-m" /* 80 */
    "-+++++++aa-----a"
    "aa--aaaa--aaaaaa" /* a0 */
    "++++++++++++++++"
    "mm----mm--------" /* c0 */
    "mmmm---a-------a"
    "aaaaaa------aa--" /* e0 */
    "------gg------mg";

static const char write_0f[256 + 1] =
    "marr-a----------" /* 00 */
    "--------------m-"
    "mm----------rr--" /* 20 */
    "-aaaa--a--------"
    "rrrrrrrrrrrrrrrr" /* 40 */
    "r---------------"
    "----------------" /* 60 */
    "--------------g-"
    "----------------" /* 80 */
    "mmmmmmmmmmmmmmmm"
    "--a-mmaa---mmmmr" /* a0 */
    "ccrmrrrrr-gmrrrr"
    "22---r-c++++++++" /* c0 */
    "-------r--------"
    "----------------" /* e0 */
    "----------------";

static const uint32_t implied_registers = 0xcf; /* AX CX DX BX SI DI */

/* Reading needs no checks: the longest run of prefixes and operands ends within the copy, and what
 * lies beyond the instruction's maximum is checked once, at the end. */
struct reader {
    unsigned char bytes[48];
    size_t at;
};

static uint8_t take_byte(struct reader *r)
{
    return r->bytes[r->at++];
}

static int32_t take_32(struct reader *r)
{
    uint32_t value;
    memcpy(&value, r->bytes + r->at, sizeof value);
    r->at += sizeof value;
    return (int32_t)value;
}

static int16_t take_16(struct reader *r)
{
    uint16_t value;
    memcpy(&value, r->bytes + r->at, sizeof value);
    r->at += sizeof value;
    return (int16_t)value;
}

/* 16 or 32 bits, by the operand's size. */
static int64_t take_z(struct reader *r, const struct instruction *in)
{
    return in->operand_bytes == 2 ? take_16(r) : take_32(r);
}

static int64_t take_v(struct reader *r, const struct instruction *in)
{
    uint64_t low = (uint32_t)(in->operand_bytes == 8 ? take_32(r) : 0);
    return in->operand_bytes == 8 ? (int64_t)((uint64_t)(int64_t)take_32(r) << 32 | low)
                                  : take_z(r, in);
}

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

static void take_modrm(struct reader *r, struct instruction *in, uint8_t rex)
{
    uint8_t modrm = take_byte(r);
    uint8_t rm = modrm & 7;
    in->has_modrm = true;
    in->mod = modrm >> 6;
    in->reg = (uint8_t)((modrm >> 3 & 7) | (rex & REX_R ? 8 : 0));
    in->rm = (uint8_t)(rm | (rex & REX_B ? 8 : 0));
    if (in->mod == 3) {
        return;
    }
    in->base = (int8_t)in->rm;
    if (rm == 4) {
        uint8_t sib = take_byte(r);
        uint8_t index = (uint8_t)((sib >> 3 & 7) | (rex & REX_X ? 8 : 0));
        in->index = index == 4 ? -1 : (int8_t)index;
        in->base = (int8_t)((sib & 7) | (rex & REX_B ? 8 : 0));
        rm = sib & 7;
        if (rm == 5 && in->mod == 0) {
            in->base = -1;
        }
    } else if (rm == 5 && in->mod == 0) {
        in->base = -1;
        in->rip_relative = true;
    }
    if (in->mod == 1) {
        in->disp = (int8_t)take_byte(r);
    } else if (in->mod == 2 || rm == 5) {
        in->disp = take_32(r);
    }
}

static void take_operands(struct reader *r, struct instruction *in, char form, uint8_t rex,
                          bool short_addresses)
{
    if (form == 'M' || form == 'B' || form == 'Z' || form == 'T' || form == 'U') {
        take_modrm(r, in, rex);
    }
    bool tests = (in->reg & 7) < 2;
    switch (form) {
    case 'B':
    case 'b':
    case 'j':
        in->imm = (int8_t)take_byte(r);
        break;
    case 'Z':
    case 'z':
        in->imm = take_z(r, in);
        break;
    case 'w':
        in->imm = take_16(r);
        break;
    case 'v':
        in->imm = take_v(r, in);
        break;
    case 'T':
        in->imm = tests ? (int8_t)take_byte(r) : 0;
        break;
    case 'U':
        in->imm = tests ? take_z(r, in) : 0;
        break;
    case 'o':
        r->at += short_addresses ? 4 : 8;
        break;
    case 'e':
        in->imm = (uint16_t)take_16(r);
        r->at++;
        break;
    case 'J':
        in->imm = take_32(r);
        break;
    default:
        break;
    }
}

/* VEX, EVEX and XOP carry REX's bits inverted, and the map and the 66/F2/F3 prefix as numbers. */
static bool take_vector(struct reader *r, struct instruction *in, uint8_t escape)
{
    static const uint8_t prefixes[] = {0, 0x66, 0xf3, 0xf2};
    uint8_t rex = 0, map = 1;
    uint8_t first = take_byte(r), second = first;
    if (escape != 0xc5) {
        rex = (uint8_t)~first >> 5;
        map = first & (escape == 0x62 ? 7 : 0x1f);
        second = take_byte(r);
        rex |= second & 0x80 ? REX_W : 0;
    } else {
        rex = first & 0x80 ? 0 : REX_R;
    }
    if (escape == 0x62) {
        (void)take_byte(r);
    }
    in->vector = true;
    in->vvvv = (uint8_t)~second >> 3 & 15;
    in->prefix = prefixes[second & 3];
    in->operand_bytes = rex & REX_W ? 8 : 4;
    in->opcode = take_byte(r);
    char form = 'M';
    if (escape == 0x8f) {
        in->map = MAP_OTHER;
        in->operand_bytes = 4; /* the immediate of map 10 is 32 bits wide */
        form = map == 8 ? 'B' : map == 9 ? 'M' : map == 10 ? 'Z' : 'x';
    } else if (map == 1) {
        in->map = MAP_0F;
        form = form_0f[in->opcode] == 'J' ? 'x' : form_0f[in->opcode];
    } else if (map == 2 || map == 3) {
        in->map = map == 2 ? MAP_0F38 : MAP_0F3A;
        form = map == 2 ? 'M' : 'B';
    } else {
        in->map = MAP_OTHER;
        form = map == 5 || map == 6 ? 'M' : 'x';
    }
    if (form == 'x') {
        return false;
    }
    take_operands(r, in, form, rex, false);
    return true;
}

static char take_opcode(struct reader *r, struct instruction *in, uint8_t first)
{
    in->opcode = first;
    if (first != 0x0f) {
        return one_byte_form[first];
    }
    in->opcode = take_byte(r);
    if (in->opcode != 0x38 && in->opcode != 0x3a) {
        in->map = MAP_0F;
        return form_0f[in->opcode];
    }
    in->map = in->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
    in->opcode = take_byte(r);
    return in->map == MAP_0F38 ? 'M' : 'B';
}

/* C4, C5 and 62 are always vector prefixes in 64-bit code; 8F is one unless it is pop. */
static bool is_vector_escape(const struct reader *r, uint8_t byte)
{
    return byte == 0xc4 || byte == 0xc5 || byte == 0x62 ||
           (byte == 0x8f && (r->bytes[r->at] & 0x1f) >= 8);
}

struct prefixes {
    uint8_t rex;
    bool data16, address32;
};

static bool is_prefix(uint8_t byte)
{
    return one_byte_form[byte] == 'p';
}

/* Returns the first byte of the opcode. A REX prefix counts directly before it only. */
static uint8_t take_prefixes(struct reader *r, struct instruction *in, struct prefixes *out)
{
    uint8_t byte = take_byte(r);
    for (; is_prefix(byte) && r->at < INSTRUCTION_BYTES_MAX; byte = take_byte(r)) {
        out->data16 = out->data16 || byte == 0x66;
        out->address32 = out->address32 || byte == 0x67;
        in->prefix = byte == 0x66 || byte >= 0xf2 ? byte : in->prefix;
    }
    if ((byte & 0xf0) == 0x40) {
        out->rex = byte;
        byte = take_byte(r);
    }
    in->rex = out->rex != 0;
    in->operand_bytes = out->rex & REX_W ? 8 : out->data16 ? 2 : 4;
    return byte;
}

bool x86_decode(const unsigned char *bytes, size_t len, struct instruction *out)
{
    struct reader r = {.at = 0};
    struct instruction in = {.base = -1, .index = -1};
    struct prefixes prefixes = {0};
    if (len >= INSTRUCTION_BYTES_MAX) {
        len = INSTRUCTION_BYTES_MAX;
        memcpy(r.bytes, bytes, INSTRUCTION_BYTES_MAX);
    } else {
        memcpy(r.bytes, bytes, len);
    }
    uint8_t byte = take_prefixes(&r, &in, &prefixes);
    bool good = true;
    if (prefixes.rex == 0 && is_vector_escape(&r, byte)) {
        good = take_vector(&r, &in, byte);
    } else {
        char form = take_opcode(&r, &in, byte);
        good = form != 'x' && form != 'p';
        in.rm = (uint8_t)((in.opcode & 7) | (prefixes.rex & REX_B ? 8 : 0)); /* push, mov, bswap */
        take_operands(&r, &in, form, prefixes.rex, prefixes.address32);
    }
    in.len = (uint8_t)r.at;
    *out = in;
    return good && r.at <= len;
}

static uint32_t bit(const struct instruction *in, uint8_t number, bool byte_operand)
{
    bool high_byte = byte_operand && !in->rex && number >= 4 && number < 8;
    return (uint32_t)1 << (high_byte ? number - 4 : number);
}

static uint32_t written_rm(const struct instruction *in, bool byte_operand)
{
    return in->mod == 3 ? bit(in, in->rm, byte_operand) : 0;
}

static uint32_t written_by_group(const struct instruction *in, bool byte_operand)
{
    uint8_t reg = in->reg & 7;
    if (in->map == MAP_0F && in->opcode == 0xba) {
        return reg == 4 ? 0 : written_rm(in, false); /* bt only tests */
    }
    if (in->map == MAP_0F) {
        return in->prefix == 0xf3 ? 0 : written_rm(in, false); /* 7E: movq of vectors, or movd */
    }
    if (in->opcode <= 0x83) {
        return reg == 7 ? 0 : written_rm(in, byte_operand); /* cmp */
    }
    if (in->opcode == 0xff) {
        return reg < 2 ? written_rm(in, false) : 0; /* inc, dec */
    }
    return reg < 2 ? 0 : reg < 4 ? written_rm(in, byte_operand) : implied_registers;
}

static uint32_t written_by_vector(const struct instruction *in)
{
    uint32_t reg = (uint32_t)1 << in->reg, vvvv = (uint32_t)1 << in->vvvv;
    uint8_t op = in->opcode;
    switch (in->map) {
    case MAP_0F38:
        return op == 0xf2 || op == 0xf5 || op == 0xf7 ? reg
               : op == 0xf3                           ? vvvv
               : op == 0xf6                           ? reg | vvvv
                                                      : 0;
    case MAP_0F3A:
        return op >= 0x14 && op <= 0x17   ? written_rm(in, false)
               : op >= 0x60 && op <= 0x63 ? implied_registers
               : op == 0xf0               ? reg
                                          : 0;
    default:
        if (op == 0x7e) {
            return in->prefix == 0xf3 ? 0 : written_rm(in, false);
        }
        if (op == 0x01 || op == 0x02 || op == 0x10 || op == 0x12) {
            return in->map == MAP_OTHER ? reg | vvvv | written_rm(in, false) : 0; /* XOP's TBM */
        }
        return op == 0x50 || op == 0xd7 || op == 0xc5 || op == 0x2c || op == 0x2d || op == 0x78 ||
                       op == 0x79 || op == 0x93
                   ? reg
                   : 0;
    }
}

/* Whether what the opcode writes is a byte register. */
static bool has_byte_operand(const struct instruction *in)
{
    uint8_t op = in->opcode;
    if (in->map == MAP_ONE) {
        return (op & 1) == 0 && (op < 0x40 || (op >= 0x80 && op <= 0x8a) || op == 0xc0 ||
                                 op == 0xc6 || op == 0xd0 || op == 0xd2 || op == 0xf6 ||
                                 op == 0xfe);
    }
    return op == 0xb0 || op == 0xc0 || (op & 0xf0) == 0x90;
}

uint32_t x86_writes(const struct instruction *in)
{
    bool byte_operand = has_byte_operand(in);
    uint8_t op = in->opcode;
    if (in->vector) {
        return written_by_vector(in);
    }
    if (in->map == MAP_0F38) {
        return op >= 0xf0 ? (uint32_t)1 << in->reg : 0; /* movbe, crc32, adcx */
    }
    if (in->map == MAP_0F3A) {
        return op >= 0x14 && op <= 0x17   ? written_rm(in, false)
               : op >= 0x60 && op <= 0x63 ? implied_registers
                                          : 0;
    }
    switch (in->map == MAP_ONE ? one_byte_write[op] : write_0f[op]) {
    case 'r':
        return bit(in, in->reg, byte_operand);
    case 'm':
        return written_rm(in, byte_operand);
    case '2':
        return written_rm(in, byte_operand) | bit(in, in->reg, byte_operand);
    case '+': /* with AX for xchg */
        return bit(in, in->rm, op >= 0xb0 && op < 0xb8) | (op >= 0x90 && op < 0x98 ? 1 : 0);
    case 'a':
        return implied_registers;
    case 'c':
        return implied_registers | written_rm(in, byte_operand);
    case 'g':
        return written_by_group(in, byte_operand);
    default:
        return 0;
    }
}
