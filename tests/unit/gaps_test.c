/* Much code without call frame information in one place. */
#define FRAME_IMAGE_TEXT 0x10000
#define FRAME_IMAGE_TEXT_BYTES 0xc0000
#include "compile_all.h"
#include "frame_image.h"
#include "rule_text.h"
#include "test.h"

#define BYTES(text) text, sizeof(text) - 1
/* sub rsp,24; nop; nop; add rsp,24; ret: three rows */
#define FUNCTION "\x48\x83\xec\x18\x90\x90\x48\x83\xc4\x18\xc3"

enum {
    EVERY = 0x8000, /* bytes from one function to the next: 23 of them, behind one with CFI */
    ROWS = 3,
};

struct fixture {
    struct frame_image *image;
    struct elf elf;
    struct unwind_table *table;
};

static void open_fixture(struct fixture *f, bool symbols)
{
    f->image = frame_image_begin(0);
    uint64_t cie = frame_image_cie(f->image, "zR", BYTES("\x0c\x07\x08\x90\x01"));
    frame_image_fde(f->image, cie, IMAGE_TEXT, 0x40, BYTES("\x41\x0e\x10"));
    for (uint64_t at = EVERY; at < IMAGE_TEXT_BYTES; at += EVERY) {
        frame_image_code(f->image, IMAGE_TEXT + at, BYTES(FUNCTION));
        if (symbols) {
            frame_image_symbol(f->image, "f", IMAGE_TEXT + at, sizeof FUNCTION - 1);
        }
    }
    frame_image_end(f->image, IMAGE_HEADER | IMAGE_SECTIONS);
    CHECK(elf_open_bytes(&f->elf, f->image->bytes, f->image->len, NULL));
    f->table = unwind_table_new(&f->elf, 1 << 20);
}

static void close_fixture(struct fixture *f)
{
    unwind_table_free(f->table);
    elf_release(&f->elf);
    free(f->image);
}

#if !defined __aarch64__
static const char *analysed_at(struct fixture *f, uint64_t at)
{
    bool analysed = false;
    struct unwind_rule rule = unwind_table_rule(f->table, IMAGE_TEXT + at, &analysed);
    CHECK_INT(analysed, rule.kind != RULE_NONE);
    return rule_text(rule);
}

static void by_pieces(void)
{
    struct fixture f;
    open_fixture(&f, true);
    CHECK_TEXT(analysed_at(&f, 3 * EVERY + 5), "r7+32 ra-8 fp=");
    /* 128 KiB from 0x40 on end before the function at 0x28000: four stand in front of it */
    CHECK_INT(unwind_table_stats(f.table).analysed, 4 * ROWS);
    CHECK_TEXT(analysed_at(&f, 4 * EVERY + 5), "r7+32 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).analysed, 4 * ROWS);
    CHECK_TEXT(analysed_at(&f, 5 * EVERY), "r7+8 ra-8 fp="); /* the next piece, of four as well */
    CHECK_INT(unwind_table_stats(f.table).analysed, 8 * ROWS);
    CHECK_TEXT(analysed_at(&f, 23 * EVERY + 4), "r7+32 ra-8 fp=");
    CHECK_TEXT(analysed_at(&f, 23 * EVERY + 11), "none");
    for (uint64_t at = EVERY; at < IMAGE_TEXT_BYTES; at += EVERY) {
        CHECK_TEXT(analysed_at(&f, at + 4), "r7+32 ra-8 fp=");
        CHECK_TEXT(analysed_at(&f, at + 10), "r7+8 ra-8 fp=");
    }
    CHECK_INT(unwind_table_stats(f.table).analysed, 23 * ROWS);
    CHECK(unwind_table_stats(f.table).bytes >= 23 * sizeof(uint64_t));
    close_fixture(&f);
}

static void without_symbols(void)
{
    struct fixture f;
    open_fixture(&f, false);
    CHECK_TEXT(analysed_at(&f, 3 * EVERY + 5), "r7+32 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).analysed, 23 * ROWS);
    close_fixture(&f);
}
#endif

static void all_of_it(void)
{
    struct fixture f;
    open_fixture(&f, true);
    CHECK(unwind_table_function(f.table, IMAGE_TEXT + 1, &(uint64_t){0}, &(uint64_t){0}));
    compile_all(f.table);
    compile_all(f.table);
#if !defined __aarch64__
    CHECK_TEXT(analysed_at(&f, 3 * EVERY + 5), "r7+32 ra-8 fp=");
    compile_all(f.table); /* from here on the gaps are known */
    CHECK_INT(unwind_table_stats(f.table).analysed, 23 * ROWS);
#endif
    close_fixture(&f);
}

struct told {
    unsigned asked, released;
    int64_t bytes; /* -1: not known */
};

static bool depth_at(void *context, uint64_t address, uint32_t *bytes)
{
    struct told *told = context;
    (void)address;
    told->asked++;
    *bytes = (uint32_t)told->bytes;
    return told->bytes >= 0;
}

static void release_depths(void *context)
{
    ((struct told *)context)->released++;
}

/* Where there is CFI they are not asked for. */
static void depths_are_asked_for_in_a_gap(void)
{
#if defined __aarch64__
    static const char *const rules[] = {"r31+0 ra:r30 fp=", "r31+40 ra-40 fp=", "none", "none", "end"};
#else
    static const char *const rules[] = {"r7+8 ra-8 fp=", "r7+48 ra-8 fp=", "none", "none", "end"};
#endif
    static const int64_t bytes[] = {0, 40, -1, 100000, UNWIND_OUTERMOST};
    struct told told = {0}, other = {.bytes = -1};
    struct fixture f;
    bool analysed;
    open_fixture(&f, true);
    unwind_table_no_analysis(f.table);
    unwind_table_take_depths(f.table, (struct unwind_depths){depth_at, release_depths, &told});
    CHECK(unwind_table_rule(f.table, IMAGE_TEXT + 1, &analysed).kind == RULE_CFA);
    CHECK_INT(told.asked, 0);
    for (size_t i = 0; i < 5; i++) {
        told.bytes = bytes[i];
        CHECK_TEXT(rule_text(unwind_table_rule(f.table, IMAGE_TEXT + 3 * EVERY + 5, &analysed)), rules[i]);
        CHECK(!analysed);
    }
    CHECK_INT(told.asked, 5);
    unwind_table_take_depths(f.table, (struct unwind_depths){depth_at, release_depths, &other});
    CHECK_INT(told.released, 1);
    close_fixture(&f);
    CHECK_INT(other.released, 1);
}

TESTS(
#if !defined __aarch64__
      {"of a large gap that has symbols only what is asked for is analysed", by_pieces},
      {"without symbols it is analysed whole", without_symbols},
#endif
      {"depths that another table tells are asked for in a gap", depths_are_asked_for_in_a_gap},
      {"all pieces of a gap are compiled at once where that is wanted", all_of_it})
