/* src/encode/trace: events of slices. */
#include "base/json.h"
#include "encode/encode.h"
#include "inlined_frame.h"
#include "sample_profile.h"
#include "test.h"

struct bench {
    struct profile p;
    struct buf text, told;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    buf_init(&b->text, SAMPLE_MAX_BYTES);
    buf_init(&b->told, SAMPLE_MAX_BYTES);
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    buf_release(&b->text);
    buf_release(&b->told);
    free(b);
}

static bool write_to(struct bench *b, struct buf *text)
{
    struct sink sink = sink_of_buf(text);
    return encoder_by_name(STR("trace"))->write(&b->p, NULL, &sink, &b->err);
}

static struct str write_json(struct bench *b)
{
    buf_clear(&b->text);
    CHECK(write_to(b, &b->text));
    CHECK(json_valid(buf_slice(&b->text)));
    return buf_slice(&b->text);
}

/* "B name@ts E@ts …" of a thread. */
static struct str told(struct bench *b, const char *tid)
{
    struct str events = json_member(write_json(b), "traceEvents"), event;
    buf_clear(&b->told);
    while (json_next(&events, NULL, &event)) {
        struct str phase = json_member(event, "ph"), name = json_member(event, "name");
        if (str_eq(phase, STR("\"M\"")) || !str_eq(json_member(event, "tid"), str_of(tid))) {
            continue;
        }
        buf_text(&b->told, b->told.len > 0 ? " " : "");
        buf_str(&b->told, str_sub(phase, 1, 1));
        if (name.len > 0) {
            buf_byte(&b->told, ' ');
            buf_str(&b->told, str_sub(name, 1, name.len - 2));
        }
        buf_byte(&b->told, '@');
        buf_str(&b->told, json_member(event, "ts"));
    }
    return buf_slice(&b->told);
}

static void common_callers_are_one_slice(void)
{
    struct bench *b = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t main_node = add_name(&b->p, 0, "main", FRAME_NATIVE);
    profile_add(&b->p, t, add_name(&b->p, main_node, "b", FRAME_NATIVE), 2000, 1);
    profile_add(&b->p, t, add_name(&b->p, main_node, "c", FRAME_NATIVE), 500, 1);
    profile_add(&b->p, t, main_node, 1001, 1);
    CHECK_STR(told(b, "1"), "B main@0.000 B b@1.001 E@3.001 B c@3.001 E@3.501 E@3.501");
    tear_down(b);
}

/* 4 ms in steps 0 and 1, and 4 ms in step 5. */
static void short_pauses_end_no_caller(void)
{
    enum { MS = 1000000 };
    struct bench *b = set_up();
    profile_keep_moments(&b->p, 0);
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t a = add_name(&b->p, 0, "a", FRAME_NATIVE), x = add_name(&b->p, a, "x", FRAME_NATIVE);
    profile_add_at(&b->p, t, a, 4 * MS, 1, 0);
    profile_add_at(&b->p, t, x, 4 * MS, 1, 10 * MS);
    profile_add_at(&b->p, t, x, 4 * MS, 1, 50 * MS);
    profile_account(&b->p, t, ACCOUNT_LOST, 1 * MS);
    CHECK_STR(told(b, "1"), "B a@0.000 B x@10000.000 E@14000.000 E@14000.000 B a@50000.000 B x@50000.000 E@54000.000 "
                            "E@54000.000 B [lost]@54000.000 E@55000.000");
    tear_down(b);
}

static void inlined_functions_are_slices(void)
{
    struct bench *b = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t f = inlined_frame(&b->p, 0, 0x20, "leaf", 2, "real", 4, NULL);
    profile_add(&b->p, t, profile_child(&b->p, 0, f), 5000, 1);
    CHECK_STR(told(b, "1"), "B real@0.000 B leaf@0.000 E@5.000 E@5.000");
    CHECK(strstr(buf_cstr(&b->text), "\"args\":{\"file\":\"/src/leaf.c\"}") != NULL);
    tear_down(b);
}

/* Of two names of one thread, and without ids: tracks of their own. */
static void every_row_has_its_track(void)
{
    struct bench *b = set_up();
    uint32_t app = add_process(&b->p, 7, "app", ""), none = add_process(&b->p, 0, "none", "");
    uint32_t f = add_name(&b->p, 0, "f", FRAME_NATIVE);
    profile_add(&b->p, add_thread(&b->p, app, 7, "first"), f, 3000, 1);
    profile_add(&b->p, add_thread(&b->p, app, 7, "second"), f, 2000, 1);
    profile_add(&b->p, add_thread(&b->p, none, 0, "none"), f, 1000, 1);
    CHECK_STR(told(b, "7"), "B f@0.000 E@3.000");
    CHECK_STR(told(b, "1073741826"), "B f@0.000 E@2.000");
    CHECK_STR(told(b, "1073741827"), "B f@0.000 E@1.000");
    CHECK(strstr(buf_cstr(&b->text), "{\"ph\":\"M\",\"pid\":4194306,\"tid\":1073741827,\"name\":\"process_name\","
                                     "\"args\":{\"name\":\"none\"}}") != NULL);
    tear_down(b);
}

static void an_empty_profile_is_a_document(void)
{
    struct bench *b = set_up();
    CHECK_STR(json_member(write_json(b), "traceEvents"), "[]");
    tear_down(b);
}

static void names_of_any_bytes_are_valid_json(void)
{
    struct bench *b = set_up();
    char any_bytes[ANY_BYTES];
    fill_any_bytes(any_bytes);
    uint32_t thread = add_thread(&b->p, add_process(&b->p, 1, "a\"b", ""), 1, "\xff\n");
    profile_add(&b->p, thread, add_name(&b->p, 0, any_bytes, FRAME_NATIVE), 1, 1);
    CHECK(write_json(b).len > 0);
    tear_down(b);
}

static void a_full_sink_is_an_error(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    size_t whole = write_json(b).len;
    for (size_t max = 1; max < whole; max += 53) {
        struct buf small;
        buf_init(&small, max);
        CHECK(!write_to(b, &small));
        buf_release(&small);
    }
    tear_down(b);
}

TESTS({"common callers are one slice", common_callers_are_one_slice},
      {"short pauses end no caller's slice", short_pauses_end_no_caller},
      {"inlined functions are slices", inlined_functions_are_slices},
      {"every row has its own track", every_row_has_its_track},
      {"an empty profile is a document", an_empty_profile_is_a_document},
      {"names of any bytes are valid JSON", names_of_any_bytes_are_valid_json},
      {"a full sink is an error", a_full_sink_is_an_error})
