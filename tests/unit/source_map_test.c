/* src/runtime/v8/source_map: places of scripts that were made of others, by maps that are written here. */
#include "runtime/v8/source_map.h"
#include "test.h"

#include <stdio.h>

enum { TEXT_BYTES = 1 << 16 };

static struct source_map *map_of(const char *json, const char *path)
{
    return source_map_read(str_of(json), str_of(path));
}

/* "file:line:column name", "=" behind it where a segment begins right there; "-": nothing is known. */
static const char *shown(const struct source_map *m, uint32_t line, uint32_t column)
{
    static char text[512];
    struct source_place p;
    if (m == NULL) {
        return "no map";
    }
    if (!source_map_find(m, line, column, &p)) {
        return "-";
    }
    snprintf(text, sizeof text, "%.*s:%u:%u %.*s%s", (int)p.file.len, p.file.ptr, p.line, p.column, (int)p.name.len,
             p.name.ptr, p.is_exact ? "=" : "");
    return text;
}

/* Column 0 is line 1 column 1 of a.ts, named one; column 4 line 2 column 5 of b.ts; column 9 of nothing; in the second
 * line column 2 is line 1 column 3 of b.ts. */
static const char two[] = "{\"version\":3,\"sources\":[\"a.ts\",\"../lib/./b.ts\"],\"names\":[\"one\"],"
                          "\"mappings\":\"AAAAA,ICCI,K;EDDF\"}";

static void places_are_those_of_the_segment_before(void)
{
    struct source_map *m = map_of(two, "/app/dist/app.js");
    CHECK_TEXT(shown(m, 1, 1), "/app/dist/a.ts:1:1 one=");
    CHECK_TEXT(shown(m, 1, 4), "/app/dist/a.ts:1:1 one");
    CHECK_TEXT(shown(m, 1, 5), "/app/lib/b.ts:2:5 =");
    CHECK_TEXT(shown(m, 1, 9), "/app/lib/b.ts:2:5 ");
    CHECK_TEXT(shown(m, 1, 10), "-");
    CHECK_TEXT(shown(m, 1, 99), "-");
    CHECK_TEXT(shown(m, 2, 1), "-");
    CHECK_TEXT(shown(m, 2, 3), "/app/dist/a.ts:1:3 =");
    CHECK_TEXT(shown(m, 3, 1), "-");
    CHECK_TEXT(shown(m, 0, 1), "-");
    CHECK_TEXT(shown(m, 1, 0), "-");
    source_map_free(m);
}

static void sources_are_named_from_the_script(void)
{
    static const struct {
        const char *root, *source, *path, *named;
    } all[] = {
        {"", "a.ts", "/app/x.js", "/app/a.ts"},
        {"src", "a.ts", "/app/x.js", "/app/src/a.ts"},
        {"/srv/", "a.ts", "/app/x.js", "/srv/a.ts"},
        {"", "/srv/a.ts", "/app/x.js", "/srv/a.ts"},
        {"", "../../../../a.ts", "/app/x.js", "/a.ts"},
        {"", "file:///srv/a.ts", "/app/x.js", "/srv/a.ts"},
        {"", "webpack://app/./src/a.ts", "/app/x.js", "webpack://app/./src/a.ts"},
        {"webpack://", "a.ts", "/app/x.js", "webpack://a.ts"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char json[512], wanted[128];
        snprintf(json, sizeof json, "{\"version\":3,\"sourceRoot\":\"%s\",\"sources\":[\"%s\"],\"mappings\":\"AAAA\"}",
                 all[i].root, all[i].source);
        snprintf(wanted, sizeof wanted, "%s:1:1 =", all[i].named);
        struct source_map *m = map_of(json, all[i].path);
        CHECK_TEXT(shown(m, 1, 1), wanted);
        source_map_free(m);
    }
}

/* More segments than lie between two marks, in one line and in many. */
static void long_ones_are_searched(void)
{
    static const char *const separators[] = {",", ";"};
    for (size_t kind = 0; kind < 2; kind++) {
        struct buf json;
        buf_init(&json, TEXT_BYTES);
        buf_text(&json, "{\"version\":3,\"sources\":[\"a.ts\"],\"mappings\":\"AAAA");
        for (int i = 1; i < 2000; i++) { /* each is two columns and one line on, or one line and one line on */
            buf_text(&json, separators[kind]);
            buf_text(&json, kind == 0 ? "EACA" : "AACA");
        }
        buf_text(&json, "\"}");
        struct source_map *m = source_map_read(buf_slice(&json), STR("/x.js"));
        for (uint32_t i = 0; i < 2000; i++) {
            char wanted[64];
            snprintf(wanted, sizeof wanted, "/a.ts:%u:1 =", i + 1);
            CHECK_TEXT(kind == 0 ? shown(m, 1, 2 * i + 1) : shown(m, i + 1, 1), wanted);
        }
        CHECK(m != NULL && source_map_bytes(m) < TEXT_BYTES);
        source_map_free(m);
        buf_release(&json);
    }
}

static void what_is_no_map_is_none(void)
{
    static const char *const all[] = {
        "", "{", "[]", "{\"version\":3}", "{\"version\":2,\"sources\":[\"a\"],\"mappings\":\"AAAA\"}",
        "{\"version\":3,\"sources\":[],\"mappings\":\"AAAA\"}", "{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"\"}",
        "{\"version\":3,\"sources\":[\"a\"],\"mappings\":\"!\"}", "{\"version\":3,\"sources\":[\"a\"],\"mappings\":7}",
        "{\"version\":3,\"sections\":[{\"offset\":{\"line\":0,\"column\":0},\"map\":{}}]}",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct source_map *m = map_of(all[i], "/app/x.js");
        CHECK(m == NULL);
        source_map_free(m);
    }
}

/* Numbers below 0, of more bits than there may be, of a source or a name that is not there. */
static void numbers_out_of_range_are_not_known(void)
{
    static const char *const all[] = {"ADAA", "AADA", "AAAD", "ACAA", "gggggggggggggggggggA", "AA", "AAA", "D,AAAA"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char json[256];
        snprintf(json, sizeof json, "{\"version\":3,\"sources\":[\"a\"],\"names\":[\"n\"],\"mappings\":\"%s\"}",
                 all[i]);
        struct source_map *m = map_of(json, "/x.js");
        CHECK(m == NULL || shown(m, 1, 1)[0] == '-' || i + 1 == sizeof all / sizeof all[0]);
        source_map_free(m);
    }
    struct source_map *m = map_of("{\"version\":3,\"sources\":[\"a\"],\"names\":[],\"mappings\":\"AAAAC\"}", "/x.js");
    CHECK_TEXT(shown(m, 1, 1), "/a:1:1 =");
    source_map_free(m);
    m = map_of("{\"version\":3,\"sources\":[\"a\"],\"names\":[\"n\"],\"mappings\":\"AAAAgg\"}", "/x.js");
    CHECK_TEXT(shown(m, 1, 1), "/a:1:1 =");
    source_map_free(m);
}

TESTS({"places are those of the segment before", places_are_those_of_the_segment_before},
      {"sources are named from the script", sources_are_named_from_the_script},
      {"long ones are searched", long_ones_are_searched},
      {"what is no map is none", what_is_no_map_is_none},
      {"numbers out of range are not known", numbers_out_of_range_are_not_known})
