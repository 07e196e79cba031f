/* src/encode/speedscope. */
#include "base/json.h"
#include "encode/speedscope.h"
#include "inlined_frame.h"
#include "json_element.h"
#include "sample_profile.h"
#include "test.h"

struct bench {
    struct profile p;
    struct buf text;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    buf_init(&b->text, SAMPLE_MAX_BYTES);
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    buf_release(&b->text);
    free(b);
}

static struct str write_json(struct bench *b)
{
    struct sink sink = sink_of_buf(&b->text);
    buf_clear(&b->text);
    CHECK(speedscope_write(&b->p, &sink, &b->err));
    CHECK(json_valid(buf_slice(&b->text)));
    return buf_slice(&b->text);
}

static unsigned length(struct str array)
{
    unsigned count = 0;
    struct str value;
    while (json_next(&array, NULL, &value)) {
        count++;
    }
    return count;
}

static void the_document_follows_the_schema(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct str json = write_json(b);
    CHECK_STR(json_member(json, "$schema"),
              "\"https://www.speedscope.app/file-format-schema.json\"");
    CHECK_STR(json_member(json, "name"), "\"shop-web\"");
    struct str frames = json_member(json_member(json, "shared"), "frames");
    CHECK_INT(length(frames), 6); /* two addresses of memcpy are one function */
    CHECK_STR(json_member(element(frames, 0), "name"), "\"main\"");
    CHECK_INT(length(json_member(json, "profiles")), 3);
    tear_down(b);
}

static void threads_are_profiles_heaviest_first(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct str profiles = json_member(write_json(b), "profiles");
    static const struct {
        const char *name, *end, *samples, *weights;
    } rows[] = {
        {"\"db (pid 30)\"", "175000000", "[[3,4],[5]]", "[150000000,25000000]"},
        {"\"web (pid 12) worker (tid 14)\"", "160000000", "[[0,2]]", "[160000000]"},
        {"\"web (pid 12)\"", "150000000", "[[0,1],[0,1]]", "[100000000,50000000]"},
    };
    for (unsigned i = 0; i < 3; i++) {
        struct str profile = element(profiles, i);
        CHECK_STR(json_member(profile, "type"), "\"sampled\"");
        CHECK_STR(json_member(profile, "unit"), "\"nanoseconds\"");
        CHECK_STR(json_member(profile, "startValue"), "0");
        CHECK_STR(json_member(profile, "name"), rows[i].name);
        CHECK_STR(json_member(profile, "endValue"), rows[i].end);
        CHECK_STR(json_member(profile, "samples"), rows[i].samples);
        CHECK_STR(json_member(profile, "weights"), rows[i].weights);
    }
    tear_down(b);
}

static void inlined_functions_are_frames(void)
{
    struct bench *b = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t main_node = add_name(&b->p, 0, "main", FRAME_NATIVE); /* function 0 */
    uint32_t f = inlined_frame(&b->p, 0, 0x20, "leaf", 2, "real", 4, NULL); /* 1 and 2 */
    profile_add(&b->p, t, profile_child(&b->p, main_node, f), 5, 1);
    struct str json = write_json(b);
    struct str frames = json_member(json_member(json, "shared"), "frames");
    CHECK_STR(element(frames, 1), "{\"name\":\"leaf\",\"file\":\"/src/leaf.c\"}");
    CHECK_STR(element(frames, 2), "{\"name\":\"real\",\"file\":\"/src/real.c\"}");
    CHECK_STR(json_member(element(json_member(json, "profiles"), 0), "samples"), "[[0,2,1]]");
    tear_down(b);
}

/* 7 ns without labels and 5 with one are one profile of 12. */
static void labels_do_not_divide_a_thread(void)
{
    struct bench *b = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t node = add_name(&b->p, 0, "main", FRAME_NATIVE);
    const struct str labels[PROFILE_LABELS] = {STR("held")};
    profile_add(&b->p, t, node, 7, 1);
    profile_add(&b->p, profile_labelled(&b->p, t, labels), node, 5, 1);
    struct str profiles = json_member(write_json(b), "profiles");
    CHECK_INT(length(profiles), 1);
    CHECK_STR(json_member(element(profiles, 0), "weights"), "[7,5]");
    CHECK_STR(json_member(element(profiles, 0), "endValue"), "12");
    tear_down(b);
}

/* Of 30 ns on one stack 10 were used in step 3 and 20 in step 1, of the other 5 in step 2; 7 ns were not seen. */
static void stacks_are_in_the_order_of_time(void)
{
    struct bench *b = set_up();
    profile_keep_moments(&b->p, 0);
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t one = add_name(&b->p, 0, "one", FRAME_NATIVE), two = add_name(&b->p, 0, "two", FRAME_NATIVE);
    profile_account(&b->p, t, ACCOUNT_LOST, 7);
    profile_add_at(&b->p, t, one, 10000, 1, 3 * MOMENTS_STEP_NS);
    profile_add_at(&b->p, t, two, 5000, 1, 2 * MOMENTS_STEP_NS);
    profile_add_at(&b->p, t, one, 20000, 1, 1 * MOMENTS_STEP_NS);
    struct str json = write_json(b), profile = element(json_member(json, "profiles"), 0);
    CHECK_STR(json_member(json, "order"), "\"time\"");
    CHECK_STR(json_member(profile, "samples"), "[[0],[1],[0],[2]]");
    CHECK_STR(json_member(profile, "weights"), "[20000,5000,10000,7]");
    CHECK_STR(json_member(profile, "endValue"), "35007");
    tear_down(b);
}

static void an_empty_profile_is_a_document(void)
{
    struct bench *b = set_up();
    struct str json = write_json(b);
    CHECK_STR(json_member(json, "profiles"), "[]");
    CHECK_STR(json_member(json_member(json, "shared"), "frames"), "[]");
    tear_down(b);
}

static void names_of_any_bytes_are_valid_json(void)
{
    struct bench *b = set_up();
    char any_bytes[ANY_BYTES];
    fill_any_bytes(any_bytes);
    uint32_t thread = add_thread(&b->p, add_process(&b->p, 1, "a\"b", ""), 1, "\xff\n");
    profile_add(&b->p, thread, add_name(&b->p, 0, any_bytes, FRAME_NATIVE), 1, 1);
    CHECK_STR(json_member(element(json_member(write_json(b), "profiles"), 0), "name"),
              "\"a\\\"b (pid 1) \\ufffd\\n\"");
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
        struct sink sink = sink_of_buf(&small);
        CHECK(!speedscope_write(&b->p, &sink, &b->err));
        buf_release(&small);
    }
    tear_down(b);
}

TESTS({"inlined functions are frames, outermost first", inlined_functions_are_frames},
      {"the document follows the schema", the_document_follows_the_schema},
      {"threads are profiles, the heaviest first", threads_are_profiles_heaviest_first},
      {"stacks are in the order of time, what was not seen last", stacks_are_in_the_order_of_time},
      {"labels do not divide a thread", labels_do_not_divide_a_thread},
      {"an empty profile is a document", an_empty_profile_is_a_document},
      {"names of any bytes are valid JSON", names_of_any_bytes_are_valid_json},
      {"a full sink is an error", a_full_sink_is_an_error})
