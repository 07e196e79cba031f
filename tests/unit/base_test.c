/* src/base but for the tables (map_test.c). */
#include "base/arena.h"
#include "base/cursor.h"
#include "base/err.h"
#include "base/iface.h"
#include "base/str.h"
#include "base/time.h"
#include "base/vec.h"
#include "test.h"

#include <errno.h>

static void slices_are_clipped(void)
{
    struct str text = STR("abcdef");
    CHECK_STR(str_sub(text, 2, 3), "cde");
    CHECK_STR(str_sub(text, 4, 100), "ef");
    CHECK_STR(str_sub(text, 7, 1), "");
    CHECK_STR(str_sub(text, 2, SIZE_MAX), "cdef");
    CHECK_INT(str_sub((struct str){NULL, 0}, 0, 5).len, 0);
    CHECK_INT(str_of(NULL).len, 0);
}

static void prefixes_and_suffixes(void)
{
    CHECK(str_starts(STR("abc"), STR("ab")) && str_starts(STR("abc"), STR("")));
    CHECK(!str_starts(STR("ab"), STR("abc")));
    CHECK(str_ends(STR("abc"), STR("bc")) && !str_ends(STR("c"), STR("bc")));
    CHECK(str_eq(STR(""), (struct str){NULL, 0}));
    CHECK(!str_eq(STR("a"), STR("b")) && !str_eq(STR("a"), STR("aa")));
}

static void order_is_by_bytes_and_length(void)
{
    CHECK(str_compare(STR("ab"), STR("abc")) < 0);
    CHECK(str_compare(STR("b"), STR("abc")) > 0);
    CHECK_INT(str_compare(STR("abc"), STR("abc")), 0);
    CHECK(str_compare(STR("\xff"), STR("a")) > 0);
    CHECK(str_compare(STR(""), STR("a")) < 0);
}

static void finding_gives_the_length_when_absent(void)
{
    CHECK_INT(str_find(STR("a;b;c"), ';'), 1);
    CHECK_INT(str_find_last(STR("a;b;c"), ';'), 3);
    CHECK_INT(str_find(STR("abc"), ';'), 3);
    CHECK_INT(str_find_last(STR("abc"), ';'), 3);
    CHECK_INT(str_find((struct str){NULL, 0}, 'a'), 0);
}

static void cutting_walks_over_fields(void)
{
    struct str rest = STR("a;;bc");
    CHECK_STR(str_cut(&rest, ';'), "a");
    CHECK_STR(str_cut(&rest, ';'), "");
    CHECK_STR(str_cut(&rest, ';'), "bc");
    CHECK_INT(rest.len, 0);
    CHECK_STR(str_cut(&rest, ';'), "");
    struct str none = {NULL, 0};
    CHECK_INT(str_cut(&none, ';').len, 0);
}

static void trimming(void)
{
    CHECK_STR(str_trim(STR(" \t a b\r\n")), "a b");
    CHECK_STR(str_trim(STR(" \t ")), "");
    CHECK_STR(str_trim(STR("")), "");
}

static void numbers_are_whole_or_refused(void)
{
    uint64_t value = 7;
    CHECK(str_u64(STR("18446744073709551615"), &value) && value == UINT64_MAX);
    value = 7;
    CHECK(!str_u64(STR("18446744073709551616"), &value));
    CHECK(!str_u64(STR("99999999999999999999999"), &value));
    CHECK(!str_u64(STR(""), &value) && !str_u64(STR("-1"), &value) && !str_u64(STR("1 "), &value));
    CHECK(!str_u64(STR("1a"), &value));
    CHECK_INT(value, 7);
    CHECK(str_hex(STR("fFfF"), &value) && value == 0xffff);
    CHECK(!str_hex(STR("10000000000000000"), &value) && !str_hex(STR("0x1"), &value));
}

static void hashes_differ_by_content_and_length(void)
{
    CHECK(str_hash(STR("a")) != str_hash(STR("b")));
    CHECK(str_hash(STR("")) != str_hash(STR("\0")));
    CHECK(str_hash(STR("\0\0")) != str_hash(STR("\0")));
    CHECK(str_hash(STR("abcdefgh")) != str_hash(STR("abcdefghi")));
    CHECK(str_hash(STR("abcdefgh")) == str_hash((struct str){"abcdefghi", 8}));
    CHECK(hash_u64(1) != hash_u64(2));
}

static void a_buffer_grows_to_its_maximum_exactly(void)
{
    struct buf b;
    buf_init(&b, 5);
    CHECK(b.ptr == NULL);
    buf_text(&b, "abc");
    buf_printf(&b, "%d", 42);
    CHECK(!b.failed);
    CHECK_TEXT(buf_cstr(&b), "abc42");
    buf_byte(&b, '!');
    CHECK(b.failed);
    buf_byte(&b, '!');
    CHECK_INT(b.len, 5);
    CHECK_TEXT(buf_cstr(&b), "");
    buf_clear(&b);
    buf_str(&b, STR("xy"));
    CHECK_TEXT(buf_cstr(&b), "xy");
    buf_release(&b);
    CHECK(b.ptr == NULL && b.len == 0);
}

static void a_formatted_text_that_does_not_fit_fails_whole(void)
{
    struct buf b;
    buf_init(&b, 4);
    buf_printf(&b, "%s", "12345");
    CHECK(b.failed && b.len == 0);
    buf_release(&b);
}

static void a_buffer_grows_over_many_appends(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 100000; i++) {
        buf_byte(&b, (char)('a' + i % 26));
    }
    CHECK_INT(b.len, 100000);
    CHECK(b.ptr[99999] == 'a' + 99999 % 26 && b.ptr[26] == 'a');
    buf_release(&b);
}

static void a_sink_over_a_buffer_fails_at_the_maximum(void)
{
    struct buf b;
    struct err err = {0};
    buf_init(&b, 4);
    struct sink sink = sink_of_buf(&b);
    CHECK(sink_write(&sink, "abc", 3, &err));
    CHECK(sink_write(&sink, NULL, 0, &err));
    CHECK(!sink_write(&sink, "de", 2, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    buf_release(&b);
}

static void a_cursor_stops_at_the_end(void)
{
    struct cursor c = cursor_of("\x01\x02\x03\x04\x05", 5);
    CHECK_INT(cursor_u16(&c), 0x0201);
    CHECK_INT(c.len, 3);
    CHECK_INT(cursor_u32(&c), 0);
    CHECK(c.short_read && c.len == 0);
    CHECK_INT(cursor_u8(&c), 0);
    struct cursor none = cursor_of(NULL, 0);
    CHECK_INT(cursor_u64(&none), 0);
    CHECK(none.short_read);
}

static void a_cursor_reads_both_byte_orders(void)
{
    struct cursor c = cursor_of("\1\2\3\4\1\2\3\4\x88\x77\x66\x55\x44\x33\x22\x11", 16);
    CHECK_INT(cursor_u32(&c), 0x04030201);
    CHECK_INT(cursor_u32_be(&c), 0x01020304);
    CHECK(cursor_u64(&c) == 0x1122334455667788);
    CHECK(!c.short_read);
}

static void leb128(void)
{
    struct cursor c = cursor_of("\xe5\x8e\x26" "\x7f" "\x80\x7f"
                                "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 16);
    CHECK_INT(cursor_uleb(&c), 624485);
    CHECK_INT(cursor_sleb(&c), -1);
    CHECK_INT(cursor_sleb(&c), -128);
    CHECK(cursor_uleb(&c) == UINT64_MAX);
    CHECK(!c.short_read && c.len == 0);
    struct cursor cut = cursor_of("\x80\x80", 2);
    CHECK_INT(cursor_uleb(&cut), 0);
    CHECK(cut.short_read);
    struct cursor endless = cursor_of("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12);
    cursor_uleb(&endless);
    CHECK(endless.short_read);
}

static void terminated_texts(void)
{
    struct cursor c = cursor_of("ab\0cd", 5);
    CHECK_STR(cursor_cstr(&c), "ab");
    CHECK(!c.short_read);
    CHECK_STR(cursor_cstr(&c), "cd");
    CHECK(c.short_read);
}

static void an_arena_refuses_beyond_its_maximum(void)
{
    struct arena a;
    arena_init(&a, 64);
    CHECK(arena_alloc(&a, 60) != NULL); /* rounded up to 64 */
    CHECK_INT(a.used_bytes, 64);
    CHECK(arena_alloc(&a, 1) == NULL);
    CHECK(arena_alloc(&a, SIZE_MAX) == NULL);
    CHECK(arena_copy(&a, STR("x")).ptr == NULL);
    arena_clear(&a);
    struct str copy = arena_copy(&a, STR("hello"));
    CHECK_STR(copy, "hello");
    CHECK(copy.ptr[5] == '\0' && (uintptr_t)copy.ptr % 8 == 0);
    arena_release(&a);
}

/* The second round over the same sizes uses the very same memory. */
static void an_arena_keeps_its_memory_when_cleared(void)
{
    enum { ROUNDS = 3, PIECES = 40, PIECE = 5000 };
    struct arena a;
    void *seen[PIECES];
    arena_init(&a, 1 << 20);
    for (int i = 0; i < PIECES; i++) {
        seen[i] = arena_alloc(&a, PIECE);
        memset(seen[i], 0xaa, PIECE);
    }
    for (int round = 1; round < ROUNDS; round++) {
        int known = 0;
        arena_clear(&a);
        CHECK_INT(a.used_bytes, 0);
        for (int i = 0; i < PIECES; i++) {
            char *again = arena_alloc(&a, PIECE);
            CHECK(again != NULL && again[0] == 0 && again[PIECE - 1] == 0);
            for (int k = 0; k < PIECES; k++) {
                known += seen[k] == again;
            }
            memset(again, 0xaa, PIECE);
        }
        CHECK_INT(known, PIECES);
    }
    arena_release(&a);
}

static void large_pieces_have_a_chunk_of_their_own(void)
{
    struct arena a;
    arena_init(&a, 1 << 20);
    char *large = arena_alloc(&a, 200000);
    char *small = arena_alloc(&a, 8);
    CHECK(large != NULL && small != NULL);
    memset(large, 1, 200000);
    CHECK(small[0] == 0);
    arena_release(&a);
}

static void an_array_may_grow_while_it_is_walked(void)
{
    VEC(uint64_t) v = {0};
    uint64_t seen = 0;
    *(uint64_t *)vec_push(&v) = 0;
    vec_each(&v, item)
    {
        CHECK_INT(*item, seen++);
        uint64_t next = *item + 1;
        if (next % 3 == 0) {
            *(uint64_t *)vec_push(&v) = next;
            continue;
        }
        if (next == 5000) {
            break;
        }
        *(uint64_t *)vec_push(&v) = next;
    }
    CHECK_INT(seen, 5000);
    vec_release(&v);
}

static void an_array_grows_zeroed_and_keeps_its_elements(void)
{
    VEC(uint64_t) v = {0};
    unsigned steps = 0;
    vec_each(&v, none)
    {
        CHECK(none == NULL); /* not reached */
    }
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t *added = vec_push(&v);
        CHECK(added != NULL && *added == 0);
        *added = i;
    }
    vec_each(&v, item)
    {
        CHECK(*item == steps++);
    }
    CHECK_INT(steps, 1000);
    vec_swap_out(&v, 0);
    CHECK_INT(v.at[0], 999);
    CHECK_INT(v.len, 999);
    vec_clear(&v);
    CHECK(v.cap >= 1000);
    vec_release(&v);
    CHECK(v.at == NULL);
}

static void errors_carry_kind_and_sentence(void)
{
    struct err err = {0};
    CHECK(!err_set(&err, ERR_MALFORMED, 0, "%s: cut at %d", "x.so", 12));
    CHECK_TEXT(err.text, "x.so: cut at 12");
    CHECK_INT(err.kind, ERR_MALFORMED);
    CHECK(!err_set(NULL, ERR_IO, 0, "nobody listens"));
    CHECK(!err_errno(&err, EACCES, "/proc/1/maps"));
    CHECK_TEXT(err.text, "/proc/1/maps: Permission denied (EACCES)");
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK_INT(err.number, EACCES);
}

static void unnamed_errnos_are_shown_as_numbers(void)
{
    struct err err = {0};
    err_errno(&err, ENOTBLK, "x");
    char expected[100];
    snprintf(expected, sizeof expected, "x: %s (errno %d)", strerror(ENOTBLK), ENOTBLK);
    CHECK_TEXT(err.text, expected);
    CHECK_TEXT(err_name(ENOSPC), "ENOSPC");
    CHECK(err_name(ENOTBLK) != NULL);
}

static void a_long_error_is_cut_not_overrun(void)
{
    struct err err = {0};
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_IO, 0, "%s", text);
    CHECK_INT(strlen(err.text), ERR_TEXT_MAX - 1);
    err_errno(&err, EIO, "%s", text);
    CHECK_INT(strlen(err.text), ERR_TEXT_MAX - 1);
}

static void moments_of_the_calendar(void)
{
    static const struct {
        uint64_t seconds;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00"},          {951782400, "2000-02-29T00:00:00"},
        {951868799, "2000-02-29T23:59:59"},  {951868800, "2000-03-01T00:00:00"},
        {1709164800, "2024-02-29T00:00:00"}, {1740787199, "2025-02-28T23:59:59"},
        {1795169464, "2026-11-20T10:11:04"}, {4107542400, "2100-03-01T00:00:00"},
        {4107542399, "2100-02-28T23:59:59"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[TIME_TEXT_MAX];
        time_iso_seconds(rows[i].seconds * NS_PER_S + 999999999, text);
        CHECK_TEXT(text, rows[i].text);
    }
    char text[TIME_TEXT_MAX];
    time_rfc3339(UINT64_C(1795169464) * NS_PER_S + 123999999, text);
    CHECK_TEXT(text, "2026-11-20T10:11:04.123Z");
    time_rfc3339(UINT64_MAX, text);
    CHECK_INT(strlen(text), 24);
}

TESTS({"slices are clipped to what exists", slices_are_clipped},
      {"prefixes and suffixes", prefixes_and_suffixes},
      {"order is by bytes, a prefix first", order_is_by_bytes_and_length},
      {"finding gives the length when absent", finding_gives_the_length_when_absent},
      {"cutting walks over fields, empty ones too", cutting_walks_over_fields},
      {"trimming takes blanks and line ends", trimming},
      {"numbers are whole or refused, overflow too", numbers_are_whole_or_refused},
      {"hashes differ by content and length", hashes_differ_by_content_and_length},
      {"a buffer grows to its maximum exactly, then fails for good",
       a_buffer_grows_to_its_maximum_exactly},
      {"a formatted text that does not fit fails whole",
       a_formatted_text_that_does_not_fit_fails_whole},
      {"a buffer grows over many appends", a_buffer_grows_over_many_appends},
      {"a sink over a buffer fails at the maximum", a_sink_over_a_buffer_fails_at_the_maximum},
      {"a cursor yields zero past the end and says so", a_cursor_stops_at_the_end},
      {"a cursor reads both byte orders", a_cursor_reads_both_byte_orders},
      {"LEB128: signed, unsigned, cut and endless", leb128},
      {"terminated texts, the last one without its end", terminated_texts},
      {"an arena refuses beyond its maximum", an_arena_refuses_beyond_its_maximum},
      {"an arena keeps its memory when cleared", an_arena_keeps_its_memory_when_cleared},
      {"large pieces have a chunk of their own", large_pieces_have_a_chunk_of_their_own},
      {"an array grows zeroed and keeps its elements",
       an_array_grows_zeroed_and_keeps_its_elements},
      {"an array may grow while it is walked", an_array_may_grow_while_it_is_walked},
      {"errors carry kind and sentence", errors_carry_kind_and_sentence},
      {"errnos without a name are shown as numbers", unnamed_errnos_are_shown_as_numbers},
      {"a long error is cut, not overrun", a_long_error_is_cut_not_overrun},
      {"moments of the calendar, leap days included", moments_of_the_calendar})
