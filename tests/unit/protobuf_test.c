/* src/base/protobuf: literal bytes, written and read. */
#include "base/protobuf.h"
#include "test.h"

static bool bytes_are(const struct buf *b, const char *bytes, size_t len)
{
    return !b->failed && b->len == len && (len == 0 || memcmp(b->ptr, bytes, len) == 0);
}

static void numbers_take_as_many_bytes_as_they_need(void)
{
    struct buf b;
    buf_init(&b, 1000);
    protobuf_u64(&b, 1, 150);
    CHECK(bytes_are(&b, "\x08\x96\x01", 3));
    buf_clear(&b);
    protobuf_u64(&b, 16, UINT64_MAX);
    CHECK(bytes_are(&b, "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12));
    buf_clear(&b);
    protobuf_u64(&b, 1, 0);
    CHECK_INT(b.len, 0);
    protobuf_varint(&b, 0);
    CHECK(bytes_are(&b, "\0", 1));
    buf_release(&b);
}

static void texts_and_messages_carry_their_length(void)
{
    struct buf b, inner;
    buf_init(&b, 1000);
    buf_init(&inner, 1000);
    protobuf_text(&b, 2, STR("testing"));
    protobuf_text(&b, 2, STR(""));
    CHECK(bytes_are(&b, "\x12\x07testing", 9));
    buf_clear(&b);
    protobuf_u64(&inner, 1, 150);
    protobuf_message(&b, 3, &inner);
    CHECK(bytes_are(&b, "\x1a\x03\x08\x96\x01", 5));
    buf_clear(&inner);
    buf_clear(&b);
    protobuf_message(&b, 3, &inner);
    CHECK(bytes_are(&b, "\x1a\0", 2));
    buf_release(&b);
    buf_release(&inner);
}

static void a_failed_part_fails_the_whole(void)
{
    struct buf b, inner;
    buf_init(&b, 1000);
    buf_init(&inner, 1);
    protobuf_u64(&inner, 1, 150);
    protobuf_message(&b, 3, &inner);
    CHECK(b.failed);
    buf_release(&b);
    buf_release(&inner);
}

static void every_wire_type_is_read(void)
{
    struct cursor c = cursor_of("\x08\x96\x01" "\x11\1\0\0\0\0\0\0\x80" "\x1a\2hi"
                                "\x25\1\0\0\x80", 21);
    struct protobuf_field f;
    CHECK(protobuf_next(&c, &f) && f.number == 1 && f.value == 150);
    CHECK(protobuf_next(&c, &f) && f.number == 2 && f.value == 0x8000000000000001);
    CHECK(protobuf_next(&c, &f) && f.number == 3);
    CHECK_STR(f.bytes, "hi");
    CHECK(protobuf_next(&c, &f) && f.number == 4 && f.value == 0x80000001);
    CHECK(!protobuf_next(&c, &f) && !c.short_read);
}

static void refuses(const char *bytes, size_t len)
{
    struct cursor c = cursor_of(bytes, len);
    struct protobuf_field f;
    CHECK(!protobuf_next(&c, &f));
    CHECK(c.short_read);
    CHECK(!protobuf_next(&c, &f));
}

static void damaged_fields_are_refused(void)
{
    refuses("\x08", 1);                                             /* no value */
    refuses("\x08\x80", 2);                                         /* cut number */
    refuses("\x1a\x05hi", 4);                                       /* cut text */
    refuses("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);    /* huge text */
    refuses("\x0b\x0c", 2);                                         /* group */
    refuses("\x0f", 1);                                             /* wire type 7 */
    refuses("\x00\x00", 2);                                         /* field number 0 */
    refuses("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0", 11);      /* field number too large */
    refuses("\x11\1\0\0", 4);                                       /* cut fixed number */
}

static void packed_and_single_numbers_are_the_same(void)
{
    struct cursor c = cursor_of("\x0a\x04\x01\x96\x01\x03" "\x08\x07", 8);
    struct protobuf_field f;
    uint64_t sum = 0, value;
    unsigned count = 0;
    bool damaged = false;
    while (protobuf_next(&c, &f)) {
        for (size_t at = 0; protobuf_packed_next(&f, &at, &value, &damaged); count++) {
            sum += value;
        }
    }
    CHECK_INT(count, 4);
    CHECK_INT(sum, 1 + 150 + 3 + 7);
    CHECK(!damaged);
}

static void a_cut_packed_number_is_told(void)
{
    struct cursor c = cursor_of("\x0a\x02\x01\x96", 4);
    struct protobuf_field f;
    uint64_t value;
    size_t at = 0;
    bool damaged = false;
    CHECK(protobuf_next(&c, &f));
    CHECK(protobuf_packed_next(&f, &at, &value, &damaged) && value == 1);
    CHECK(!protobuf_packed_next(&f, &at, &value, &damaged) && damaged);
}

TESTS({"numbers take as many bytes as they need", numbers_take_as_many_bytes_as_they_need},
      {"texts and messages carry their length", texts_and_messages_carry_their_length},
      {"a failed part fails the whole", a_failed_part_fails_the_whole},
      {"every wire type is read", every_wire_type_is_read},
      {"damaged fields are refused", damaged_fields_are_refused},
      {"packed and single numbers are the same", packed_and_single_numbers_are_the_same},
      {"a cut packed number is told", a_cut_packed_number_is_told})
