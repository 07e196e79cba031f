/* src/base/json and src/encode/utf8. */
#include "base/json.h"
#include "base/utf8.h"
#include "test.h"

static void replaced(const char *bytes, size_t len, const char *expected)
{
    struct buf b;
    buf_init(&b, 1000);
    utf8_add(&b, (struct str){bytes, len});
    CHECK_TEXT(buf_cstr(&b), expected);
    CHECK(utf8_valid((struct str){bytes, len}) == (strcmp(bytes, expected) == 0));
    buf_release(&b);
}

#define BAD "\xef\xbf\xbd"

static void malformed_bytes_become_replacement_characters(void)
{
    replaced("plain", 5, "plain");
    replaced("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    replaced(BAD, 3, BAD);
    replaced("a\xff" "b", 3, "a" BAD "b");
    replaced("\xc0\x80", 2, BAD BAD);                 /* over-long NUL */
    replaced("\xe0\x80\xaf", 3, BAD BAD BAD);         /* over-long slash */
    replaced("\xed\xa0\x80", 3, BAD BAD BAD);         /* a surrogate */
    replaced("\xf4\x90\x80\x80", 4, BAD BAD BAD BAD); /* above U+10FFFF */
    replaced("\xf5\x80", 2, BAD BAD);
    replaced("\xe2\x82", 2, BAD BAD);                 /* cut */
    replaced("\xe2(\xa1", 3, BAD "(" BAD);
    replaced("\x80", 1, BAD);
}

static void written(const char *bytes, size_t len, const char *expected)
{
    struct buf b;
    buf_init(&b, 1000);
    json_text(&b, (struct str){bytes, len});
    CHECK_TEXT(buf_cstr(&b), expected);
    CHECK(json_valid(buf_slice(&b)));
    buf_release(&b);
}

static void texts_are_escaped_to_ascii(void)
{
    written("plain", 5, "\"plain\"");
    written("", 0, "\"\"");
    written("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
    written("\n\t\x01\x7f\0", 5, "\"\\n\\u0009\\u0001\\u007f\\u0000\"");
    written("\xc3\xa9\xe2\x80\xa8", 5, "\"\\u00e9\\u2028\"");
    written("\xf0\x9f\x98\x80", 4, "\"\\ud83d\\ude00\"");
    written("\xff", 1, "\"\\ufffd\"");
}

static void decoded(const char *json, const char *expected)
{
    struct buf b;
    buf_init(&b, 1000);
    CHECK(json_text_of(str_of(json), &b));
    CHECK_TEXT(buf_cstr(&b), expected);
    buf_release(&b);
}

static void texts_are_decoded(void)
{
    decoded("\"plain\"", "plain");
    decoded("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    decoded("\"\\u00e9\\u20ac\"", "\xc3\xa9\xe2\x82\xac");
    decoded("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
    decoded("\"\\ud83dx\"", BAD "x");
    decoded("\"\\ud83d\\u0041\"", BAD "A");
    decoded("\"\\ude00\"", BAD);
    decoded("\"\xff\"", BAD);
    struct buf b;
    buf_init(&b, 1000);
    CHECK(!json_text_of(STR("12"), &b) && !json_text_of(STR("\"open"), &b));
    CHECK(!json_text_of((struct str){NULL, 0}, &b) && !json_text_of(STR("\"a\"b\""), &b));
    buf_release(&b);
}

static void valid_documents_are_told_from_others(void)
{
    static const char *const good[] = {
        "{}", "[]", " [1, -2.5e+10, 0, 0.5, true, false, null, \"x\"] ", "{\"a\": {\"b\": [[]]}}",
        "\"\\u12aF\"", "-0", "1E5", "[ ]", "{ }",
    };
    static const char *const bad[] = {
        "", " ", "{", "}", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "[1 2]", "01", "1.", ".5", "+1",
        "1e", "--1", "tru", "\"\\x\"", "\"\\u12g4\"", "\"open", "\"a\nb\"", "{} {}", "[1}", "nul",
        "{\"a\":1,}", "\"\\", "\"\\u12", "-",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK(json_valid(str_of(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bool valid = json_valid(str_of(bad[i]));
        CHECK(!valid);
        if (valid) {
            printf("# accepted: %s\n", bad[i]);
        }
    }
}

static void depth_is_bounded(void)
{
    char text[2 * (JSON_DEPTH_MAX + 1)];
    memset(text, '[', sizeof text / 2);
    memset(text + sizeof text / 2, ']', sizeof text / 2);
    CHECK(!json_valid((struct str){text, sizeof text}));
    CHECK(json_valid((struct str){text + 1, sizeof text - 2}));
}

static void members_are_found(void)
{
    struct str object = STR("{ \"a\" : 1 , \"b\":{\"a\":[2,\"}\"]}, \"c\":\"x\\\"]\", \"a\": 9}");
    CHECK(json_valid(object));
    CHECK_STR(json_member(object, "a"), "1");
    CHECK_STR(json_member(json_member(object, "b"), "a"), "[2,\"}\"]");
    CHECK_STR(json_member(object, "c"), "\"x\\\"]\"");
    CHECK(json_member(object, "d").ptr == NULL);
    CHECK(json_member(json_member(object, "d"), "e").ptr == NULL);
    CHECK(json_member(STR("[1]"), "a").ptr == NULL);
}

static void elements_are_walked(void)
{
    struct str rest = STR("[ 1, [2, 3] ,\"a,b\",{}]"), value;
    CHECK(json_next(&rest, NULL, &value));
    CHECK_STR(value, "1");
    CHECK(json_next(&rest, NULL, &value));
    CHECK_STR(value, "[2, 3]");
    CHECK(json_next(&rest, NULL, &value));
    CHECK_STR(value, "\"a,b\"");
    CHECK(json_next(&rest, NULL, &value));
    CHECK_STR(value, "{}");
    CHECK(!json_next(&rest, NULL, &value));
    struct str none = STR("[]");
    CHECK(!json_next(&none, NULL, &value));
    struct str absent = {NULL, 0};
    CHECK(!json_next(&absent, NULL, &value));
}

static void numbers_and_flags(void)
{
    uint64_t number = 0;
    bool flag = false;
    CHECK(json_u64_of(STR("42"), &number) && number == 42);
    CHECK(!json_u64_of(STR("-1"), &number) && !json_u64_of(STR("1.5"), &number));
    CHECK(!json_u64_of(STR("null"), &number) && !json_u64_of((struct str){NULL, 0}, &number));
    CHECK(json_bool_of(STR("true"), &flag) && flag);
    CHECK(json_bool_of(STR("false"), &flag) && !flag);
    CHECK(!json_bool_of(STR("\"true\""), &flag));
}

static void shown(const char *bytes, size_t columns, const char *expected, size_t used)
{
    struct buf b;
    buf_init(&b, 1000);
    CHECK_INT(utf8_add_shown(&b, str_of(bytes), columns), used);
    CHECK_TEXT(buf_cstr(&b), expected);
    buf_release(&b);
}

static void on_a_terminal(void)
{
    shown("a\x1b[2J\n", 80, "a\\x1b[2J\\x0a", 12);
    shown("\xc2\x9bx", 80, "\\xc2\\x9bx", 9);
    shown("\xe2\x80\xae", 80, "\\xe2\\x80\\xae", 12); /* right to left from here on */
    shown("a\x1b", 4, "a", 1);                            /* whole escapes or none */
    shown("\xe6\xbc\xa2\xe5\xad\x97", 3, "\xe6\xbc\xa2", 2);
    shown("e\xcc\x81x", 2, "e\xcc\x81x", 2);
    shown("\xff", 80, "\\xff", 4);
}

TESTS({"nothing of a text acts on a terminal, and its columns are counted", on_a_terminal},
      {"malformed bytes become replacement characters",
       malformed_bytes_become_replacement_characters},
      {"texts are escaped to ASCII", texts_are_escaped_to_ascii},
      {"texts are decoded, surrogate pairs too", texts_are_decoded},
      {"valid documents are told from others", valid_documents_are_told_from_others},
      {"depth is bounded", depth_is_bounded},
      {"members are found", members_are_found},
      {"elements are walked", elements_are_walked},
      {"numbers and flags", numbers_and_flags})
