/* src/runtime/go/pprof: profiles as Go's runtime writes them, read back field by field. */
#include "runtime/go/pprof.h"
#include "go_pprof_text.h"

enum { RESULT_MAX = 32 << 20 };

static const struct go_pprof_kind heap = {
    .values = {{"alloc_objects", "count"}, {"alloc_space", "bytes"}},
    .value_count = 2,
    .period_type = {"space", "bytes"},
    .period = 524288,
};

static struct go_frame frame(const char *name, const char *file, uint32_t line)
{
    return (struct go_frame){.name = str_of(name), .file = str_of(file), .line = line};
}

static void show_and_free(struct go_pprof *p, const char *wanted)
{
    struct buf out;
    struct shown_pprof shown;
    struct err err = {0};
    buf_init(&out, 0);
    CHECK(go_pprof_finish(p, &out, &err));
    CHECK_TEXT(pprof_show(&shown, &out), wanted);
    pprof_unshow(&shown);
    buf_release(&out);
    go_pprof_free(p);
}

static void inlined_calls_are_lines_of_one_location(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    const struct go_frame leaf[] = {frame("main.inner", "/a.go", 3), frame("main.outer", "/a.go", 9)};
    const struct go_frame root[] = {frame("main.main", "/a.go", 20)};
    go_pprof_map(p, 0x400000, 0x500000, 0x1000, STR("/bin/app"), STR("abc"));
    uint64_t at[] = {go_pprof_location(p, 0x400010, leaf, 2), go_pprof_location(p, 0x4fffff, root, 1),
                     go_pprof_location(p, 0x500000, NULL, 0)};
    CHECK(at[0] == 1 && at[1] == 2 && at[2] == 3);
    go_pprof_sample(p, at, 3, (const int64_t[]){7, -512}, NULL, 0);
    show_and_free(p, "map 400000-500000 /bin/app abc\n"
                     "7,-512 main.inner@/a.go:3<main.outer@/a.go:9[1] main.main@/a.go:20[1] 0x500000\n");
}

static void an_address_has_one_location(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    const struct go_frame one = frame("main.f", "/a.go", 1), other = frame("main.g", "/a.go", 1);
    CHECK_INT(go_pprof_known(p, 0x1000), 0);
    uint64_t id = go_pprof_location(p, 0x1000, &one, 1);
    CHECK_INT(go_pprof_known(p, 0x1000), id);
    CHECK_INT(go_pprof_location(p, 0x1000, &other, 1), id);
    CHECK(go_pprof_location(p, 0x1001, &one, 1) != id);
    CHECK_INT(go_pprof_known(p, 0), 0);
    go_pprof_sample(p, &id, 1, (const int64_t[]){1, 2}, NULL, 0);
    show_and_free(p, "1,2 main.f@/a.go:1\n");
}

/* A name with line 4 and the address 4 are two. */
static void frames_without_an_address_are_told_apart_by_what_they_are(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    const struct go_frame frames[] = {frame("f", "", 4), frame("f", "", 5), frame("f", "/b", 4), frame("g", "", 4)};
    uint64_t at[6];
    for (size_t i = 0; i < 4; i++) {
        at[i] = go_pprof_location(p, 0, &frames[i], 1);
        CHECK_INT(at[i], i + 1);
        CHECK_INT(go_pprof_location(p, 0, &frames[i], 1), at[i]);
    }
    at[4] = go_pprof_location(p, (uint64_t)1 << 32 | 4, &frames[0], 1); /* the key of the first, as an address */
    CHECK_INT(at[4], 5);
    at[5] = go_pprof_location(p, 0, frames, 2);
    go_pprof_sample(p, at, 6, (const int64_t[]){1, 1}, NULL, 0);
    show_and_free(p, "1,1 f@:4 f@:5 f@/b:4 g@:4 f@:4 f@:4<f@:5\n");
}

static void labels_are_texts_and_numbers(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    const struct str text = STR("chan receive");
    const struct go_pprof_label labels[] = {{.key = "state", .text = &text}, {.key = "bytes", .number = 48},
                                            {.key = "goid", .number = 7, .unit = "id"}};
    go_pprof_sample(p, NULL, 0, (const int64_t[]){0, 0}, labels, 3);
    show_and_free(p, "0,0 state=chan receive bytes=48/ goid=7/id\n");
}

static void locations_that_were_not_given_out_are_left_out(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    const struct go_frame one = frame("main.f", "/a.go", 1);
    const uint64_t at[] = {0, go_pprof_location(p, 16, &one, 1), 2, UINT64_MAX};
    go_pprof_sample(p, at, 4, (const int64_t[]){1, 1}, NULL, 0);
    show_and_free(p, "1,1 main.f@/a.go:1\n");
}

static void what_is_told_of_the_whole_is_there(void)
{
    struct go_pprof_kind kind = heap;
    struct shown_pprof shown;
    struct buf out;
    kind.default_type = "alloc_space";
    kind.comment = "made by a test";
    struct go_pprof *p = go_pprof_new(&kind, RESULT_MAX);
    buf_init(&out, 100);
    buf_text(&out, "what was there before");
    go_pprof_times(p, 1700000000000000000, 60000000000);
    CHECK(go_pprof_finish(p, &out, NULL));
    CHECK_TEXT(pprof_show(&shown, &out), "");
    CHECK_INT(shown.types, 2);
    CHECK_INT(shown.time_ns, 1700000000000000000);
    CHECK_INT(shown.duration_ns, 60000000000);
    CHECK_INT(shown.period, 524288);
    CHECK_STR(shown_string(&shown, shown.default_type), "alloc_space");
    CHECK_STR(shown_string(&shown, shown.comment), "made by a test");
    pprof_unshow(&shown);
    buf_release(&out);
    go_pprof_free(p);
}

/* Names come from foreign memory: not UTF-8, too long, empty. */
static void names_may_be_any_bytes(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    static char many[GO_PPROF_TEXT_MAX + 100], wanted[GO_PPROF_TEXT_MAX + 200];
    memset(many, 'x', sizeof many - 1);
    const struct go_frame frames[] = {frame("a\xff", "", 0), frame("", "", 0), frame(many, "", 0)};
    uint64_t at[3];
    for (size_t i = 0; i < 3; i++) {
        at[i] = go_pprof_location(p, 0, &frames[i], 1);
    }
    go_pprof_sample(p, at, 3, (const int64_t[]){1, 1}, NULL, 0);
    snprintf(wanted, sizeof wanted, "1,1 a\xef\xbf\xbd@:0 @:0 %.*s@:0\n", GO_PPROF_TEXT_MAX, many);
    show_and_free(p, wanted);
}

static void a_result_beyond_its_maximum_is_an_error(void)
{
    struct go_pprof *p = go_pprof_new(&heap, 1000);
    struct err err = {0};
    struct buf out;
    uint64_t seed = 1;
    buf_init(&out, 0);
    for (uint64_t i = 0; i < 20000; i++) {
        seed = hash_u64(seed);
        (void)go_pprof_location(p, seed, NULL, 0);
        go_pprof_sample(p, &i, 1, (const int64_t[]){(int64_t)seed, 1}, NULL, 0);
    }
    CHECK(!go_pprof_finish(p, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK_INT(out.len, 0);
    CHECK_INT(go_pprof_location(p, 5, NULL, 0), 0);
    go_pprof_free(p);
    buf_release(&out);
}

static void names_beyond_their_maximum_are_an_error(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    static char text[GO_PPROF_TEXT_MAX + 1];
    struct err err = {0};
    struct buf out;
    buf_init(&out, 0);
    memset(text, 'n', sizeof text - 1);
    for (unsigned i = 0; i < (16 << 20) / GO_PPROF_TEXT_MAX + 1; i++) {
        int len = snprintf(text, sizeof text, "%u", i);
        text[len] = 'n';
        const struct go_frame one = frame(text, "", 0);
        (void)go_pprof_location(p, 0, &one, 1);
    }
    CHECK(!go_pprof_finish(p, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    go_pprof_free(p);
    buf_release(&out);
}

/* A large program's heap: 50,000 stacks of 20,000 addresses in 8,000 functions. */
static void what_is_kept_is_small(void)
{
    struct go_pprof *p = go_pprof_new(&heap, RESULT_MAX);
    struct buf out;
    uint64_t at[24], seed = 1;
    buf_init(&out, 0);
    for (uint64_t i = 0; i < 20000; i++) {
        char name[64], file[64];
        snprintf(name, sizeof name, "example.com/service/pkg%llu.(*Type).Method", (unsigned long long)i % 8000);
        snprintf(file, sizeof file, "/src/service/pkg/file%llu.go", (unsigned long long)i % 1000);
        const struct go_frame one = frame(name, file, (uint32_t)i);
        CHECK_INT(go_pprof_location(p, 0x400000 + 5 * i, &one, 1), i + 1);
    }
    for (uint64_t i = 0; i < 50000; i++) {
        for (size_t f = 0; f < 24; f++) {
            seed = hash_u64(seed + i);
            at[f] = 1 + seed % 20000;
        }
        go_pprof_sample(p, at, 24, (const int64_t[]){(int64_t)i, (int64_t)i * 512}, NULL, 0);
    }
    CHECK(go_pprof_bytes(p) < 1700 << 10);
    CHECK(go_pprof_finish(p, &out, NULL));
    CHECK(out.len > 1000000 && out.len < 4000000); /* stacks made by chance cannot be compressed */
    buf_release(&out);
    go_pprof_free(p);
}

TESTS({"inlined calls are lines of one location, innermost first", inlined_calls_are_lines_of_one_location},
      {"an address has one location", an_address_has_one_location},
      {"frames without an address are told apart by what they are",
       frames_without_an_address_are_told_apart_by_what_they_are},
      {"labels are texts and numbers", labels_are_texts_and_numbers},
      {"locations that were not given out are left out", locations_that_were_not_given_out_are_left_out},
      {"what is told of the whole profile is there", what_is_told_of_the_whole_is_there},
      {"names may be any bytes", names_may_be_any_bytes},
      {"a result beyond its maximum is an error", a_result_beyond_its_maximum_is_an_error},
      {"names beyond their maximum are an error", names_beyond_their_maximum_are_an_error},
      {"what is kept of 50,000 samples of 20,000 locations is less than 1.7 MB", what_is_kept_is_small})
