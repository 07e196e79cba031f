#include "runtime/python/private.h"
#include "test.h"

#define LINE(format, first, offset, ...)                                                           \
    python_line((format), (first), (const unsigned char[]){__VA_ARGS__},                           \
                sizeof(unsigned char[]){__VA_ARGS__}, (offset))

/* Two pairs: 6 bytes further 1 line, 10 bytes further 255 lines or 1 back. */
#define TWO_PAIRS 6, 1, 10, 255

static void unsigned_pairs(void)
{
    CHECK_INT(LINE(PYTHON_LNOTAB_UNSIGNED, 20, 0, TWO_PAIRS), 20);
    CHECK_INT(LINE(PYTHON_LNOTAB_UNSIGNED, 20, 5, TWO_PAIRS), 20);
    CHECK_INT(LINE(PYTHON_LNOTAB_UNSIGNED, 20, 6, TWO_PAIRS), 21);
    CHECK_INT(LINE(PYTHON_LNOTAB_UNSIGNED, 20, 15, TWO_PAIRS), 21);
    CHECK_INT(LINE(PYTHON_LNOTAB_UNSIGNED, 20, 16, TWO_PAIRS), 276);
    CHECK_INT(LINE(PYTHON_LNOTAB_UNSIGNED, 20, 1000, TWO_PAIRS), 276);
}

static void signed_pairs(void)
{
    CHECK_INT(LINE(PYTHON_LNOTAB, 20, 15, TWO_PAIRS), 21);
    CHECK_INT(LINE(PYTHON_LNOTAB, 20, 16, TWO_PAIRS), 20);
}

static void far_pairs(void)
{
    /* 300 bytes and 200 lines further: 255, 0; 45, 127; 0, 73 */
    CHECK_INT(LINE(PYTHON_LNOTAB, 1, 299, 255, 0, 45, 127, 0, 73), 1);
    CHECK_INT(LINE(PYTHON_LNOTAB, 1, 300, 255, 0, 45, 127, 0, 73), 201);
}

/* 3.10: 4 bytes on the first line, 6 without one, 2 two lines further. */
#define THREE_RANGES 4, 0, 6, 128, 2, 2

static void ranges(void)
{
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 0, THREE_RANGES), 7);
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 2, THREE_RANGES), 7);
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 4, THREE_RANGES), 0);
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 8, THREE_RANGES), 0);
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 10, THREE_RANGES), 9);
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 12, THREE_RANGES), 0);
}

static void empty_range(void)
{
    /* 250 lines further in two steps; the first covers nothing */
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 0, 0, 127, 2, 123), 257);
    /* 3 lines back */
    CHECK_INT(LINE(PYTHON_LINETABLE, 7, 2, 2, 0, 2, 253), 4);
}

/* An entry's first byte: bit 7, its code, its units less one. */
#define ENTRY(code, units) (0x80 | (code) << 3 | ((units)-1))

static void locations(void)
{
    static const unsigned char table[] = {
        ENTRY(0, 1), 0x11,                   /* 0-1: same line, columns in one byte */
        ENTRY(11, 2), 4, 9,                  /* 2-5: 1 line further, two columns */
        ENTRY(15, 1),                        /* 6-7: nowhere */
        ENTRY(13, 1), 0x06,                  /* 8-9: 3 further (6 is +3), no columns */
        ENTRY(14, 8), 0x43, 0x01, 0, 5, 0x42, 1, /* 10-25: 33 back (67 = 3 + 64), three varints */
        ENTRY(9, 1), 0,                      /* 26-27: same line */
        ENTRY(12, 1), 0, 0,                  /* 28-29: 2 further */
    };
    static const struct {
        int offset;
        uint32_t line;
    } expected[] = {{0, 100},  {2, 101},  {4, 101},  {6, 0},    {8, 104},  {10, 71},
                    {24, 71},  {26, 71},  {28, 73},  {30, 0},   {1 << 30, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CHECK_INT(python_line(PYTHON_LOCATIONS, 100, table, sizeof table, expected[i].offset),
                  expected[i].line);
    }
}

static void no_line_zero(void)
{
    /* A module's first instruction, before any line of it, is on line 0 from 3.11 on. */
    CHECK_INT(LINE(PYTHON_LOCATIONS, 1, 0, ENTRY(14, 1), 0x03, 0, 0, 0, ENTRY(11, 1), 0, 0), 0);
    CHECK_INT(LINE(PYTHON_LOCATIONS, 1, 2, ENTRY(14, 1), 0x03, 0, 0, 0, ENTRY(11, 1), 0, 0), 1);
    CHECK_INT(LINE(PYTHON_LNOTAB, 3, 2, 2, 253), 0);
    CHECK_INT(LINE(PYTHON_LINETABLE, 3, 0, 2, 252), 0);
}

static void unstarted(void)
{
    for (int format = PYTHON_LNOTAB_UNSIGNED; format <= PYTHON_LOCATIONS; format++) {
        CHECK_INT(LINE((enum python_lines)format, 42, -2, 0, 1), 42);
        CHECK_INT(LINE((enum python_lines)format, 42, -1, 0, 1), 42);
    }
}

static void empty_table(void)
{
    CHECK_INT(python_line(PYTHON_LNOTAB_UNSIGNED, 5, NULL, 0, 8), 5);
    CHECK_INT(python_line(PYTHON_LNOTAB, 5, NULL, 0, 8), 5);
    CHECK_INT(python_line(PYTHON_LINETABLE, 5, NULL, 0, 8), 0);
    CHECK_INT(python_line(PYTHON_LOCATIONS, 5, NULL, 0, 8), 0);
}

static void damaged(void)
{
    /* half a pair */
    CHECK_INT(LINE(PYTHON_LNOTAB, 5, 0, 6, 1, 4), 0);
    CHECK_INT(LINE(PYTHON_LINETABLE, 5, 0, 6, 1, 4), 0);
    /* an entry that does not begin as one, though it is of a length that would do */
    CHECK_INT(LINE(PYTHON_LOCATIONS, 5, 0, ENTRY(10, 1) & 0x7f, 0, 0), 0);
    /* columns that are not there */
    CHECK_INT(LINE(PYTHON_LOCATIONS, 5, 0, ENTRY(10, 1), 0), 0);
    CHECK_INT(LINE(PYTHON_LOCATIONS, 5, 0, ENTRY(10, 1), 0, 0), 5);
    /* a number that does not end, and one of seven bytes */
    CHECK_INT(LINE(PYTHON_LOCATIONS, 5, 0, ENTRY(13, 1), 0x42), 0);
    CHECK_INT(LINE(PYTHON_LOCATIONS, 5, 0, ENTRY(13, 1), 0x42, 0x40, 0x40, 0x40, 0x40, 0x40, 0), 0);
    CHECK_INT(LINE(PYTHON_LOCATIONS, 5, 0, ENTRY(13, 1), 0x42, 0x40, 0x40, 0x40, 0x40, 0), 6);
}

static void huge(void)
{
    enum { MAX = 1 << 20 };
    unsigned char *table = calloc(1, MAX + 2);
    table[1] = 1;
    CHECK_INT(python_line(PYTHON_LNOTAB, 5, table, MAX, 0), 6);
    CHECK_INT(python_line(PYTHON_LNOTAB, 5, table, MAX + 2, 0), 0);
    free(table);
}

static void overflow(void)
{
    /* the largest step there is, again and again */
    unsigned char table[7 * 1024];
    for (size_t i = 0; i < sizeof table; i += 7) {
        memcpy(table + i, (unsigned char[]){ENTRY(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x03}, 7);
    }
    CHECK_INT(python_line(PYTHON_LOCATIONS, 0, table, sizeof table, 0), INT32_MAX);
    CHECK_INT(python_line(PYTHON_LOCATIONS, 1, table, sizeof table, 0), 0);
    CHECK_INT(python_line(PYTHON_LOCATIONS, 0, table, sizeof table, 2000), 0);
    CHECK_INT(python_line(PYTHON_LOCATIONS, UINT32_MAX, table, sizeof table, -1), 0);
}

TESTS({"up to 3.5 a table's line steps are unsigned", unsigned_pairs},
      {"from 3.6 on they are signed", signed_pairs},
      {"steps of more than a byte are taken in several pairs", far_pairs},
      {"a range of 3.10 without a line covers its bytes", ranges},
      {"a range of 3.10 may cover no bytes", empty_range},
      {"every kind of entry of 3.11 is read", locations},
      {"line 0 and less is no line", no_line_zero},
      {"code that has not begun is on its first line", unstarted},
      {"an empty table says nothing from 3.10 on, before that the first line", empty_table},
      {"a damaged table gives no line", damaged},
      {"a table of more than a mebibyte gives no line", huge},
      {"lines beyond all numbers are no lines", overflow})
