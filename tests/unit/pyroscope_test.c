/* src/deliver/pyroscope: the request by its bytes, the old address, what answers mean. */
#include "base/gzip.h"
#include "base/protobuf.h"
#include "encode/encode.h"
#include "encode/pprof_read.h"
#include "sample_profile.h"
#include "deliver.h"

enum { ROOM = 16 * 1024 * 1024 };

static const struct backend *row(void)
{
    return backends[1];
}

struct bench {
    struct origin origin;
    struct backend_context context;
    struct delivery delivery;
    struct http_request request;
    struct buf file, text;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    struct profile p;
    buf_init(&b->file, ROOM);
    buf_init(&b->text, ROOM);
    struct sink sink = sink_of_buf(&b->file);
    CHECK(profile_init(&p, ROOM, NULL));
    fill_sample(&p);
    CHECK(encode_write(encoder_by_name(STR("pprof")), &p, row()->rules, &sink, &b->err));
    profile_release(&p);
    b->origin = origin_of_test();
    b->context = (struct backend_context){.origin = &b->origin, .url = {.host = STR("h")}};
    b->delivery = delivery_of("pprof", buf_slice(&b->file));
    return b;
}

static void tear_down(struct bench *b)
{
    buf_release(&b->file);
    buf_release(&b->text);
    free(b);
}

static void ask(struct bench *b)
{
    buf_clear(&b->text);
    CHECK(row()->request(&b->context, &b->delivery, &b->request, &b->text, &b->err));
}

/* The n-th field of this number; empty: there is none. */
static struct str part(struct str message, unsigned number, unsigned n)
{
    struct cursor c = cursor_of(message.ptr, message.len);
    struct protobuf_field f;
    while (protobuf_next(&c, &f)) {
        if (f.number == number && n-- == 0) {
            return f.bytes;
        }
    }
    CHECK(!c.short_read);
    return STR("");
}

static struct str label(struct str series, const char *name)
{
    struct str pair;
    for (unsigned i = 0; (pair = part(series, 1, i)).len > 0; i++) {
        if (str_eq(part(pair, 1, 0), str_of(name))) {
            return part(pair, 2, 0);
        }
    }
    return STR("(none)");
}

static unsigned label_count(struct str series)
{
    unsigned count = 0;
    while (part(series, 1, count).len > 0) {
        count++;
    }
    return count;
}

static void a_push_is_a_series_with_one_profile(void)
{
    struct bench *b = set_up();
    ask(b);
    CHECK_TEXT(b->request.method, "POST");
    CHECK_STR(b->request.target, "/push.v1.PusherService/Push");
    CHECK_STR(header_of(&b->request, "Content-Type"), "application/proto");
    CHECK_STR(header_of(&b->request, "Connect-Protocol-Version"), "1");
    struct str series = part(b->request.body, 1, 0), sample = part(series, 2, 0);
    CHECK_INT(part(b->request.body, 1, 1).len, 0);
    CHECK_STR(label(series, "__name__"), "process_cpu");
    CHECK_STR(label(series, "__delta__"), "false");
    CHECK_STR(label(series, "service_name"), "shop");
    CHECK_STR(label(series, "hostname"), "web-1");
    CHECK_STR(label(series, "pyroscope_spy"), "pillion");
    CHECK_INT(label_count(series), 5);
    CHECK_INT(part(sample, 2, 0).len, 36);
    struct profile back;
    CHECK(profile_init(&back, ROOM, NULL));
    CHECK(pprof_read(&back, part(sample, 1, 0), STR(""), &b->err));
    CHECK_INT(profile_sum(&back).cpu_ns, 46 * SAMPLE_PERIOD_NS + 25000000);
    profile_release(&back);
    tear_down(b);
}

static void a_further_profile_has_the_servers_name(void)
{
    static const char *const names[][2] = {{"alloc_space", "memory"}, {"inuse_objects", "memory"}, {"mutex", "mutex"},
                                           {"goroutine", "goroutines"}, {"exceptions", "exceptions"}};
    char first[40];
    struct bench *b = set_up();
    ask(b);
    struct str id = part(part(part(b->request.body, 1, 0), 2, 0), 2, 0);
    memcpy(first, id.ptr, 36);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        b->delivery.type = str_of(names[i][0]);
        ask(b);
        CHECK_STR(label(part(b->request.body, 1, 0), "__name__"), names[i][1]);
        CHECK(memcmp(part(part(part(b->request.body, 1, 0), 2, 0), 2, 0).ptr, first, 36) != 0);
    }
    tear_down(b);
}

static void a_thread_is_no_series(void)
{
    struct bench *b = set_up();
    struct buf plain;
    ask(b);
    struct str sample = part(part(b->request.body, 1, 0), 2, 0), profile = part(sample, 1, 0);
    buf_init(&plain, ROOM);
    CHECK(gzip_inflate(profile.ptr, profile.len, &plain, &b->err));
    static const char *const there[] = {"comm", "container", "shop", "memcpy"};
    CHECK(memmem(plain.ptr, plain.len, "worker", 6) == NULL);
    for (size_t i = 0; i < 4; i++) {
        CHECK(memmem(plain.ptr, plain.len, there[i], strlen(there[i])) != NULL);
    }
    struct profile back;
    CHECK(profile_init(&back, ROOM, NULL));
    CHECK(pprof_read(&back, profile, STR(""), &b->err));
    CHECK_INT(back.processes.len, 3); /* nobody's, web and db */
    vec_each(&back.threads, thread)
    {
        CHECK(thread->tid == 0 && back.processes.at[thread->process].pid == 0);
    }
    profile_release(&back);
    buf_release(&plain);
    tear_down(b);
}

static void tags_are_labels_of_legal_names_and_each_once(void)
{
    struct bench *b = set_up();
    b->origin.tags[0] = (struct fact){STR("env"), STR("prod")};
    b->origin.tags[1] = (struct fact){STR("a.b-c d"), STR("x\xff")};
    b->origin.tags[2] = (struct fact){STR("hostname"), STR("other")};
    b->origin.tags[3] = (struct fact){STR("__name__"), STR("mine")};
    b->origin.tags[4] = (struct fact){STR("9lives"), STR("cat")};
    b->origin.tags[5] = (struct fact){STR("empty"), STR("")};
    b->origin.tag_count = 6;
    ask(b);
    struct str series = part(b->request.body, 1, 0);
    CHECK_STR(label(series, "env"), "prod");
    CHECK_STR(label(series, "a_b_c_d"), "x\xef\xbf\xbd");
    CHECK_STR(label(series, "hostname"), "web-1");
    CHECK_STR(label(series, "__name__"), "process_cpu");
    CHECK_STR(label(series, "_9lives"), "cat");
    CHECK_TEXT(why_left_out(row(), &b->context, "hostname"),
               "another label has this name, in which all but letters and digits is _");
    CHECK_TEXT(why_left_out(row(), &b->context, "__name__"),
               "names that begin with __ are the server's own");
    CHECK_TEXT(why_left_out(row(), &b->context, "a.b-c d"), "");
    CHECK_INT(label_count(series), 8);
    b->origin.tag_count = 32;
    for (unsigned i = 0; i < 32; i++) {
        static char names[32][4];
        snprintf(names[i], sizeof names[i], "t%u", i);
        b->origin.tags[i] = (struct fact){str_of(names[i]), STR("v")};
    }
    ask(b);
    CHECK_INT(label_count(part(b->request.body, 1, 0)), 14); /* twelve, the name, and that it is no delta */
    CHECK_TEXT(why_left_out(row(), &b->context, "t8"), "");
    CHECK_TEXT(why_left_out(row(), &b->context, "t9"),
               "a profile has at most twelve labels, up to three of them pillion's own; give fewer "
               "tags");
    tear_down(b);
}

static void the_id_is_the_same_whenever_it_is_sent(void)
{
    struct bench *b = set_up();
    char first[37] = "", second[37] = "";
    ask(b);
    struct str id = part(part(part(b->request.body, 1, 0), 2, 0), 2, 0);
    memcpy(first, id.ptr, id.len);
    ask(b);
    id = part(part(part(b->request.body, 1, 0), 2, 0), 2, 0);
    memcpy(second, id.ptr, id.len);
    CHECK_TEXT(second, first);
    CHECK(first[14] == '8' && first[8] == '-' && first[23] == '-');
    b->delivery.identity++;
    ask(b);
    id = part(part(part(b->request.body, 1, 0), 2, 0), 2, 0);
    CHECK(!str_eq(id, str_of(first)));
    tear_down(b);
}

static void the_old_address_is_asked_when_the_new_one_is_not_there(void)
{
    static const unsigned missing[] = {404, 405, 415, 501};
    for (size_t i = 0; i < 4; i++) {
        struct bench *b = set_up();
        CHECK_INT(judged(row(), &b->context, missing[i], "", &b->err), VERDICT_AGAIN);
        CHECK(b->context.fallback);
        b->origin.tags[0] = (struct fact){STR("env"), STR("a,b}")};
        b->origin.tag_count = 1;
        ask(b);
        /* shop{hostname=web-1,pyroscope_spy=pillion,env=a_b_} */
        CHECK_STR(b->request.target,
                  "/ingest?name=shop%7Bhostname%3Dweb-1%2Cpyroscope_spy%3Dpillion%2Cenv%3Da_b_%7D&from="
                  "1763634664&until=1763634724&format=pprof&spyName=pillion&sampleRate=99");
        CHECK(gzip_is(b->request.body.ptr, b->request.body.len));
        CHECK_STR(header_of(&b->request, "Content-Encoding"), "(none)");
        CHECK_STR(header_of(&b->request, "Content-Type"), "application/octet-stream");
        /* not there either: said, and the new one is asked for first the next time */
        CHECK_INT(judged(row(), &b->context, 404, "", &b->err), VERDICT_CONFIG);
        CHECK(!b->context.fallback);
        tear_down(b);
    }
}

/* One 404 of a deployment moved a run to the old address for ever. */
static void the_new_address_is_asked_for_again(void)
{
    static const unsigned windows[] = {1, 2, 4, 8, 16, 32, 64, 64};
    struct bench *b = set_up();
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        CHECK_INT(judged(row(), &b->context, 404, "", &b->err), VERDICT_AGAIN);
        for (unsigned k = 0; k < windows[i]; k++) {
            CHECK(b->context.fallback);
            CHECK_INT(judged(row(), &b->context, 200, "", &b->err), VERDICT_TAKEN);
            CHECK(strstr(b->err.text, "does not have /push.v1.PusherService/Push, as those before 1.0; /ingest"));
        }
        CHECK(!b->context.fallback);
    }
    CHECK_INT(judged(row(), &b->context, 200, "", &b->err), VERDICT_TAKEN);
    CHECK_TEXT(b->err.text, "");
    CHECK_INT(judged(row(), &b->context, 404, "", &b->err), VERDICT_AGAIN);
    CHECK_INT(b->context.fallback_left, 1);
    tear_down(b);
}

static void an_unimplemented_method_is_not_there(void)
{
    struct bench *b = set_up();
    CHECK_INT(judged(row(), &b->context, 500, "{\"code\":\"unimplemented\",\"message\":\"x\"}", &b->err),
              VERDICT_AGAIN);
    tear_down(b);
}

static void words_tell_limits_from_what_is_wrong(void)
{
    static const struct {
        unsigned status;
        const char *body;
        enum verdict verdict;
    } known[] = {
        {200, "", VERDICT_TAKEN},
        {400, "{\"code\":\"invalid_argument\",\"message\":\"invalid labels\"}", VERDICT_REFUSED},
        {400, "{\"message\":\"the profile with labels '{a=\\\"b\\\"}' exceeds the size limit (x)\"}",
         VERDICT_SMALLER},
        {422, "{\"message\":\"the profile exceeds the samples count limit\"}", VERDICT_SMALLER},
        {422, "{\"message\":\"push rate limit (1 MB) exceeded while adding 2 MB\"}", VERDICT_LATER},
        {429, "{\"code\":\"resource_exhausted\",\"message\":\"rate limit\"}", VERDICT_LATER},
        {401, "no org id", VERDICT_CONFIG},
        {413, "", VERDICT_SMALLER},
        {503, "", VERDICT_LATER},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct bench *b = set_up();
        CHECK_INT(judged(row(), &b->context, known[i].status, known[i].body, &b->err), known[i].verdict);
        tear_down(b);
    }
}

static void a_tenant_and_a_user_are_headers(void)
{
    struct bench *b = set_up();
    b->context.tenant = STR("team-a");
    b->context.token = STR("123:pass");
    ask(b);
    CHECK_STR(header_of(&b->request, "X-Scope-OrgID"), "team-a");
    CHECK_STR(header_of(&b->request, "Authorization"), "Basic MTIzOnBhc3M=");
    CHECK(memmem(b->request.body.ptr, b->request.body.len, "123:pass", 8) == NULL);
    tear_down(b);
}

static void another_format_is_refused(void)
{
    struct bench *b = set_up();
    b->delivery.format = STR("col");
    CHECK(!row()->request(&b->context, &b->delivery, &b->request, &b->text, &b->err));
    CHECK_INT(b->err.kind, ERR_USAGE);
    tear_down(b);
}

TESTS({"a push is a series with one profile", a_push_is_a_series_with_one_profile},
      {"a further profile has the server's name", a_further_profile_has_the_servers_name},
      {"a thread is no series of its own", a_thread_is_no_series},
      {"tags are labels of legal names, each once", tags_are_labels_of_legal_names_and_each_once},
      {"the id is the same whenever a delivery is sent", the_id_is_the_same_whenever_it_is_sent},
      {"the old address is asked when the new one is not there",
       the_old_address_is_asked_when_the_new_one_is_not_there},
      {"the new address is asked for again", the_new_address_is_asked_for_again},
      {"a method that is unimplemented is not there", an_unimplemented_method_is_not_there},
      {"words tell limits from what is wrong with a profile", words_tell_limits_from_what_is_wrong},
      {"a tenant and a user are headers", a_tenant_and_a_user_are_headers},
      {"another format is refused", another_format_is_refused})
