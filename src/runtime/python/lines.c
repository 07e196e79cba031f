/* The line of an instruction, from a code object's table: co_lnotab up to 3.9, co_linetable of 3.10, and that of
 * 3.11 on. Pure functions over the target's bytes, bounded: where a table says nothing, or ends too early,
 * the line is 0. */
#include "base/cursor.h"
#include "runtime/python/private.h"

/*
 * A code object's table tells lines by differences, along growing addresses. Formats:
 * Objects/lnotab_notes.txt (to 3.10) and Objects/locations.md (from 3.11), in CPython's sources.
 */
enum {
    TABLE_MAX = 1 << 20,
    UNIT = 2,              /* bytes of a code unit */
    VARINT_SHIFT_MAX = 30, /* a 32-bit number has six groups of six bits at most */
};

enum location {
    LOCATION_ONE_LINE = 10, /* 10 to 12: so many lines further, with two columns */
    LOCATION_NO_COLUMNS = 13,
    LOCATION_LONG = 14,
    LOCATION_NONE = 15,
};

static uint32_t as_line(int64_t line)
{
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs (bytes further, lines further): a line holds until the next address is reached. */
static uint32_t lnotab_line(int64_t line, struct cursor table, int64_t offset, bool is_signed)
{
    if (table.len % 2 != 0) {
        return 0;
    }
    for (int64_t address = 0; table.len > 0;) {
        address += cursor_u8(&table);
        uint8_t further = cursor_u8(&table);
        if (address > offset) {
            break;
        }
        line += is_signed ? (int8_t)further : further;
    }
    return as_line(line);
}

/* Pairs (bytes covered, lines further): bytes without a line are covered too, by a pair that leaves
 * the line as it was. */
static uint32_t linetable_line(int64_t line, struct cursor table, int64_t offset)
{
    enum { NO_LINE = -128 };
    if (table.len % 2 != 0) {
        return 0;
    }
    for (int64_t limit = 0; table.len > 0;) {
        limit += cursor_u8(&table);
        int8_t further = (int8_t)cursor_u8(&table);
        line += further == NO_LINE ? 0 : further;
        if (offset < limit) {
            return further == NO_LINE ? 0 : as_line(line);
        }
    }
    return 0;
}

/* Six bits a byte, low ones first, while bit 6 is set. */
static uint32_t varint(struct cursor *c)
{
    uint32_t value = 0;
    for (unsigned shift = 0; shift <= VARINT_SHIFT_MAX; shift += 6) {
        uint8_t byte = cursor_u8(c);
        value |= (uint32_t)(byte & 0x3f) << shift;
        if ((byte & 0x40) == 0) {
            return value;
        }
    }
    c->short_read = true;
    return 0;
}

/* The sign is the lowest bit. */
static int64_t signed_varint(struct cursor *c)
{
    uint32_t value = varint(c);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* How many lines further an entry is; its columns are skipped. */
static int64_t take_location(struct cursor *c, unsigned code)
{
    int64_t further = 0;
    switch (code) {
    case LOCATION_NONE:
        break;
    case LOCATION_LONG:
        further = signed_varint(c);
        for (int i = 0; i < 3; i++) { /* end line, column, end column */
            (void)varint(c);
        }
        break;
    case LOCATION_NO_COLUMNS:
        further = signed_varint(c);
        break;
    default:
        further = code >= LOCATION_ONE_LINE ? (int64_t)code - LOCATION_ONE_LINE : 0;
        cursor_skip(c, code >= LOCATION_ONE_LINE ? 2 : 1);
    }
    return further;
}

static uint32_t locations_line(int64_t line, struct cursor table, int64_t offset)
{
    for (int64_t limit = 0; table.len > 0;) {
        uint8_t head = cursor_u8(&table);
        unsigned code = head >> 3 & 15;
        line += take_location(&table, code);
        limit += ((head & 7) + 1) * UNIT;
        if ((head & 0x80) == 0 || table.short_read) {
            return 0;
        }
        if (offset < limit) {
            return code == LOCATION_NONE ? 0 : as_line(line);
        }
    }
    return 0;
}

uint32_t python_line(enum python_lines format, uint32_t first_line, const unsigned char *table,
                     size_t len, int64_t offset)
{
    struct cursor c = cursor_of(table, len);
    if (offset < 0) {
        return as_line(first_line);
    }
    if (len > TABLE_MAX) {
        return 0;
    }
    switch (format) {
    case PYTHON_LNOTAB_UNSIGNED:
    case PYTHON_LNOTAB:
        return lnotab_line(first_line, c, offset, format == PYTHON_LNOTAB);
    case PYTHON_LINETABLE:
        return linetable_line(first_line, c, offset);
    case PYTHON_LOCATIONS:
        return locations_line(first_line, c, offset);
    }
    return 0;
}
