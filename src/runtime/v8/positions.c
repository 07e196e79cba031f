/* Tables of positions, of bytecode and of optimised code alike: pairs of steps {offset in the code, position}, numbers
 * of seven bits a byte. The lowest bit is a sign; a negative step of the offset, less one, only marks what kind of
 * place it is, for which newer versions have two lowest bits and no sign.
 *
 * Baseline code has a table of lengths: of what comes before, and of the code of each instruction of the bytecode. */
#include "runtime/v8/private.h"

enum {
    TABLE_LENGTH = 8, TABLE_DATA = 16,
    TABLE_MAX = 1 << 20,
    PIECE_BYTES = 4096,
    SHIFT_MAX = 63,
    INLINED_SHIFT = 31, INLINED_MASK = 0xffff,
    PREFIXES = 4,
};

/* Bytes of the process in their order. */
struct bytes {
    const struct v8 *v;
    uint64_t at, limit; /* of what is not in piece[] yet */
    unsigned char piece[PIECE_BYTES];
    uint32_t next, count;
};

static void open_bytes(struct bytes *b, const struct v8 *v, uint64_t at, int32_t length)
{
    b->v = v;
    b->at = at;
    b->limit = at + (uint64_t)length;
    b->next = b->count = 0;
}

static bool take_byte(struct bytes *b, uint64_t *out)
{
    if (b->next == b->count) {
        b->count = (uint32_t)least(sizeof b->piece, b->limit - b->at);
        b->next = 0;
        if (b->count == 0 || !v8_read(b->v, b->at, b->piece, b->count)) {
            b->count = 0;
            return false;
        }
        b->at += b->count;
    }
    *out = b->piece[b->next++];
    return true;
}

static bool take_number(struct bytes *b, uint64_t *out)
{
    uint64_t byte;
    *out = 0;
    for (unsigned shift = 0; shift <= SHIFT_MAX && take_byte(b, &byte); shift += 7) {
        *out |= (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return true;
        }
    }
    return false;
}

static int64_t signed_of(uint64_t number)
{
    return (int64_t)(number >> 1 ^ -(number & 1));
}

static uint64_t offset_step(const struct v8 *v, uint64_t number)
{
    if (v8_at(v, V8_POSITION_MARKS) > 0) {
        return number >> v8_at(v, V8_POSITION_MARKS);
    }
    int64_t step = signed_of(number);
    return (uint64_t)(step >= 0 ? step : -(step + 1));
}

/* The bytes of a ByteArray. */
static bool open_table(struct bytes *b, const struct v8 *v, uint64_t table)
{
    struct v8_head head;
    int32_t length;
    if (!v8_read_head(v, table, &head) || !v8_small(v8_field(&head, TABLE_LENGTH), &length) || length <= 0 ||
        length > TABLE_MAX) {
        return false;
    }
    open_bytes(b, v, head.at + TABLE_DATA, length);
    return true;
}

struct v8_position v8_position_of(const struct v8 *v, uint64_t bits)
{
    int32_t others = v8_at(v, V8_POSITION_OTHERS);
    uint64_t offset = (bits & (((uint64_t)1 << INLINED_SHIFT) - 1)) >> others;
    bool is_elsewhere = others > 0 && (bits & 1) != 0;
    return (struct v8_position){is_elsewhere ? -1 : (int32_t)offset - 1,
                                (int32_t)(bits >> INLINED_SHIFT & INLINED_MASK) - 1};
}

bool v8_position_at(const struct v8 *v, uint64_t table, uint64_t offset, struct v8_position *out)
{
    struct bytes b;
    uint64_t code = 0, position = 0, number;
    bool found = false;
    if (!open_table(&b, v, table)) {
        return false;
    }
    while (take_number(&b, &number)) {
        code += offset_step(v, number);
        if (code > offset || !take_number(&b, &number)) {
            break;
        }
        position += (uint64_t)signed_of(number);
        *out = v8_position_of(v, position);
        found = true;
    }
    return found;
}

/* Bytes of an instruction of the bytecode; 0: not known. */
static uint32_t instruction_bytes(const struct v8_layout *l, struct bytes *code)
{
    uint64_t bytecode, scale = 0, prefix = 0, skipped;
    if (!take_byte(code, &bytecode)) {
        return 0;
    }
    if (bytecode < PREFIXES) { /* wide, extra wide, and both again for debuggers */
        scale = 1 + bytecode % 2;
        prefix = 1;
        if (!take_byte(code, &bytecode)) {
            return 0;
        }
    }
    if (bytecode >= l->bytecodes) {
        return 0;
    }
    uint32_t size = l->bytecode_bytes[scale * l->bytecodes + bytecode];
    for (uint32_t i = 1; i < size; i++) {
        if (!take_byte(code, &skipped)) {
            return 0;
        }
    }
    return (uint32_t)prefix + size;
}

bool v8_bytecode_offset(const struct v8 *v, uint64_t table, const struct v8_head *array, uint64_t offset, uint64_t *out)
{
    struct bytes lengths, code;
    uint64_t end, length;
    int32_t all;
    *out = 0;
    if (v->layout->bytecodes == 0 || !open_table(&lengths, v, table) || !take_number(&lengths, &end) ||
        !v8_small(v8_field(array, TABLE_LENGTH), &all) || all <= 0 || all > TABLE_MAX) {
        return false;
    }
    open_bytes(&code, v, array->at + (uint64_t)v8_at(v, V8_BYTECODE_DATA), all);
    while (take_number(&lengths, &length)) {
        end += length;
        if (offset < end) {
            return true;
        }
        uint32_t bytes = instruction_bytes(v->layout, &code);
        if (bytes == 0) {
            return false;
        }
        *out += bytes;
    }
    return false;
}
