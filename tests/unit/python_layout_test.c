/* Where CPython's fields are: rows by version, and what a process says itself. */
#include "python_offsets.h"
#include "runtime/python/private.h"
#include "test.h"

enum { NONE = -1 };

static struct python_layout row(uint32_t version)
{
    struct python_layout layout = {0};
    struct err err = {0};
    if (!python_layout_of(version, ELF_X86_64, false, false, &layout, &err)) {
        printf("# %s\n", err.text);
        test_failures++;
    }
    return layout;
}

/* ---- rows ---- */

/* offsetof() in each version's headers, compiled with Py_BUILD_CORE for x86-64. */
static const struct {
    uint32_t version;
    int frames, lines;
    int head, current, threads;                            /* interpreters */
    int thread_interp, thread_frame, thread_id, native_id; /* PyThreadState */
    int position, previous, code;                          /* frames */
    int first_line, name, qualname, line_table, bytecode;  /* PyCodeObject */
    int ascii, compact;                                    /* str */
} known[] = {
    {0x020712f0, PYTHON_FRAMES_HEAP, PYTHON_LNOTAB_UNSIGNED, 0, NONE, 8, 8, 16, 144, NONE,
     120, 24, 32, 96, 88, NONE, 104, 32, NONE, NONE},
    {0x03050af0, PYTHON_FRAMES_HEAP, PYTHON_LNOTAB_UNSIGNED, 0, NONE, 8, 16, 24, 152, NONE,
     120, 24, 32, 112, 104, NONE, 120, 40, 48, 72},
    {0x03060ff0, PYTHON_FRAMES_HEAP, PYTHON_LNOTAB, 0, NONE, 8, 16, 24, 152, NONE,
     120, 24, 32, 36, 104, NONE, 112, 40, 48, 72},
    {0x030710f0, PYTHON_FRAMES_HEAP, PYTHON_LNOTAB, 24, 1480, 8, 16, 24, 176, NONE,
     104, 24, 32, 36, 104, NONE, 112, 40, 48, 72},
    {0x030812f0, PYTHON_FRAMES_HEAP, PYTHON_LNOTAB, 32, 1368, 8, 16, 24, 176, NONE,
     104, 24, 32, 40, 112, NONE, 120, 48, 48, 72},
    {0x030912f0, PYTHON_FRAMES_HEAP, PYTHON_LNOTAB, 32, 568, 8, 16, 24, 176, NONE,
     104, 24, 32, 40, 112, NONE, 120, 48, 48, 72},
    {0x030a0df0, PYTHON_FRAMES_HEAP, PYTHON_LINETABLE, 32, 568, 8, 16, 24, 176, NONE,
     96, 24, 32, 40, 112, NONE, 120, 48, 48, 72},
    {0x030b07f0, PYTHON_FRAMES_CFRAME, PYTHON_LOCATIONS, 40, 576, 16, 16, 56, 152, 160,
     56, 48, 32, 72, 120, 128, 136, 184, 48, 72},
    {0x030c01f0, PYTHON_FRAMES_CFRAME, PYTHON_LOCATIONS, 40, NONE, 72, 16, 56, 136, 144,
     56, 8, 0, 68, 120, 128, 136, 192, 40, 56},
};

static void rows_of_versions(void)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct python_layout l = row(known[i].version);
        CHECK_INT(l.version, known[i].version);
        CHECK_INT(l.frames, known[i].frames);
        CHECK_INT(l.lines, known[i].lines);
        CHECK_INT((int32_t)l.runtime.head, known[i].head);
        CHECK_INT((int32_t)l.runtime.current, known[i].current);
        CHECK_INT(l.interp.threads, known[i].threads);
        CHECK_INT(l.thread.interp, known[i].thread_interp);
        CHECK_INT(l.thread.frame, known[i].thread_frame);
        CHECK_INT(l.thread.thread_id, known[i].thread_id);
        CHECK_INT((int32_t)l.thread.native_thread_id, known[i].native_id);
        CHECK_INT(l.frame.position, known[i].position);
        CHECK_INT(l.frame.previous, known[i].previous);
        CHECK_INT(l.frame.code, known[i].code);
        CHECK_INT(l.code.first_line, known[i].first_line);
        CHECK_INT(l.code.name, known[i].name);
        CHECK_INT((int32_t)l.code.qualname, known[i].qualname);
        CHECK_INT(l.code.lines, known[i].line_table);
        CHECK_INT(l.code.bytecode, known[i].bytecode);
        CHECK_INT((int32_t)l.object.str_ascii, known[i].ascii);
        CHECK_INT((int32_t)l.object.str_compact, known[i].compact);
    }
}

static void sizes_of_rows(void)
{
    struct python_layout l = row(0x020712f0);
    CHECK_INT(l.frame.bytes, 128);  /* f_lasti at 120 is the last, 4 bytes */
    CHECK_INT(l.thread.bytes, 152); /* thread_id at 144 */
    CHECK_INT(l.code.bytes, 112);   /* co_lnotab at 104 */
    l = row(0x030b07f0);
    CHECK_INT(l.frame.bytes, 72);   /* owner at 69 */
    CHECK_INT(l.thread.bytes, 312); /* datastack_top at 304 */
    CHECK_INT(l.code.bytes, 144);   /* co_linetable at 136; the bytecode at 184 is not meant */
    CHECK_INT(l.interp.bytes, 856); /* gc.collecting at 848 */
}

static void kinds_of_str(void)
{
    struct python_layout l = row(0x030c01f0);
    CHECK(l.object.kind_mask == 0x1c && l.object.kind_shift == 2);
    CHECK(l.object.compact_bit == 0x20 && l.object.ascii_bit == 0x40);
    l = row(0x020712f0);
    CHECK(l.object.kind_mask == 0 && l.object.bytes_data == 36); /* names are byte strings */
}

static void builds_that_differ(void)
{
    struct python_layout l;
    /* the lock before the GIL's holder came with 3.7.4 */
    CHECK_INT(row(0x030703f0).runtime.current, 1392);
    CHECK_INT(row(0x030704f0).runtime.current, 1480);
    CHECK_INT(row(0x03070000).runtime.current, 1480); /* release not known: the later ones */
    /* two mutexes of 48 bytes instead of 40 */
    CHECK(python_layout_of(0x030912f0, ELF_AARCH64, false, false, &l, NULL));
    CHECK_INT(l.runtime.current, 584);
    CHECK(python_layout_of(0x030912f0, ELF_AARCH64, true, false, &l, NULL));
    CHECK_INT(l.runtime.current, 568);
    CHECK(python_layout_of(0x030c01f0, ELF_AARCH64, false, false, &l, NULL));
    CHECK_INT((int32_t)l.runtime.current, NONE);
    CHECK_INT(l.interp.gil, 384);
}

static void linked_objects(void)
{
    struct python_layout l;
    CHECK(python_layout_of(0x030710f0, ELF_X86_64, false, true, &l, NULL));
    CHECK_INT(l.code.name, 104 + 16);
    CHECK_INT(l.frame.position, 104 + 16);
    CHECK_INT(l.object.type, 8 + 16);
    CHECK_INT(l.type.members, 240 + 16);
    CHECK_INT(l.thread.frame, 24); /* no object */
    CHECK_INT(l.interp.threads, 8);
    CHECK_INT((int32_t)l.code.qualname, NONE);
    CHECK(python_layout_of(0x030b07f0, ELF_X86_64, false, true, &l, NULL));
    CHECK_INT(l.code.name, 120 + 16);
    CHECK_INT(l.frame.position, 56); /* no object since 3.11 */
}

static void refused_rows(void)
{
    static const struct {
        uint32_t version;
        const char *text;
    } unknown[] = {{0x03040af0, "CPython 3.4.10 "}, {0x02060000, "CPython 2.6 "},
                   {0x030d00c1, "CPython 3.13.0rc1 "}, {0x040000a3, "CPython 4.0.0a3 "},
                   {0, "CPython 0.0 "}};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct python_layout l = {.version = 7};
        struct err err = {0};
        CHECK(!python_layout_of(unknown[i].version, ELF_X86_64, false, false, &l, &err));
        CHECK_INT(err.kind, ERR_UNSUPPORTED);
        CHECK_STR(str_sub(str_of(err.text), 0, strlen(unknown[i].text)), unknown[i].text);
        CHECK_INT(l.version, 7); /* not written */
    }
}

static void version_texts(void)
{
    char text[PYTHON_VERSION_TEXT];
    python_version_text(0x030b09f0, text);
    CHECK_TEXT(text, "3.11.9");
    python_version_text(0x030f00b4, text);
    CHECK_TEXT(text, "3.15.0b4");
    python_version_text(0x03090000, text);
    CHECK_TEXT(text, "3.9");
}

/* ---- what a process says ---- */

struct told {
    uint64_t word[128];
    size_t count;
};

#define TOLD(words) told_of(words, sizeof(words) / sizeof(words)[0])

static struct told told_of(const uint64_t *words, size_t count)
{
    struct told t = {.count = count};
    memcpy(t.word, words, count * sizeof *words);
    return t;
}

static bool reads(const struct told *t, struct python_layout *l, struct err *err)
{
    unsigned char bytes[sizeof t->word]; /* as the target has them: little-endian */
    for (size_t i = 0; i < t->count * 8; i++) {
        bytes[i] = (unsigned char)(t->word[i / 8] >> 8 * (i % 8));
    }
    return python_layout_read(bytes, t->count * 8, l, err);
}

static struct python_layout said(struct told t)
{
    struct python_layout l = {0};
    struct err err = {0};
    if (!reads(&t, &l, &err)) {
        printf("# %s\n", err.text);
        test_failures++;
    }
    return l;
}

static void said_by_3_13(void)
{
    struct python_layout l = said(TOLD(offsets_3_13));
    CHECK(l.version == 0x030d05f0 && !l.free_threaded && l.frames == PYTHON_FRAMES_CURRENT);
    CHECK(l.lines == PYTHON_LOCATIONS);
    CHECK(l.runtime.head == 632 && l.runtime.finalizing == 608);
    CHECK_INT((int32_t)l.runtime.current, NONE);
    CHECK(l.interp.next == 7264 && l.interp.threads == 7344 && l.interp.gil == 16);
    CHECK(l.interp.gil_holder == 7760 - 7752 && l.interp.gil_locked == 7768 - 7752);
    CHECK_INT(l.interp.collecting, 7400 + 200);
    CHECK_INT((int32_t)l.interp.code_generation, NONE);
    CHECK(l.thread.frame == 72 && l.thread.thread_id == 152 && l.thread.native_thread_id == 160);
    CHECK(l.thread.chunk == 232 && l.thread.top == 240 && l.thread.status == 32);
    CHECK_INT((int32_t)l.thread.holds_gil, NONE);
    CHECK(l.frame.previous == 8 && l.frame.code == 0 && l.frame.position == 56);
    CHECK(l.frame.owner == 70 && l.frame.locals == 72);
    CHECK(l.code.flags == 48 && l.code.argcount == 52 && l.code.first_line == 68);
    CHECK(l.code.bytecode == 200 && l.code.version == 92 && l.code.lines == 136);
    CHECK(l.object.str_ascii == 40 && l.object.str_compact == 56 && l.object.bytes_data == 32);
    CHECK(l.type.basicsize == 32 && l.type.members == 240);
    CHECK(l.generator.bytes == LAYOUT_NONE && l.frame.top == LAYOUT_NONE);
}

static void said_by_later(void)
{
    struct python_layout l = said(TOLD(offsets_3_14));
    CHECK(l.interp.code_generation == 7992 && l.thread.holds_gil == 36);
    CHECK(l.frame.owner == 74 && l.frame.locals == 80 && l.code.bytecode == 208);
    CHECK_INT((int32_t)l.frame.tlbc_index, NONE);
    CHECK_INT((int32_t)l.thread.base_frame, NONE);
    CHECK_INT(l.interp.collecting, 7408 + 192);
    CHECK(l.generator.bytes == 160 && l.generator.frame == 72 && l.generator.state == 67 && l.frame.top == 64);
    l = said(TOLD(offsets_3_15));
    CHECK(l.thread.base_frame == 80 && l.thread.holds_gil == 36 && l.thread.gil_requested == 40);
    CHECK(l.thread.native_thread_id == 184 && l.thread.chunk == 256 && l.thread.top == 264);
    CHECK_INT(l.interp.collecting, 7400 + 112);
    CHECK(l.generator.bytes == 160 && l.generator.frame == 72 && l.generator.state == 67 && l.frame.top == 64);
    CHECK_INT(l.object.str_compact, 56);
}

static void said_without_gil(void)
{
    struct python_layout l = said(TOLD(offsets_3_13t));
    CHECK(l.free_threaded);
    CHECK(l.object.type == 24 && l.object.size == 32 && l.object.bytes_data == 48);
    CHECK(l.type.basicsize == 48 && l.type.members == 256);
    CHECK(l.object.str_ascii == 56 && l.object.str_compact == 72);
    CHECK(l.code.flags == 64 && l.code.version == 108 && l.code.bytecode == 216);
    CHECK(l.object.kind_mask == 0x1c && l.object.kind_shift == 2);
    CHECK(l.interp.gil_holder == 16 && l.interp.gil_locked == 24);
    /* 3.14 made `interned` a byte, and gave threads bytecode of their own */
    struct told t = TOLD(offsets_3_14);
    t.word[WORD_FREE_THREADED] = 1;
    t.word[168 / 8] = 8000; /* tlbc_generation */
    t.word[304 / 8] = 72;   /* tlbc_index */
    t.word[392 / 8] = 200;  /* co_tlbc */
    l = said(t);
    CHECK(l.object.kind_mask == 0x0700 && l.object.kind_shift == 8);
    CHECK(l.object.compact_bit == 0x0800 && l.object.ascii_bit == 0x1000);
    CHECK(l.interp.tlbc_generation == 8000 && l.frame.tlbc_index == 72 && l.code.tlbc == 200);
}

static void refused(const char *what, struct told t, const char *text)
{
    struct python_layout l = {.version = 7};
    struct err err = {0};
    bool good = reads(&t, &l, &err);
    if (good || l.version != 7 || strstr(err.text, text) == NULL) {
        printf("# %s: %d, '%s'\n", what, good, err.text);
        test_failures++;
    }
}

static struct told with(struct told t, size_t byte, uint64_t value)
{
    t.word[byte / 8] = value;
    return t;
}

static void refused_offsets(void)
{
    struct told t = TOLD(offsets_3_15);
    refused("no mark", with(t, 0, 1), "_PyRuntime");
    refused("neither with nor without GIL", with(t, 16, 2), "_PyRuntime");
    refused("3.12", with(t, 8, 0x030c01f0), "CPython 3.12.1");
    refused("4.0", with(t, 8, 0x040000f0), "CPython 4.0.0");
    refused("a structure of 1 MiB", with(t, 24, 1 << 20), "CPython 3.15.2");
    refused("a structure of nothing", with(t, 48, 0), "CPython 3.15.2");
    refused("a field behind its structure", with(t, 320, 88), "CPython 3.15.2");
    refused("a field that ends behind it", with(with(t, 312, 84), 320, 80), "CPython 3.15.2");
    refused("a field at an odd place", with(t, 336, 57), "CPython 3.15.2");
    refused("a field that wraps around", with(t, 336, UINT64_MAX - 7), "CPython 3.15.2");
    refused("a holder before its lock", with(t, 152, 7728), "CPython 3.15.2");
    refused("a collector that does not fit", with(t, 88, 226240 - 8), "CPython 3.15.2");
    refused("text inside its own header", with(t, 736, 32), "CPython 3.15.2");
    refused("text of one byte more", with(t, 744, 40), "CPython 3.15.2");
}

static void early_releases(void)
{
    struct python_layout l;
    struct told t = TOLD(offsets_3_15);
    refused("a beta before the list was final", with(t, 8, 0x030f00b3), "3.15.0b3");
    t = with(t, 8, 0x030f00b4);
    CHECK(reads(&t, &l, NULL));
    t = TOLD(offsets_3_14);
    refused("a beta of 3.14", with(t, 8, 0x030e00b4), "3.14.0b4");
    t = with(t, 8, 0x030e00c1);
    CHECK(reads(&t, &l, NULL));
}

static void newer_versions(void)
{
    struct told t = with(TOLD(offsets_3_15), 8, 0x031001f0); /* 3.16.1 */
    CHECK_INT(said(t).version, 0x031001f0);
    refused("a frame of 136 bytes", with(t, 312, 136), "CPython 3.16.1");
    refused("a code object of 400 bytes", with(t, 376, 400), "CPython 3.16.1");
    refused("a str of 72 bytes", with(with(t, 736, 72), 744, 88), "CPython 3.16.1");
}

static void cut_offsets(void)
{
    static const struct {
        const uint64_t *words;
        size_t bytes; /* of the list: what is behind is _PyRuntime's own */
    } lists[] = {{offsets_3_13, 584}, {offsets_3_14, 664}, {offsets_3_15, 768}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (size_t len = 0; len < lists[i].bytes; len++) {
            struct python_layout l;
            CHECK(!python_layout_read(lists[i].words, len, &l, NULL));
        }
    }
}

/* Whatever stands in the list: no field of what is accepted lies outside of a MiB. */
static void spoiled_offsets(void)
{
    static const uint64_t bad[] = {0, 1, 8, 1 << 19, 1 << 20, 1ULL << 32, UINT64_MAX - 3};
    unsigned accepted = 0;
    for (size_t at = 3; at < sizeof offsets_3_15 / 8; at++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            struct told t = with(TOLD(offsets_3_15), at * 8, bad[i]);
            struct python_layout l;
            if (reads(&t, &l, NULL)) {
                accepted++;
                CHECK(l.interp.bytes <= 1 << 20 && l.thread.bytes <= 512);
                CHECK(l.frame.bytes <= 160 && l.code.bytes <= 256);
                CHECK(l.interp.gil_holder < 1 << 20 && l.interp.collecting < 1 << 20);
                CHECK(l.object.str_ascii <= 256 && l.object.str_compact <= 256);
                CHECK(l.generator.bytes == LAYOUT_NONE ||
                      (l.generator.bytes <= 256 && l.generator.frame + l.frame.bytes <= l.generator.bytes &&
                       l.generator.state < l.generator.bytes && l.frame.top + 8 <= LAYOUT_FRAME_MAX));
            }
        }
    }
    CHECK(accepted > 0);
}

TESTS({"each version's row says what its headers say", rows_of_versions},
      {"as much is read of a structure as its last field needs", sizes_of_rows},
      {"the kinds of str are told apart by version", kinds_of_str},
      {"release, processor and libc move the GIL's holder", builds_that_differ},
      {"objects that are linked begin 16 bytes later, other structures do not", linked_objects},
      {"a version without a row is refused by its name", refused_rows},
      {"a version reads as people write it", version_texts},
      {"3.13 says its own layout", said_by_3_13},
      {"3.14 and 3.15 say theirs", said_by_later},
      {"a build without GIL says its larger objects", said_without_gil},
      {"a list that contradicts itself is refused with the version's name", refused_offsets},
      {"test releases from before the list was final are refused", early_releases},
      {"a newer version is read only when it looks like the last one known", newer_versions},
      {"a list that is cut anywhere is refused", cut_offsets},
      {"no spoiled list leads outside of a structure", spoiled_offsets})
