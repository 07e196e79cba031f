/* src/deliver/backlog, studio_logs: what waits, what is lost, and a batch by its bytes. */
#include "base/gzip.h"
#include "base/json.h"
#include "base/version.h"
#include "deliver/backlog.h"
#include "deliver/studio_logs.h"
#include "deliver.h"

/* ---- what waits ---- */

static void batch_is(struct backlog *b, enum backlog_batch expected, const char *texts, uint64_t lost)
{
    struct buf out;
    uint64_t told = 99;
    buf_init(&out, 1000);
    CHECK_INT(backlog_begin(b, &out, &told), expected);
    CHECK_TEXT(buf_cstr(&out), texts);
    CHECK_INT(told, expected == BATCH_NONE ? 99 : lost);
    buf_release(&out);
}

static void texts_go_in_order_and_once(void)
{
    struct backlog b;
    backlog_init(&b, 1000);
    batch_is(&b, BATCH_NONE, "", 0);
    backlog_add(&b, STR("one"));
    backlog_add(&b, STR(""));
    batch_is(&b, BATCH_FRESH, "one, ", 0);
    backlog_add(&b, STR("late"));
    backlog_end(&b, BATCH_TAKEN);
    CHECK_INT(backlog_fill(&b), 0); /* 8 of 1000 bytes */
    batch_is(&b, BATCH_FRESH, "late", 0);
    backlog_end(&b, BATCH_TAKEN);
    batch_is(&b, BATCH_NONE, "", 0);
    CHECK(backlog_is_empty(&b));
    backlog_release(&b);
}

static void what_was_not_taken_goes_again_as_it_was(void)
{
    struct backlog b;
    backlog_init(&b, 1000);
    backlog_add(&b, STR("one"));
    batch_is(&b, BATCH_FRESH, "one", 0);
    backlog_end(&b, BATCH_LATER);
    backlog_add(&b, STR("two"));
    batch_is(&b, BATCH_AGAIN, "one", 0);
    backlog_end(&b, BATCH_TAKEN);
    batch_is(&b, BATCH_FRESH, "two", 0);
    backlog_end(&b, BATCH_REFUSED); /* it will never be taken: the next batch tells of it */
    CHECK(backlog_is_empty(&b));
    backlog_add(&b, STR("three"));
    batch_is(&b, BATCH_FRESH, "three", 1);
    backlog_end(&b, BATCH_TAKEN);
    CHECK_INT(b.lost, 0);
    backlog_release(&b);
}

/* 40 bytes: four texts of six with their lengths. */
static void the_oldest_go_for_want_of_room_and_are_counted(void)
{
    struct backlog b;
    backlog_init(&b, 40);
    for (unsigned i = 0; i < 7; i++) {
        char text[8];
        snprintf(text, sizeof text, "text-%u", i);
        backlog_add(&b, str_of(text));
        CHECK_INT(backlog_fill(&b), i < 4 ? 25 * (i + 1) : 100);
    }
    batch_is(&b, BATCH_FRESH, "text-3, text-4, text-5, text-6", 3);
    backlog_end(&b, BATCH_LATER);
    batch_is(&b, BATCH_AGAIN, "text-3, text-4, text-5, text-6", 3); /* it was not taken: told again */
    backlog_end(&b, BATCH_TAKEN);
    backlog_add(&b, STR("more"));
    batch_is(&b, BATCH_FRESH, "more", 0);
    backlog_release(&b);
}

static void what_went_while_its_batch_was_on_the_way_is_lost_with_it_alone(void)
{
    for (unsigned taken = 0; taken < 2; taken++) {
        struct backlog b;
        backlog_init(&b, 40);
        for (unsigned i = 0; i < 4; i++) {
            backlog_add(&b, STR("older."));
        }
        batch_is(&b, BATCH_FRESH, "older., older., older., older.", 0);
        backlog_add(&b, STR("newer1"));
        backlog_add(&b, STR("newer2"));
        backlog_end(&b, taken ? BATCH_TAKEN : BATCH_LATER);
        if (taken) {
            batch_is(&b, BATCH_FRESH, "newer1, newer2", 0);
        } else {
            /* no longer the same: a batch of its own */
            batch_is(&b, BATCH_FRESH, "older., older., newer1, newer2", 2);
        }
        for (unsigned i = 0; i < 5; i++) { /* all of it goes, and one more */
            backlog_add(&b, STR("newest"));
        }
        backlog_end(&b, taken ? BATCH_TAKEN : BATCH_REFUSED);
        batch_is(&b, BATCH_FRESH, "newest, newest, newest, newest", taken ? 1 : 7);
        backlog_release(&b);
    }
}

static void what_is_too_long_is_lost_alone(void)
{
    struct backlog b;
    backlog_init(&b, 100);
    backlog_add(&b, STR("short"));
    backlog_add(&b, STR("a text that is longer than a fourth of the room that there is"));
    batch_is(&b, BATCH_FRESH, "short", 1);
    backlog_release(&b);
}

/* ---- a message ---- */

static void a_message_has_the_types_that_the_service_reads(void)
{
    const struct fact extra[] = {{STR("cpu_s"), STR("61.80")}, {STR("q\""), STR("a\nb")}};
    const struct studio_log log = {
        .severity = SEVERITY_WARNING, .wall_ns = START_NS + 123456789, .number = 7, .event = STR("window"),
        .message = STR("caf\xc3\xa9 \"x\""), .extra = extra, .extra_count = 2,
    };
    struct buf out;
    buf_init(&out, 10000);
    studio_log_put(&out, &log);
    CHECK(json_valid(buf_slice(&out)));
    CHECK_TEXT(buf_cstr(&out),
               "{\"severity\": 4, \"timestamp\": 1763634664123.456, \"text\": {\"logger_name\": \"pillion\", "
               "\"serial_no\": 7, \"message\": \"caf\\u00e9 \\\"x\\\"\", \"timestamp\": "
               "\"2025-11-20T10:31:04.123Z\", \"extra\": {\"event\": \"window\", \"cpu_s\": \"61.80\", \"q\\\"\": "
               "\"a\\nb\"}}}");
    buf_release(&out);
}

static void a_long_message_is_cut_between_characters_and_says_so(void)
{
    char text[STUDIO_MESSAGE_MAX + 2];
    memset(text, 'a', sizeof text);
    memcpy(text + STUDIO_MESSAGE_MAX - 1, "\xc3\xa9", 2);
    struct studio_log log = {.message = {text, sizeof text}};
    struct buf out;
    buf_init(&out, 10000);
    studio_log_put(&out, &log);
    CHECK(strstr(buf_cstr(&out), ", \"truncated\": true}}") != NULL);
    CHECK(strstr(buf_cstr(&out), "\\u") == NULL); /* no half of the last one */
    CHECK_INT(strspn(strstr(buf_cstr(&out), "aaaa"), "a"), STUDIO_MESSAGE_MAX - 1);
    buf_clear(&out);
    log.message.len = STUDIO_MESSAGE_MAX - 1;
    studio_log_put(&out, &log);
    CHECK(strstr(buf_cstr(&out), "truncated") == NULL);
    buf_release(&out);
}

/* ---- a batch ---- */

static struct studio_batch batch_of(const char *records)
{
    struct studio_batch batch = {.lost = 3, .records = str_of(records)};
    unsigned char random[16];
    for (unsigned i = 0; i < sizeof random; i++) {
        random[i] = (unsigned char)(0xf0 + i);
    }
    studio_batch_id(random, batch.id);
    studio_run_id(random, batch.run_id);
    return batch;
}

/* What is sent, unpacked. */
static void body_of(struct backend_context *context, const char *records, struct http_request *request,
                    struct buf *text, struct buf *plain)
{
    struct studio_batch batch = batch_of(records);
    struct err err;
    buf_init(text, 1 << 20);
    buf_init(plain, 1 << 20);
    CHECK(studio_logs_request(context, &batch, request, text, &err));
    CHECK(gzip_inflate(request->body.ptr, request->body.len, plain, &err));
    CHECK(json_valid(buf_slice(plain)));
}

static void a_batch_is_what_the_service_reads(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SECRET-1")};
    struct http_request request;
    struct buf text, plain;
    body_of(&context, "{}, {}", &request, &text, &plain);
    CHECK_TEXT(request.method, "POST");
    CHECK_STR(request.target, "/api/v1/logs");
    CHECK_STR(header_of(&request, "Content-Encoding"), "gzip");
    CHECK_STR(header_of(&request, "Content-Type"), "application/json");
    CHECK_STR(header_of(&request, "X-Application-Name"), "gprofiler");
    CHECK_STR(header_of(&request, "X-Token"), "SECRET-1");
    CHECK_TEXT(buf_cstr(&plain),
               "{\"batch_id\": \"f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\", \"metadata\": {\"run_id\": "
               "\"f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff\", \"gprofiler_version\": \"pillion " PILLION_VERSION
               "\", \"service_name\": \"shop\", \"hostname\": \"web-1\"}, \"lost_logs_count\": 3, \"logs\": [{}, {}]}");
    buf_release(&text);
    buf_release(&plain);
    origin.hostname = STR("");
    body_of(&context, "", &request, &text, &plain);
    CHECK(strstr(buf_cstr(&plain), "hostname") == NULL);
    CHECK(strstr(buf_cstr(&plain), "\"logs\": []}") != NULL);
    buf_release(&text);
    buf_release(&plain);
}

static void no_secret_is_in_a_message(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SEC\"RET-1"), .header_count = 2,
                                      .headers = {{STR("X-Key"), STR("SECRET-2")}, {STR("X-Zero"), STR("0")}}};
    struct http_request request;
    struct buf text, plain;
    body_of(&context, "{\"a\": \"is SEC\\\"RET-1, SECRET-2, 0\"}", &request, &text, &plain);
    CHECK(strstr(buf_cstr(&plain), "SEC") == NULL);
    CHECK(strstr(buf_cstr(&plain), "[{\"a\": \"is **********, ********, 0\"}]") != NULL);
    buf_release(&text);
    buf_release(&plain);
}

static void answers_say_what_becomes_of_a_batch(void)
{
    static const struct {
        unsigned status;
        enum verdict verdict;
        bool is_taken;
    } rows[] = {
        {201, VERDICT_TAKEN, true},    {200, VERDICT_TAKEN, true},  {500, VERDICT_LATER, true},
        {429, VERDICT_LATER, true},    {401, VERDICT_CONFIG, true}, {400, VERDICT_REFUSED, true},
        {413, VERDICT_REFUSED, true},  {404, VERDICT_CONFIG, false}, {405, VERDICT_CONFIG, false},
        {501, VERDICT_LATER, false},
    };
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SECRET-1")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct http_response answer = {.status = rows[i].status};
        struct err err = {0};
        buf_init(&answer.body, HTTP_BODY_MAX);
        buf_text(&answer.body, "{\"detail\": \"no SECRET-1\"}");
        CHECK_INT(studio_logs_classify(&context, &answer, &err), rows[i].verdict);
        CHECK_INT(studio_logs_are_taken(rows[i].status), rows[i].is_taken);
        CHECK(strstr(err.text, "SECRET") == NULL);
        CHECK((err.text[0] != '\0') == (rows[i].verdict != VERDICT_TAKEN));
        buf_release(&answer.body);
    }
}

TESTS({"texts go in order and once", texts_go_in_order_and_once},
      {"what was not taken goes again as it was", what_was_not_taken_goes_again_as_it_was},
      {"the oldest go for want of room and are counted", the_oldest_go_for_want_of_room_and_are_counted},
      {"what went while its batch was on the way is lost with it alone",
       what_went_while_its_batch_was_on_the_way_is_lost_with_it_alone},
      {"what is too long is lost alone", what_is_too_long_is_lost_alone},
      {"a message has the types that the service reads", a_message_has_the_types_that_the_service_reads},
      {"a long message is cut between characters and says so", a_long_message_is_cut_between_characters_and_says_so},
      {"a batch is what the service reads", a_batch_is_what_the_service_reads},
      {"no secret is in a message", no_secret_is_in_a_message},
      {"answers say what becomes of a batch", answers_say_what_becomes_of_a_batch})
