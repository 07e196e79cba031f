#include "runtime/python/private.h"
#include "test.h"

enum { OBJECT_BYTES = 20000 };

/* A str as it lies in memory. */
static unsigned char object[OBJECT_BYTES];

static struct python_layout layout_of(uint32_t version)
{
    struct python_layout layout;
    CHECK(python_layout_of(version, ELF_X86_64, false, false, &layout, NULL));
    return layout;
}

static const uint32_t v2_7 = PYTHON_VERSION(2, 7), v3_8 = PYTHON_VERSION(3, 8),
                      v3_12 = PYTHON_VERSION(3, 12);

static void put(size_t at, const void *bytes, size_t len)
{
    memcpy(object + at, bytes, len);
}

/* A str with its length at 16 and its state at 32, as in every build that has a GIL. */
static void set(uint32_t state, uint64_t length, size_t data_at, const void *data, size_t len)
{
    memset(object, 0xee, sizeof object);
    put(16, &length, sizeof length);
    put(32, &state, sizeof state);
    put(data_at, data, len);
}

/* The text, read as one that is all in `object`; "-" when it is none. */
static const char *text_of(const struct python_layout *layout)
{
    static char out[RUNTIME_NAME_MAX + 1];
    struct python_text text;
    struct buf buf;
    strcpy(out, "-");
    if (python_text_find(layout, object, sizeof object, &text) && text.pointer == 0) {
        CHECK(text.offset + text.bytes <= sizeof object);
        buf_init(&buf, RUNTIME_NAME_MAX);
        python_text_add(&text, object + text.offset, &buf);
        CHECK(!buf.failed);
        strcpy(out, buf_cstr(&buf));
        buf_release(&buf);
    }
    return out;
}

/* State: kind in bits 2 to 4, compact 0x20, ASCII 0x40, 0x80 ready or static. */
enum {
    ASCII = 1 << 2 | 0x20 | 0x40 | 0x80,
    LATIN = 1 << 2 | 0x20 | 0x80,
    UCS2 = 2 << 2 | 0x20 | 0x80,
    UCS4 = 4 << 2 | 0x20 | 0x80,
};

static void ascii(void)
{
    struct python_layout old = layout_of(v3_8), new = layout_of(v3_12);
    set(ASCII, 6, 48, "lambda", 6);
    CHECK_TEXT(text_of(&old), "lambda");
    set(ASCII | 3, 6, 40, "lambda", 6); /* interned */
    CHECK_TEXT(text_of(&new), "lambda");
    set(ASCII, 0, 40, "", 0);
    CHECK_TEXT(text_of(&new), "");
}

static void latin_1(void)
{
    struct python_layout old = layout_of(v3_8), new = layout_of(v3_12);
    set(LATIN, 4, 72, "caf\xe9", 4);
    CHECK_TEXT(text_of(&old), "caf\xc3\xa9");
    set(LATIN, 4, 56, "caf\xe9", 4);
    CHECK_TEXT(text_of(&new), "caf\xc3\xa9");
    set(LATIN, 2, 56, "\xc3\xa9", 2); /* two letters, though they look like UTF-8 */
    CHECK_TEXT(text_of(&new), "\xc3\x83\xc2\xa9");
}

static void ucs2(void)
{
    struct python_layout new = layout_of(v3_12);
    static const uint16_t greek[] = {0x3b1, 'x', 0x20ac, 0xd83d};
    set(UCS2, 4, 56, greek, sizeof greek);
    /* the last is a surrogate without its other half */
    CHECK_TEXT(text_of(&new), "\xce\xb1x\xe2\x82\xac\xef\xbf\xbd");
}

static void ucs4(void)
{
    struct python_layout new = layout_of(v3_12);
    static const uint32_t wide[] = {0x1f40d, 'x', 0x110000, 0x3b1};
    set(UCS4, 4, 56, wide, sizeof wide);
    CHECK_TEXT(text_of(&new), "\xf0\x9f\x90\x8dx\xef\xbf\xbd\xce\xb1");
}

static void byte_strings(void)
{
    struct python_layout layout = layout_of(v2_7);
    set(0, 9, 36, "caf\xc3\xa9.py!", 9);
    CHECK_TEXT(text_of(&layout), "caf\xc3\xa9.py!");
    set(0, 7, 36, "caf\xe9.py", 7);
    CHECK_TEXT(text_of(&layout), "caf\xc3\xa9.py");
    static const struct {
        const char *bytes, *text;
    } not_utf8[] = {
        {"\xc0\x80", "\xc3\x80\xc2\x80"},         /* over-long */
        {"\xe0\x80\x80", "\xc3\xa0\xc2\x80\xc2\x80"},
        {"\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\xc3\xb4\xc2\x90\xc2\x80\xc2\x80"}, /* above U+10FFFF */
        {"a\xe2\x82", "a\xc3\xa2\xc2\x82"},       /* cut */
    };
    for (size_t i = 0; i < sizeof not_utf8 / sizeof not_utf8[0]; i++) {
        set(0, strlen(not_utf8[i].bytes), 36, not_utf8[i].bytes, strlen(not_utf8[i].bytes));
        CHECK_TEXT(text_of(&layout), not_utf8[i].text);
    }
}

static void without_gil(void)
{
    /* 3.14t: header of 32 bytes, `interned` a byte, so kind is in bits 8 to 10 */
    struct python_layout layout;
    python_layout_start(&layout, PYTHON_VERSION(3, 14), true);
    layout.object.str_length = 32;
    layout.object.str_state = 48;
    layout.object.str_ascii = 56;
    layout.object.str_compact = layout.object.str_pointer = 72;
    python_layout_kinds(&layout);
    uint64_t length = 3;
    uint32_t state = 1 << 8 | 0x800 | 0x1000 | 0x2 /* interned for ever */;
    put(32, &length, 8);
    put(48, &state, 4);
    put(56, "run", 3);
    CHECK_TEXT(text_of(&layout), "run");
    state = 2 << 8 | 0x800;
    put(48, &state, 4);
    put(72, (const uint16_t[]){'r', 0xfc, 'n'}, 6);
    CHECK_TEXT(text_of(&layout), "r\xc3\xbcn");
}

static void elsewhere(void)
{
    struct python_layout old = layout_of(v3_8), new = layout_of(v3_12);
    struct python_text text;
    uint64_t pointer = 0x7f0000001234;
    set(LATIN & ~0x20, 5, 72, &pointer, sizeof pointer);
    CHECK(python_text_find(&old, object, sizeof object, &text));
    CHECK(text.pointer == pointer && text.bytes == 5 && text.width == 1);
    set(UCS2 & ~0x20, 5, 56, &pointer, sizeof pointer);
    CHECK(python_text_find(&new, object, sizeof object, &text));
    CHECK(text.pointer == pointer && text.bytes == 10 && text.width == 2);
    pointer = 0;
    put(56, &pointer, sizeof pointer);
    CHECK(!python_text_find(&new, object, sizeof object, &text));
}

static void no_text(void)
{
    struct python_layout old = layout_of(v2_7), new = layout_of(v3_12);
    set(0x20, 4, 40, "none", 4); /* kind 0: nothing has looked at it yet */
    CHECK_TEXT(text_of(&new), "-");
    set(3 << 2 | 0x20, 4, 40, "none", 4);
    CHECK_TEXT(text_of(&new), "-");
    set(UCS2 | 0x40, 4, 40, "none", 4); /* two bytes a character, and ASCII */
    CHECK_TEXT(text_of(&new), "-");
    set(ASCII, UINT64_MAX, 40, "none", 4);
    CHECK_TEXT(text_of(&new), "-");
    set(ASCII, (1 << 30) + 1, 36, "none", 4);
    CHECK_TEXT(text_of(&new), "-");
    CHECK_TEXT(text_of(&old), "-");
}

static void short_head(void)
{
    struct python_layout old = layout_of(v2_7), new = layout_of(v3_12);
    struct python_text text;
    set(ASCII, 4, 40, "none", 4);
    CHECK(!python_text_find(&old, object, 35, &text));
    CHECK(python_text_find(&old, object, 36, &text) && text.offset == 36 && text.bytes == 4);
    CHECK(!python_text_find(&new, object, 35, &text));
    CHECK(python_text_find(&new, object, 36, &text) && text.offset == 40 && text.bytes == 4);
}

static void cut(void)
{
    static unsigned char many[OBJECT_BYTES - 100];
    struct python_layout old = layout_of(v2_7), new = layout_of(v3_12);
    memset(many, 'x', sizeof many);
    set(ASCII, 5000, 40, many, 5000);
    CHECK_INT(strlen(text_of(&new)), RUNTIME_NAME_MAX);

    /* 4096 of a byte and 4096 of two bytes: cut in characters, not within one */
    memset(many, 0xe9, sizeof many);
    many[0] = 'x';
    set(LATIN, 5000, 56, many, 5000);
    CHECK_INT(strlen(text_of(&new)), RUNTIME_NAME_MAX - 1);

    /* the bytes of 2.7 stay UTF-8 though the last character is cut */
    memset(many, 'x', RUNTIME_NAME_MAX - 1);
    memcpy(many, "\xc3\xa9", 2); /* as Latin-1 it would be longer */
    memcpy(many + RUNTIME_NAME_MAX - 1, "\xc3\xa9", 2);
    set(0, 5000, 36, many, 5000);
    CHECK_INT(strlen(text_of(&old)), RUNTIME_NAME_MAX - 1);

    uint32_t snake = 0x1f40d;
    for (size_t i = 0; i + 4 <= sizeof many; i += 4) {
        memcpy(many + i, &snake, 4);
    }
    set(UCS4, 4900, 56, many, sizeof many);
    CHECK_INT(strlen(text_of(&new)), RUNTIME_NAME_MAX);
}

TESTS({"compact ASCII text follows its header, which shrank in 3.12", ascii},
      {"Latin-1 text stands behind a longer header than ASCII", latin_1},
      {"two-byte text becomes UTF-8, a lone surrogate U+FFFD", ucs2},
      {"four-byte text becomes UTF-8, what is no character U+FFFD", ucs4},
      {"names of 2.7 are UTF-8 when they can be, else Latin-1", byte_strings},
      {"builds without the GIL keep the kind in other bits", without_gil},
      {"text that is not compact is found by its pointer", elsewhere},
      {"what is no str is no text", no_text},
      {"a header that is cut is no text", short_head},
      {"long text is cut between characters", cut})
