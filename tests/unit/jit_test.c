/* Names of generated code: perf maps and jitdumps as they grow. */
#include "jit_stats.h"
#include "test.h"

#define NOW UINT64_MAX

/* What was at an address: "name+offset", with " file:line" when there is one, or "(none)". */
static const char *at(struct jit_names *names, uint64_t address, uint64_t time_ns)
{
    static char text[300];
    struct jit_hit hit;
    if (!jit_lookup(names, address, time_ns, &hit)) {
        return "(none)";
    }
    CHECK(hit.start <= address && address < hit.limit);
    int len = snprintf(text, sizeof text, "%.*s+%llx", (int)hit.name.len, hit.name.ptr,
                       (unsigned long long)(address - hit.start));
    if (hit.line != 0) {
        snprintf(text + len, sizeof text - (size_t)len, " %.*s:%u", (int)hit.file.len,
                 hit.file.ptr, hit.line);
    }
    return text;
}

static struct jit_names *map_of(const char *text, size_t piece)
{
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    size_t len = strlen(text);
    for (size_t from = 0; from < len; from += piece) {
        jit_feed_map(names, text + from, len - from < piece ? len - from : piece);
    }
    return names;
}

/* ---- perf maps ---- */

static void map_lines(void)
{
    static const char text[] = "7f0000001000 b py::fib:/srv/app.py\n" /* CPython */
                               "18c4000 300 Builtin:DeoptimizationEntry_Eager\n" /* V8 */
                               "0x00007f0000002000 0x0000000000000080 int Shop.total(int, int)\n"
                               "        3000       40 aligned by blanks\r\n";
    for (size_t piece = 1; piece < sizeof text; piece = piece * 2 + 1) {
        struct jit_names *names = map_of(text, piece);
        CHECK_TEXT(at(names, 0x7f0000000fff, NOW), "(none)");
        CHECK_TEXT(at(names, 0x7f0000001000, NOW), "py::fib:/srv/app.py+0");
        CHECK_TEXT(at(names, 0x7f000000100a, NOW), "py::fib:/srv/app.py+a");
        CHECK_TEXT(at(names, 0x7f000000100b, NOW), "(none)");
        CHECK_TEXT(at(names, 0x18c42ff, NOW), "Builtin:DeoptimizationEntry_Eager+2ff");
        CHECK_TEXT(at(names, 0x7f0000002010, NOW), "int Shop.total(int, int)+10");
        CHECK_TEXT(at(names, 0x3000, NOW), "aligned by blanks+0");
        CHECK_TEXT(at(names, 0, NOW), "(none)");
        CHECK_TEXT(at(names, UINT64_MAX, NOW), "(none)");
        CHECK_INT(jit_names_stats(names).names, 4);
        CHECK_INT(jit_names_stats(names).damaged, 0);
        jit_names_free(names);
    }
}

static void map_unfinished_line(void)
{
    struct jit_names *names = map_of("1000 10 whole\n2000 10 half a na", 100);
    CHECK_TEXT(at(names, 0x1000, NOW), "whole+0");
    CHECK_TEXT(at(names, 0x2000, NOW), "(none)");
    jit_feed_map(names, "me\n", 3);
    CHECK_TEXT(at(names, 0x2000, NOW), "half a name+0");
    jit_names_free(names);
}

static void map_damage(void)
{
    struct jit_names *names = map_of("1000 10 good\n"
                                     "\n"
                                     "2000\n"
                                     "2000 10\n"
                                     "2000 10 \n"
                                     "20z0 10 no number\n"
                                     "-2000 10 no number\n"
                                     "2000 0 nothing\n"
                                     "2000 100000000 4 GiB\n"
                                     "fffffffffffffff8 10 wraps\n"
                                     "12345678123456781 10 too large\n"
                                     "3000 10 good too\n",
                                     1000);
    CHECK_INT(jit_names_stats(names).damaged, 10);
    CHECK_INT(jit_names_stats(names).names, 2);
    CHECK_TEXT(at(names, 0x2000, NOW), "(none)");
    CHECK_TEXT(at(names, 0x3000, NOW), "good too+0");
    jit_names_free(names);
}

static void map_long_line(void)
{
    static char text[20000];
    for (size_t piece = 100; piece <= 100000; piece *= 10) {
        memset(text, 'n', sizeof text);
        memcpy(text, "1000 10 ", 8);
        strcpy(text + 10000, "\n2000 10 next\n");
        struct jit_names *names = map_of(text, piece);
        struct jit_hit hit;
        CHECK(jit_lookup(names, 0x1000, NOW, &hit));
        CHECK_INT(hit.name.len, JIT_LINE_MAX - 8);
        CHECK_TEXT(at(names, 0x2000, NOW), "next+0");
        CHECK_INT(jit_names_stats(names).damaged, 0);
        jit_names_free(names);
    }
}

static void map_later_wins(void)
{
    struct jit_names *names = map_of("1000 100 first\n"
                                     "1100 100 second\n"
                                     "1200 100 third\n"
                                     "1300 100 fourth\n",
                                     1000);
    jit_feed_map(names, "1180 100 new\n", 13); /* the rest of second, the beginning of third */
    CHECK_TEXT(at(names, 0x10ff, NOW), "first+ff");
    CHECK_TEXT(at(names, 0x117f, NOW), "second+7f"); /* cut: it can still be entered */
    struct jit_hit hit;
    CHECK(jit_lookup(names, 0x117f, NOW, &hit));
    CHECK_INT(hit.limit, 0x1180);
    CHECK_TEXT(at(names, 0x1180, NOW), "new+0");
    CHECK_TEXT(at(names, 0x127f, NOW), "new+ff");
    CHECK_TEXT(at(names, 0x1280, NOW), "(none)"); /* third cannot be entered any more */
    CHECK_TEXT(at(names, 0x1300, NOW), "fourth+0");
    CHECK_INT(jit_names_stats(names).names, 4);
    CHECK_INT(jit_names_stats(names).replaced, 1);
    jit_feed_map(names, "1300 100 fifth\n", 15);
    CHECK_TEXT(at(names, 0x13ff, NOW), "fifth+ff");
    CHECK_TEXT(at(names, 0x13ff, 5), "fifth+ff"); /* a perf map knows no time */
    jit_feed_map(names, "1000 1000 all\n", 14);
    CHECK_TEXT(at(names, 0x1fff, NOW), "all+fff");
    CHECK_INT(jit_names_stats(names).names, 1);
    CHECK_INT(jit_names_stats(names).replaced, 6);
    jit_names_free(names);
}

/* Against a table with one entry per 16 bytes: numbers that look random, the same at each run. */
static void map_against_a_plain_table(void)
{
    enum { CELLS = 4096, LINES = 20000 };
    static int owner[CELLS], start[CELLS];
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    unsigned state = 1;
    memset(owner, 0, sizeof owner);
    for (int line = 1; line <= LINES; line++) {
        char text[64];
        state = state * 1103515245u + 12345u;
        int from = (int)(state >> 16) % CELLS, cells = (int)(state >> 8) % 7 + 1;
        for (int i = 0; i < CELLS; i++) { /* who began in the range is gone as a whole */
            if (owner[i] != 0 && start[i] >= from && start[i] < from + cells) {
                owner[i] = 0;
            }
        }
        /* and who began before it ends there */
        int before = from < CELLS && owner[from] != 0 && start[from] < from ? owner[from] : 0;
        for (int i = from; i < CELLS && before != 0 && owner[i] == before; i++) {
            owner[i] = 0;
        }
        for (int i = from; i < from + cells && i < CELLS; i++) {
            owner[i] = line;
            start[i] = from;
        }
        snprintf(text, sizeof text, "%x %x f%d\n", from * 16, cells * 16, line);
        jit_feed_map(names, text, strlen(text));
    }
    for (int i = 0; i < CELLS; i++) {
        char expected[64] = "(none)";
        if (owner[i] != 0) {
            snprintf(expected, sizeof expected, "f%d+%x", owner[i], (i - start[i]) * 16);
        }
        CHECK_TEXT(at(names, (uint64_t)i * 16, NOW), expected);
    }
    jit_names_free(names);
}

/* ---- jitdumps ---- */

static struct {
    unsigned char bytes[4096];
    size_t len, record; /* where the last record began */
} dump;

static void put(uint64_t value, size_t bytes)
{
    memcpy(dump.bytes + dump.len, &value, bytes); /* little-endian machines only, as the format */
    dump.len += bytes;
}

static void put_text(const char *text)
{
    memcpy(dump.bytes + dump.len, text, strlen(text) + 1);
    dump.len += strlen(text) + 1;
}

static void put_header(unsigned machine, unsigned flags)
{
    dump.len = 0;
    put(0x4a695444, 4);
    put(1, 4);
    put(40, 4);
    put(machine, 4);
    put(0, 4);
    put(4711, 4);
    put(1000, 8);
    put(flags, 8);
}

static void begin_record(unsigned id, uint64_t time_ns)
{
    dump.record = dump.len;
    put(id, 4);
    put(0, 4);
    put(time_ns, 8);
}

static void end_record(void)
{
    uint32_t len = (uint32_t)(dump.len - dump.record);
    memcpy(dump.bytes + dump.record + 4, &len, 4);
}

static void put_load(uint64_t time_ns, uint64_t start, uint64_t bytes, const char *name)
{
    begin_record(0, time_ns);
    put(4711, 4);
    put(4712, 4);
    put(start, 8);
    put(start, 8);
    put(bytes, 8);
    put(1, 8);
    put_text(name);
    for (uint64_t i = 0; i < bytes && i < 64; i++) {
        put(0x90, 1);
    }
    end_record();
}

static void put_move(uint64_t time_ns, uint64_t from, uint64_t to, uint64_t bytes)
{
    begin_record(1, time_ns);
    put(4711, 4);
    put(4712, 4);
    put(to, 8);
    put(from, 8);
    put(to, 8);
    put(bytes, 8);
    put(1, 8);
    end_record();
}

static void begin_lines(uint64_t start, uint64_t count)
{
    begin_record(2, 0);
    put(start, 8);
    put(count, 8);
}

static void put_line(uint64_t address, unsigned line, const char *file)
{
    put(address, 8);
    put(line, 4);
    put(7, 4);
    put_text(file);
}

static struct jit_names *fed(size_t piece)
{
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    for (size_t from = 0; from < dump.len; from += piece) {
        CHECK(jit_feed_dump(names, dump.bytes + from,
                            dump.len - from < piece ? dump.len - from : piece, NULL));
    }
    return names;
}

static void dump_records(void)
{
    put_header(62, 0);
    put_load(2000, 0x1000, 0x20, "JS:*fib /srv/app.js:1:13");
    begin_record(4, 2000); /* unwinding information */
    put(0x1122334455667788, 8);
    end_record();
    begin_record(77, 2000); /* nobody knows */
    put(1, 4);
    end_record();
    put_load(3000, 0x2000, 0x30, "second");
    begin_record(3, 4000);
    end_record();
    for (size_t piece = 1; piece <= dump.len; piece = piece * 2 + 1) {
        struct jit_names *names = fed(piece);
        CHECK_TEXT(at(names, 0x101f, NOW), "JS:*fib /srv/app.js:1:13+1f");
        CHECK_TEXT(at(names, 0x1020, NOW), "(none)");
        CHECK_TEXT(at(names, 0x2000, NOW), "second+0");
        CHECK_INT(jit_names_stats(names).names, 2);
        CHECK_INT(jit_names_stats(names).damaged, 0);
        jit_names_free(names);
    }
}

static void dump_times(void)
{
    put_header(0, 0); /* CPython leaves the machine empty */
    put_load(2000, 0x1000, 0x20, "old");
    put_load(2500, 0x1020, 0x20, "neighbour");
    put_load(3000, 0x0ff0, 0x20, "middle");
    put_load(4000, 0x1000, 0x20, "new");
    struct jit_names *names = fed(4096);
    CHECK_TEXT(at(names, 0x1008, 1999), "(none)");
    CHECK_TEXT(at(names, 0x1008, 2000), "old+8");
    CHECK_TEXT(at(names, 0x1008, 2999), "old+8");
    CHECK_TEXT(at(names, 0x1008, 3000), "middle+18");
    CHECK_TEXT(at(names, 0x1018, 3000), "(none)");
    CHECK_TEXT(at(names, 0x1008, 3999), "middle+18");
    CHECK_TEXT(at(names, 0x0ff8, 3999), "middle+8");
    CHECK_TEXT(at(names, 0x1008, 4000), "new+8");
    CHECK_TEXT(at(names, 0x0ff8, 4000), "middle+8");
    CHECK_TEXT(at(names, 0x1008, NOW), "new+8");
    CHECK_TEXT(at(names, 0x1028, 2499), "(none)");
    CHECK_TEXT(at(names, 0x1028, 2500), "neighbour+8");
    CHECK_INT(jit_names_stats(names).replaced, 1); /* "middle" was cut only */
    jit_names_free(names);
}

/* Two threads of a runtime write; each took its time before it waited for the file. */
static void dump_times_out_of_order(void)
{
    put_header(62, 0);
    put_load(2000, 0x1000, 0x20, "a");
    put_load(2000, 0x2000, 0x20, "b");
    put_load(6000, 0x1000, 0x20, "after a");
    put_load(5500, 0x2000, 0x20, "after b");
    struct jit_names *names = fed(4096);
    CHECK_TEXT(at(names, 0x1000, 5700), "a+0");
    CHECK_TEXT(at(names, 0x1000, 6000), "after a+0");
    CHECK_TEXT(at(names, 0x2000, 5400), "b+0");
    CHECK_TEXT(at(names, 0x2000, 5500), "after b+0");
    jit_names_free(names);
}

static void dump_processor_times(void)
{
    put_header(62, 1);
    put_load(99999, 0x1000, 0x20, "old");
    put_load(88888, 0x1000, 0x20, "new");
    struct jit_names *names = fed(4096);
    CHECK_TEXT(at(names, 0x1000, 5), "new+0");
    CHECK_TEXT(at(names, 0x1000, NOW), "new+0");
    jit_names_free(names);
}

static void dump_moves(void)
{
    put_header(62, 0);
    put_load(2000, 0x1000, 0x20, "f");
    put_load(2000, 0x2000, 0x20, "g");
    put_move(3000, 0x1000, 0x2010, 0x20);
    put_move(3500, 0x7000, 0x8000, 0x20); /* of what nobody announced */
    put_move(3600, 0x2018, 0x8000, 0x20); /* from within something */
    struct jit_names *names = fed(4096);
    CHECK_TEXT(at(names, 0x1010, 2999), "f+10");
    CHECK_TEXT(at(names, 0x1010, 3000), "(none)");
    CHECK_TEXT(at(names, 0x2018, 2999), "g+18");
    CHECK_TEXT(at(names, 0x2018, 3000), "f+8");
    CHECK_TEXT(at(names, 0x200f, NOW), "g+f");
    CHECK_TEXT(at(names, 0x8000, NOW), "(none)");
    CHECK_INT(jit_names_stats(names).damaged, 2);
    jit_names_free(names);
}

static void dump_lines(void)
{
    put_header(62, 0);
    begin_lines(0x1000, 4);
    put_line(0x1000, 10, "/srv/app.c");
    put_line(0x1008, 12, "\xff"); /* as the entry before */
    put_line(0x1018, 5, "/srv/inlined.c");
    put_line(0x1010, 11, "/srv/app.c"); /* not in order */
    end_record();
    put_load(2000, 0x1000, 0x20, "f");
    put_load(2000, 0x2000, 0x20, "no lines of its own");
    put_load(3000, 0x1000, 0x20, "successor");
    begin_lines(0x9000, 1);
    put_line(0x9000, 1, "/srv/other.c");
    end_record();
    put_load(3000, 0x3000, 0x20, "lines were of another");
    for (size_t piece = 1; piece <= dump.len; piece = piece * 2 + 1) {
        struct jit_names *names = fed(piece);
        CHECK_TEXT(at(names, 0x1000, 2000), "f+0 /srv/app.c:10");
        CHECK_TEXT(at(names, 0x1007, 2000), "f+7 /srv/app.c:10");
        CHECK_TEXT(at(names, 0x1008, 2000), "f+8 /srv/app.c:12");
        CHECK_TEXT(at(names, 0x1017, 2000), "f+17 /srv/app.c:11");
        CHECK_TEXT(at(names, 0x1018, 2000), "f+18 /srv/inlined.c:5");
        CHECK_TEXT(at(names, 0x2000, NOW), "no lines of its own+0");
        CHECK_TEXT(at(names, 0x1000, NOW), "successor+0");
        CHECK_TEXT(at(names, 0x3000, NOW), "lines were of another+0");
        jit_names_free(names);
    }
}

static void dump_lines_that_do_not_add_up(void)
{
    put_header(62, 0);
    begin_lines(0x1000, 2); /* as node 20: the first letters of "app.js" were freed */
    put_line(0x1040, 1, "a");
    put(0x736a2e70, 5); /* "p.js" and its NUL */
    put_line(0x1050, 2, "a");
    put(0x736a2e70, 5);
    end_record();
    put_load(1, 0x1000, 0x20, "f");
    begin_lines(0x2000, 1000); /* has one */
    put_line(0x2000, 1, "a.c");
    end_record();
    put_load(1, 0x2000, 0x20, "g");
    begin_lines(0x3000, 1); /* cut */
    put(0x3000, 8);
    end_record();
    put_load(1, 0x3000, 0x20, "h");
    begin_lines(0x4000, 1);
    put_line(0x4040, 4, "a.js");
    put(0, 3); /* padding */
    end_record();
    put_load(1, 0x4000, 0x20, "i");
    struct jit_names *names = fed(4096);
    CHECK_TEXT(at(names, 0x1010, NOW), "f+10");
    CHECK_TEXT(at(names, 0x2000, NOW), "g+0");
    CHECK_TEXT(at(names, 0x3000, NOW), "h+0");
    CHECK_TEXT(at(names, 0x4000, NOW), "i+0 a.js:4"); /* no word of the others was believed */
    CHECK_INT(jit_names_stats(names).damaged, 0);
    jit_names_free(names);
}

/* Forty functions of one name in a hash table of 64 places: some of them meet. */
static void dump_lines_of_namesakes(void)
{
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    put_header(62, 0);
    for (unsigned i = 1; i <= 40; i++) {
        begin_lines(i * 0x100, 1);
        put_line(i * 0x100, i, "f.c");
        end_record();
        put_load(1, i * 0x100, 0x20, "f");
        CHECK(jit_feed_dump(names, dump.bytes, dump.len, NULL));
        dump.len = 0;
    }
    for (unsigned i = 1; i <= 40; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "f+4 f.c:%u", i);
        CHECK_TEXT(at(names, i * 0x100 + 4, NOW), expected);
    }
    jit_names_free(names);
}

static void dump_lines_of_v8(void)
{
    put_header(62, 0);
    begin_lines(0x1000, 2);
    put_line(0x1040, 598, "node:util"); /* 0x40: an ELF header that is not there */
    put_line(0x1067, 599, "node:util");
    end_record();
    put_load(2000, 0x1000, 0x30, "JS:*f node:util:598:30");
    begin_lines(0x2000, 1);
    put_line(0x2050, 70, "node:path"); /* an offset in the bytecode, not in the code */
    end_record();
    put_load(2000, 0x2000, 0x30, "JS:^g node:path:70:30");
    struct jit_names *names = fed(4096);
    CHECK_TEXT(at(names, 0x1000, NOW), "JS:*f node:util:598:30+0 node:util:598");
    CHECK_TEXT(at(names, 0x1026, NOW), "JS:*f node:util:598:30+26 node:util:598");
    CHECK_TEXT(at(names, 0x1027, NOW), "JS:*f node:util:598:30+27 node:util:599");
    CHECK_TEXT(at(names, 0x2020, NOW), "JS:^g node:path:70:30+20");
    jit_names_free(names);
}

static void dump_long_name(void)
{
    static unsigned char bytes[40 + 56 + 10000];
    put_header(62, 0);
    put_load(1, 0x1000, 1, "");
    memcpy(bytes, dump.bytes, dump.len);
    uint32_t len = sizeof bytes - 40;
    memcpy(bytes + 44, &len, 4);
    memset(bytes + 40 + 56, 'n', 10000); /* 9,000 letters, a NUL and code */
    bytes[40 + 56 + 9000] = 0;
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    struct jit_hit hit;
    CHECK(jit_feed_dump(names, bytes, sizeof bytes, NULL));
    CHECK(jit_lookup(names, 0x1000, NOW, &hit));
    CHECK_INT(hit.name.len, JIT_LINE_MAX);
    CHECK_INT(jit_names_stats(names).damaged, 0);
    jit_names_free(names);
}

static void dump_damage(void)
{
    put_header(62, 0);
    put_load(1, 0x1000, 0, "nothing");
    put_load(1, UINT64_MAX - 8, 0x20, "wraps");
    put_load(1, 0x1000, UINT64_C(1) << 32, "4 GiB");
    put_load(1, 0x1000, 0x20, "");
    begin_record(0, 1); /* a load without its end */
    put(1, 4);
    end_record();
    begin_record(1, 1); /* a move likewise */
    put(1, 4);
    end_record();
    put_load(1, 0x3000, 0x20, "good");
    struct jit_names *names = fed(4096);
    CHECK_INT(jit_names_stats(names).damaged, 6);
    CHECK_INT(jit_names_stats(names).names, 1);
    CHECK_TEXT(at(names, 0x3000, NOW), "good+0");
    jit_names_free(names);
}

/* Whether a dump is refused, with which kind. */
static enum err_kind refusal(void)
{
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    struct err err = {0};
    if (jit_feed_dump(names, dump.bytes, dump.len, &err)) {
        err.kind = ERR_NONE;
    } else {
        put_header(62, 0);
        put_load(1, 0x1000, 0x20, "f");
        CHECK(!jit_feed_dump(names, dump.bytes + 40, dump.len - 40, NULL)); /* for good */
        CHECK(!jit_feed_dump(names, dump.bytes, dump.len, NULL));
    }
    jit_names_free(names);
    return err.kind;
}

static void dump_refusals(void)
{
    put_header(183, 0);
    CHECK_INT(refusal(), ERR_NONE);
    put_header(20, 0); /* PowerPC */
    CHECK_INT(refusal(), ERR_UNSUPPORTED);
    put_header(62, 0);
    dump.bytes[4] = 2; /* version */
    CHECK_INT(refusal(), ERR_UNSUPPORTED);
    put_header(62, 0);
    memcpy(dump.bytes, "JiTD", 4); /* as a big-endian machine writes it */
    CHECK_INT(refusal(), ERR_UNSUPPORTED);
    memcpy(dump.bytes, "\x7f"
                       "ELF",
           4);
    CHECK_INT(refusal(), ERR_MALFORMED);
    put_header(62, 0);
    dump.bytes[8] = 39; /* bytes of the header */
    CHECK_INT(refusal(), ERR_MALFORMED);
    put_header(62, 0);
    dump.bytes[8] = 48; /* a longer one is skipped */
    put(0, 8);
    put_load(1, 0x1000, 0x20, "f");
    CHECK_INT(refusal(), ERR_NONE);
    put_header(62, 0);
    put_load(1, 0x1000, 0x20, "f");
    begin_record(3, 1);
    put(15, 4);
    memcpy(dump.bytes + dump.record + 4, "\x0f\0\0", 4); /* a record shorter than its prefix */
    CHECK_INT(refusal(), ERR_MALFORMED);
}

static void dump_given_up_keeps_names(void)
{
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    put_header(62, 0);
    put_load(1, 0x1000, 0x20, "f");
    begin_record(3, 1);
    CHECK(!jit_feed_dump(names, dump.bytes, dump.len, NULL));
    CHECK_TEXT(at(names, 0x1000, NOW), "f+0");
    jit_names_free(names);
}

/* ---- memory ---- */

static void many_names(void)
{
    enum { NAMES = 200000, TEXT = 40 };
    struct jit_names *names = jit_names_new(64 << 20);
    for (int i = 0; i < NAMES; i++) { /* in no order: 77,777 and 200,000 share no divisor */
        char line[100];
        unsigned place = (unsigned)((uint64_t)i * 77777 % NAMES);
        int len = snprintf(line, sizeof line, "%x 40 JS:*function_%06u /srv/app/file.js:10\n",
                           0x1000000 + place * 0x40, place);
        jit_feed_map(names, line, (size_t)len);
    }
    struct jit_stats stats = jit_names_stats(names);
    CHECK_INT(stats.names, NAMES);
    CHECK_INT(stats.refused + stats.damaged + stats.replaced, 0);
    CHECK_TEXT(at(names, 0x1000000 + 123456 * 0x40 + 5, NOW),
               "JS:*function_123456 /srv/app/file.js:10+5");
    /* a name has 39 bytes and a head of 2; 24 in a block that is two thirds full, a number in a
     * hash table of which every second place is used; growth in steps of a quarter */
    CHECK(stats.bytes < (size_t)NAMES * (TEXT + 24) * 3 / 2);
    jit_names_free(names);
}

static void one_name_many_times(void)
{
    struct jit_names *names = jit_names_new(JIT_NAMES_MAX_BYTES);
    for (unsigned i = 0; i < 50000; i++) { /* a collector moves code */
        char line[100];
        int len = snprintf(line, sizeof line, "%x 40 JS:*the_same /srv/app/file.js:10\n",
                           0x1000000 + i * 0x40);
        jit_feed_map(names, line, (size_t)len);
    }
    CHECK_INT(jit_names_stats(names).names, 50000);
    CHECK(jit_names_stats(names).bytes < 50000 * 26); /* blocks are full, the name is there once */
    jit_names_free(names);
}

static void full(void)
{
    enum { MAX_BYTES = 256 << 10 };
    struct jit_names *names = jit_names_new(MAX_BYTES);
    unsigned line_count = 0;
    char line[100];
    for (; line_count < 10000; line_count++) {
        int len = snprintf(line, sizeof line, "%x 40 name_%u\n", 0x100000 + line_count * 0x40,
                           line_count);
        jit_feed_map(names, line, (size_t)len);
        CHECK(jit_names_stats(names).bytes <= MAX_BYTES);
    }
    struct jit_stats stats = jit_names_stats(names);
    CHECK(stats.refused > 5000 && stats.names > 1000);
    CHECK_INT(stats.refused + stats.names, 10000);
    CHECK_TEXT(at(names, 0x100000, NOW), "name_0+0"); /* who came first stays */
    CHECK_TEXT(at(names, 0x100000 + 9999 * 0x40, NOW), "(none)");
    /* what is replaced makes room, again and again: 1,000 go, 500 come */
    for (unsigned round = 0; round < 50; round++) {
        int len = snprintf(line, sizeof line, "100000 %x all of them %u\n", 1000 * 0x40, round);
        jit_feed_map(names, line, (size_t)len);
        for (unsigned i = 0; i < 500; i++) {
            len = snprintf(line, sizeof line, "%x 40 later_%u_%u\n", 0x100000 + i * 0x80, round, i);
            jit_feed_map(names, line, (size_t)len);
        }
        CHECK(jit_names_stats(names).bytes <= MAX_BYTES);
    }
    CHECK_INT(jit_names_stats(names).refused, stats.refused);
    CHECK_TEXT(at(names, 0x100000 + 499 * 0x80, NOW), "later_49_499+0");
    CHECK_TEXT(at(names, 0x100000 + 1000 * 0x40, NOW), "name_1000+0");
    jit_names_free(names);
}

/* Of 2,000 functions 40 remain in as many places, then others come: what remains is not lost. */
static void full_and_sparse(void)
{
    struct jit_names *names = jit_names_new(256 << 10);
    char line[100];
    for (unsigned i = 0; i < 10000; i++) {
        int len = snprintf(line, sizeof line, "%x 40 name_%u\n", 0x100000 + i * 0x40, i);
        jit_feed_map(names, line, (size_t)len);
    }
    uint64_t refused = 0;
    for (unsigned i = 0; i < 2000; i += 50) {
        if (i == 200) { /* from here on enough was replaced */
            refused = jit_names_stats(names).refused;
        }
        int len = snprintf(line, sizeof line, "%x %x cleared\n", 0x100040 + i * 0x40, 49 * 0x40);
        jit_feed_map(names, line, (size_t)len);
    }
    for (unsigned i = 0; i < 1500; i++) {
        int len = snprintf(line, sizeof line, "%x 40 other_%u\n", 0x900000 + i * 0x40, i);
        jit_feed_map(names, line, (size_t)len);
    }
    CHECK_INT(jit_names_stats(names).refused, refused);
    for (unsigned i = 0; i < 2000; i += 50) {
        snprintf(line, sizeof line, "name_%u+0", i);
        CHECK_TEXT(at(names, 0x100000 + i * 0x40, NOW), line);
        if (i >= 200) {
            CHECK_TEXT(at(names, 0x100040 + i * 0x40, NOW), "cleared+0");
        }
    }
    for (unsigned i = 0; i < 1500; i++) {
        snprintf(line, sizeof line, "other_%u+0", i);
        CHECK_TEXT(at(names, 0x900000 + i * 0x40, NOW), line);
    }
    jit_names_free(names);
}

static void full_of_long_names(void)
{
    enum { MAX_BYTES = 256 << 10 };
    struct jit_names *names = jit_names_new(MAX_BYTES);
    char line[4100];
    memset(line, 'n', sizeof line);
    line[4000] = '\n';
    for (unsigned i = 0; i < 200; i++) {
        char start[16];
        memcpy(line, start, (size_t)snprintf(start, sizeof start, "%x 40 ", 0x100000 + i * 0x40));
        snprintf(start, sizeof start, "%08x", i);
        memcpy(line + 100, start, 8);
        jit_feed_map(names, line, 4001);
        CHECK(jit_names_stats(names).bytes <= MAX_BYTES);
    }
    CHECK(jit_names_stats(names).names > 20);
    jit_names_free(names);
}

static void full_of_the_past(void)
{
    enum { MAX_BYTES = 192 << 10 };
    struct jit_names *names = jit_names_new(MAX_BYTES);
    put_header(62, 0);
    CHECK(jit_feed_dump(names, dump.bytes, dump.len, NULL));
    for (unsigned i = 1; i <= 20000; i++) {
        char name[32];
        snprintf(name, sizeof name, "version_%u", i);
        dump.len = 0;
        put_load(i * 10, 0x1000, 0x20, name);
        CHECK(jit_feed_dump(names, dump.bytes, dump.len, NULL));
        CHECK(jit_names_stats(names).bytes <= MAX_BYTES);
    }
    CHECK_INT(jit_names_stats(names).refused, 0);
    CHECK_TEXT(at(names, 0x1000, NOW), "version_20000+0");
    CHECK_TEXT(at(names, 0x1000, 20000 * 10 - 1), "version_19999+0");
    CHECK_TEXT(at(names, 0x1000, 19950 * 10), "version_19950+0");
    CHECK_TEXT(at(names, 0x1000, 10), "(none)"); /* the oldest went first */
    jit_names_free(names);
}

TESTS({"perf map lines are read however they are cut into pieces", map_lines},
      {"a line counts when it has ended", map_unfinished_line},
      {"damaged lines are counted and skipped", map_damage},
      {"a long line is cut, the next one is read", map_long_line},
      {"later lines win over earlier ones they overlap", map_later_wins},
      {"overlaps come out as in a plain table", map_against_a_plain_table},
      {"jitdump records are read however they are cut into pieces", dump_records},
      {"code that replaced other code is told apart by time", dump_times},
      {"times need not be in order", dump_times_out_of_order},
      {"times of a processor's counter are not compared", dump_processor_times},
      {"moved code has its name in both places, each at its time", dump_moves},
      {"debug info gives lines", dump_lines},
      {"debug info that does not add up gives no lines", dump_lines_that_do_not_add_up},
      {"functions of one name keep their own lines", dump_lines_of_namesakes},
      {"V8's lines are set right, those of its baseline code left out", dump_lines_of_v8},
      {"a long name in a jitdump is cut", dump_long_name},
      {"damaged records are counted and skipped", dump_damage},
      {"a dump of another kind is refused by kind", dump_refusals},
      {"a dump that is given up keeps the names before", dump_given_up_keeps_names},
      {"200,000 names take their text and little more", many_names},
      {"equal names are kept once", one_name_many_times},
      {"a full table refuses new names until old ones were replaced", full},
      {"when room is made nothing is lost", full_and_sparse},
      {"long names do not pass the maximum", full_of_long_names},
      {"the past makes room for the present, the oldest first", full_of_the_past})
