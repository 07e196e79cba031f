/* src/base/gzip. */
#include "base/gzip.h"
#include "test.h"

/* gzip -n of "hello\n" and, behind it, of "again\n". */
static const char two_members[] =
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00"
    "\x20\x30\x3a\x36\x06\x00\x00\x00"
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4f\xcc\xcc\xe3\x02\x00"
    "\xff\x19\x4f\x86\x06\x00\x00\x00";
enum { MEMBER = 26 };

static bool pack(struct buf *out, const void *ptr, size_t len, size_t step)
{
    struct gzip *gzip = malloc(sizeof *gzip);
    struct sink sink = sink_of_buf(out);
    struct err err;
    bool ok = gzip_open(gzip, &sink, &err);
    struct sink plain = gzip_sink(gzip);
    for (size_t at = 0; ok && at < len; at += step) {
        ok = sink_write(&plain, (const char *)ptr + at, len - at < step ? len - at : step, &err);
    }
    ok = ok && gzip_finish(gzip, &err);
    gzip_release(gzip);
    free(gzip);
    return ok;
}

static enum err_kind unpack(const void *ptr, size_t len, size_t max, struct buf *out)
{
    struct err err = {0};
    buf_init(out, max);
    return gzip_inflate(ptr, len, out, &err) ? ERR_NONE : err.kind;
}

static void known_bytes_are_read(void)
{
    struct buf out;
    CHECK_INT(unpack(two_members, MEMBER, 100, &out), ERR_NONE);
    CHECK_STR(buf_slice(&out), "hello\n");
    buf_release(&out);
    CHECK_INT(unpack(two_members, sizeof two_members - 1, 100, &out), ERR_NONE);
    CHECK_STR(buf_slice(&out), "hello\nagain\n");
    buf_release(&out);
}

static void what_is_written_is_read_back(void)
{
    enum { LEN = 300000 };
    char *text = malloc(LEN);
    uint32_t state = 1;
    for (size_t i = 0; i < LEN; i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (char)(i < LEN / 2 ? 'a' : state >> 24);
    }
    for (size_t step = 7; step <= LEN; step *= 207) {
        struct buf packed, out;
        buf_init(&packed, 2 * LEN);
        CHECK(pack(&packed, text, LEN, step));
        CHECK(gzip_is(packed.ptr, packed.len) && packed.len < LEN);
        CHECK_INT(unpack(packed.ptr, packed.len, LEN, &out), ERR_NONE);
        CHECK(out.len == LEN && memcmp(out.ptr, text, LEN) == 0);
        buf_release(&out);
        CHECK_INT(unpack(packed.ptr, packed.len, LEN - 1, &out), ERR_LIMIT);
        buf_release(&out);
        buf_release(&packed);
    }
    free(text);
}

static void the_bytes_do_not_depend_on_the_day(void)
{
    struct buf packed;
    buf_init(&packed, 1000);
    CHECK(pack(&packed, "hello\n", 6, 6));
    CHECK(packed.len == MEMBER && memcmp(packed.ptr, two_members, MEMBER) == 0);
    buf_release(&packed);
}

static void nothing_is_a_stream_too(void)
{
    struct buf packed, out;
    buf_init(&packed, 1000);
    CHECK(pack(&packed, "", 0, 1));
    CHECK_INT(unpack(packed.ptr, packed.len, 10, &out), ERR_NONE);
    CHECK_INT(out.len, 0);
    buf_release(&out);
    buf_release(&packed);
}

static void cut_and_damaged_streams_are_refused(void)
{
    struct buf out;
    char bytes[MEMBER];
    for (size_t len = 0; len < MEMBER; len++) {
        CHECK_INT(unpack(two_members, len, 100, &out), ERR_MALFORMED);
        buf_release(&out);
    }
    for (size_t i = 18; i < MEMBER; i++) { /* checksum and length */
        memcpy(bytes, two_members, MEMBER);
        bytes[i] ^= 1;
        CHECK_INT(unpack(bytes, MEMBER, 100, &out), ERR_MALFORMED);
        buf_release(&out);
    }
    CHECK_INT(unpack("no gzip at all", 14, 100, &out), ERR_MALFORMED);
    buf_release(&out);
}

static void a_bomb_is_stopped_at_the_limit(void)
{
    enum { LEN = 10 * 1000 * 1000, LIMIT = 100 * 1000 };
    char *zeros = calloc(1, LEN);
    struct buf packed, out;
    buf_init(&packed, LEN);
    CHECK(pack(&packed, zeros, LEN, LEN));
    CHECK(packed.len < LIMIT / 5);
    CHECK_INT(unpack(packed.ptr, packed.len, LIMIT, &out), ERR_LIMIT);
    CHECK(out.len <= LIMIT);
    buf_release(&out);
    buf_release(&packed);
    free(zeros);
}

static void a_full_sink_ends_the_writing(void)
{
    struct buf packed;
    buf_init(&packed, 10);
    CHECK(!pack(&packed, "hello\n", 6, 6));
    buf_release(&packed);
}

/* All that is left of the stream, in pieces of `step` bytes. */
static bool drain(struct gunzip *g, size_t step, struct buf *out, struct err *err)
{
    char piece[16];
    size_t got = 1;
    while (got > 0) {
        if (!gunzip_read(g, piece, step, &got, err)) {
            return false;
        }
        CHECK(got <= step);
        buf_add(out, piece, got);
    }
    return true;
}

static void a_stream_is_read_in_pieces_and_again(void)
{
    for (size_t step = 1; step <= 16; step += 5) {
        struct gunzip g;
        struct buf out;
        struct err err = {0};
        size_t got;
        char byte;
        buf_init(&out, 100);
        CHECK(gunzip_open(&g, two_members, sizeof two_members - 1, &err));
        CHECK(gunzip_read(&g, &byte, 1, &got, &err) && got == 1 && byte == 'h');
        for (int round = 0; round < 2; round++) {
            gunzip_rewind(&g);
            buf_clear(&out);
            CHECK(drain(&g, step, &out, &err));
            CHECK_STR(buf_slice(&out), "hello\nagain\n");
        }
        gunzip_release(&g);
        buf_release(&out);
    }
}

static void what_is_not_packed_is_read_as_it_is(void)
{
    struct gunzip g;
    struct buf out;
    struct err err = {0};
    buf_init(&out, 100);
    CHECK(gunzip_open(&g, "plain text", 10, &err));
    CHECK(drain(&g, 3, &out, &err));
    CHECK_STR(buf_slice(&out), "plain text");
    gunzip_rewind(&g);
    CHECK(drain(&g, 16, &out, &err));
    CHECK_STR(buf_slice(&out), "plain textplain text");
    gunzip_release(&g);
    CHECK(gunzip_open(&g, NULL, 0, &err));
    CHECK(drain(&g, 3, &out, &err));
    CHECK_INT(out.len, 20);
    gunzip_release(&g);
    buf_release(&out);
}

static void pieces_of_a_cut_or_damaged_stream_end_with_an_error(void)
{
    char bytes[MEMBER];
    for (size_t i = 3; i < 2 * MEMBER; i++) {
        struct gunzip g;
        struct buf out;
        struct err err = {0};
        bool is_cut = i < MEMBER;
        if (!is_cut && i - MEMBER < 18) {
            continue; /* only the checksum and the length are sure to be noticed */
        }
        memcpy(bytes, two_members, MEMBER);
        bytes[is_cut ? 0 : i - MEMBER] ^= is_cut ? 0 : 1;
        buf_init(&out, 100);
        CHECK(gunzip_open(&g, bytes, is_cut ? i : MEMBER, &err));
        CHECK(!drain(&g, 16, &out, &err));
        CHECK_INT(err.kind, ERR_MALFORMED);
        gunzip_release(&g);
        buf_release(&out);
    }
}

TESTS({"known bytes are read, several members too", known_bytes_are_read},
      {"what is written is read back", what_is_written_is_read_back},
      {"the bytes do not depend on the day", the_bytes_do_not_depend_on_the_day},
      {"nothing is a stream too", nothing_is_a_stream_too},
      {"cut and damaged streams are refused", cut_and_damaged_streams_are_refused},
      {"a bomb is stopped at the limit", a_bomb_is_stopped_at_the_limit},
      {"a full sink ends the writing", a_full_sink_ends_the_writing},
      {"a stream is read in pieces, and again from the start", a_stream_is_read_in_pieces_and_again},
      {"what is not packed is read as it is", what_is_not_packed_is_read_as_it_is},
      {"pieces of a cut or damaged stream end with an error", pieces_of_a_cut_or_damaged_stream_end_with_an_error})
