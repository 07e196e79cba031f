/* src/deliver/backend: the table, how a back end is found, what answers mean. */
#include "base/json.h"
#include "deliver/backend_private.h"
#include "deliver/escape.h"
#include "deliver.h"

static void rows_are_found_by_name(void)
{
    CHECK(backend_by_name(STR("studio")) == backends[0]);
    CHECK(backend_by_name(STR("pyroscope")) == backends[1]);
    CHECK(backend_by_name(STR("http")) == backends[2]);
    CHECK(backend_by_name(STR("datadog")) == backends[3]);
    CHECK_TEXT(backend_by_name(STR("otlp"))->title, "OpenTelemetry");
    CHECK(backend_by_name(STR("Studio")) == NULL && backend_by_name(STR("")) == NULL);
}

static void every_row_is_whole(void)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        const struct backend *row = backends[i];
        CHECK(row->name != NULL && row->title != NULL && row->format != NULL);
        CHECK(row->request != NULL && row->classify != NULL && row->default_port != 0);
    }
    CHECK_INT(backends[0]->most_bytes, 1048576); /* what stands before the studio takes 1 MiB */
    CHECK(backends[0]->needs_token && backends[0]->default_host == NULL);
    CHECK(backends[1]->most_age_ns < UINT64_C(3600) * 1000000000); /* Pyroscope refuses an hour */
}

static struct str variable(void *context, const char *name)
{
    const char *const *pairs = context;
    for (; pairs[0] != NULL; pairs += 2) {
        if (strcmp(pairs[0], name) == 0) {
            return str_of(pairs[1]);
        }
    }
    return STR("");
}

static const char *found_by(const char *const *pairs)
{
    const struct backend *row = backend_from_environment(variable, (void *)(uintptr_t)pairs);
    return row == NULL ? "none" : row->name;
}

static void the_environment_names_one(void)
{
    CHECK_TEXT(found_by((const char *const[]){NULL}), "none");
    CHECK_TEXT(found_by((const char *const[]){"HOME", "/", NULL}), "none");
    CHECK_TEXT(found_by((const char *const[]){"GPROFILER_TOKEN", "t", NULL}), "studio");
    CHECK_TEXT(found_by((const char *const[]){"GPROFILER_TOKEN", "", NULL}), "none");
    CHECK_TEXT(found_by((const char *const[]){"PYROSCOPE_SERVER_ADDRESS", "http://p", NULL}),
               "pyroscope");
    /* an address says more than a token */
    CHECK_TEXT(found_by((const char *const[]){"GPROFILER_TOKEN", "t", "PYROSCOPE_SERVER_ADDRESS",
                                              "http://p", NULL}),
               "pyroscope");
    CHECK_TEXT(found_by((const char *const[]){"GPROFILER_SERVER_HOST", "http://s",
                                              "PYROSCOPE_SERVER_ADDRESS", "http://p", NULL}),
               "studio");
    CHECK_TEXT(found_by((const char *const[]){"DD_AGENT_HOST", "a", NULL}), "datadog");
    CHECK_TEXT(found_by((const char *const[]){"DD_TRACE_AGENT_PORT", "1", NULL}), "datadog");
    CHECK_TEXT(found_by((const char *const[]){"DD_API_KEY", "k", NULL}), "datadog");
    /* these say what is profiled, not where it goes */
    CHECK_TEXT(found_by((const char *const[]){"DD_SERVICE", "s", "DD_ENV", "e", "DD_SITE", "d",
                                              "DD_TAGS", "a:b", "DD_VERSION", "1", NULL}),
               "none");
    CHECK_TEXT(found_by((const char *const[]){"OTEL_EXPORTER_OTLP_ENDPOINT", "http://o", NULL}),
               "otlp");
}

static void a_status_is_a_class(void)
{
    static const struct {
        unsigned status;
        enum verdict verdict;
    } known[] = {
        {200, VERDICT_TAKEN}, {201, VERDICT_TAKEN}, {204, VERDICT_TAKEN}, {302, VERDICT_CONFIG},
        {400, VERDICT_REFUSED}, {401, VERDICT_CONFIG}, {403, VERDICT_CONFIG}, {404, VERDICT_CONFIG},
        {405, VERDICT_CONFIG}, {407, VERDICT_CONFIG}, {408, VERDICT_LATER}, {409, VERDICT_REFUSED},
        {411, VERDICT_CONFIG}, {413, VERDICT_SMALLER}, {422, VERDICT_REFUSED}, {425, VERDICT_LATER},
        {429, VERDICT_LATER}, {499, VERDICT_REFUSED}, {500, VERDICT_LATER}, {502, VERDICT_LATER},
        {503, VERDICT_LATER}, {504, VERDICT_LATER},
    };
    struct backend_context context = {.url = {.host = STR("h")}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct err err;
        CHECK_INT(judged(backends[2], &context, known[i].status, "", &err), known[i].verdict);
        CHECK((err.kind == ERR_NONE) == (known[i].verdict == VERDICT_TAKEN));
    }
}

/* Who says so before the whole request is on its way has not taken it. */
static void an_early_success_is_none(void)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        struct backend_context context = {.url = {.host = STR("h")}};
        struct err err = {0};
        struct http_response answer = {.status = 200, .is_early = true};
        CHECK_INT(backends[i]->classify(&context, &answer, &err), VERDICT_LATER);
        CHECK(strstr(err.text, "answered 200; it came before the whole request was sent"));
    }
}

static void a_proxy_may_have_refused(void)
{
    struct backend_context context = {.url = {.host = STR("h")}};
    struct err err = {0};
    struct http_response answer = {.status = 403, .by_proxy = true};
    CHECK_INT(backends[2]->classify(&context, &answer, &err), VERDICT_CONFIG);
    CHECK(strstr(err.text, "the proxy does not allow this address, or the service not this token"));
}

static void says(const char *body, const char *expected)
{
    struct backend_context context = {.token = STR("SECRET-1")};
    struct http_response answer = {.status = 400};
    char message[BACKEND_MESSAGE_MAX];
    buf_init(&answer.body, HTTP_BODY_MAX);
    buf_text(&answer.body, body);
    backend_message(&context, &answer, message);
    CHECK_TEXT(message, expected);
    buf_release(&answer.body);
}

static void what_a_server_says_is_found_in_every_form(void)
{
    says("", "");
    says("{\"message\": \"no \\u20ac\"}", "no ???");
    says("\"Request Entity Too Large\"", "Request Entity Too Large");
    says("{\"detail\": [{\"loc\": [\"body\"], \"msg\": \"field required\"}]}", "field required");
    says("{\"detail\": {\"message\": \"deep\"}}", "deep");
    says("{\"code\":\"unauthenticated\",\"message\":\"no org id\"}", "no org id");
    says("<html><title>413</title></html>", "");
    says("  plain words \nmore", "plain words");
    says("{\"message\": 5}", "");
    says("{broken", "");
    says("[]", "");
}

static void a_secret_is_never_repeated(void)
{
    says("{\"message\": \"Invalid key SECRET-1!\"}", "Invalid key ********!");
    says("SECRET-1SECRET-1", "****************");
    struct backend_context context = {.token = STR("SECRET-1"), .url = {.host = STR("h")}};
    struct err err;
    judged(backends[0], &context, 401, "you sent SECRET-1", &err);
    CHECK(strstr(err.text, "SECRET") == NULL && strstr(err.text, "you sent") != NULL);
}

/* A message has 159 characters at most: the secret would end behind them. */
static void of_a_header_not_even_a_part_is_repeated(void)
{
    struct backend_context context = {.url = {.host = STR("h")}, .header_count = 2};
    char body[200];
    struct err err;
    context.headers[0] = (struct fact){STR("X-Key"), STR("SECRET-2")};
    context.headers[1] = (struct fact){STR("X-Retry"), STR("a")};
    snprintf(body, sizeof body, "%0*d SECRET-2", 153, 0);
    judged(backends[2], &context, 401, body, &err);
    CHECK(strstr(err.text, "S") == NULL && strstr(err.text, "0 *****;") != NULL);
    judged(backends[2], &context, 401, "what a header", &err);
    CHECK(strstr(err.text, "what a header") != NULL);
}

static void a_long_message_is_cut(void)
{
    char body[400];
    memset(body, 'x', sizeof body - 1);
    body[sizeof body - 1] = '\0';
    struct backend_context context = {.url = {.host = STR("h")}};
    struct err err;
    CHECK_INT(judged(backends[2], &context, 500, body, &err), VERDICT_LATER);
    CHECK(strlen(err.text) < 200);
}

static void a_sentence_names_the_server_and_the_remedy(void)
{
    struct backend_context context = {.url = {.host = STR("studio.example")}};
    struct err err;
    CHECK_INT(judged(backends[0], &context, 401, "{\"message\": \"who?\"}", &err), VERDICT_CONFIG);
    CHECK_TEXT(err.text, "Performance Studio at studio.example answered 401: who?; the token is missing "
                         "or wrong (--token-file)");
}

static void escaped(void (*escape)(struct buf *, struct str), const char *text, size_t len,
                    const char *expected)
{
    struct buf b;
    buf_init(&b, 1000);
    escape(&b, (struct str){text, len});
    CHECK_TEXT(buf_cstr(&b), expected);
    buf_release(&b);
}

static void texts_are_escaped_for_addresses(void)
{
    escaped(escape_url, "aZ09-._~", 8, "aZ09-._~");
    escaped(escape_url, "a b/c?d=e&f%\xff\n", 14, "a%20b%2Fc%3Fd%3De%26f%25%FF%0A");
}

/* RFC 4648 10 */
static void base64_is_padded(void)
{
    escaped(escape_base64, "", 0, "");
    escaped(escape_base64, "f", 1, "Zg==");
    escaped(escape_base64, "fo", 2, "Zm8=");
    escaped(escape_base64, "foo", 3, "Zm9v");
    escaped(escape_base64, "foob", 4, "Zm9vYg==");
    escaped(escape_base64, "\xff\xfe\x00", 3, "//4A");
}

TESTS({"rows are found by name", rows_are_found_by_name},
      {"every row is whole", every_row_is_whole},
      {"the environment names a back end, by an address before a token", the_environment_names_one},
      {"a status is a class of failure, and all but success have a sentence", a_status_is_a_class},
      {"an early success is none", an_early_success_is_none},
      {"a proxy may have refused", a_proxy_may_have_refused},
      {"what a server says is found in every form", what_a_server_says_is_found_in_every_form},
      {"a secret that a server repeats is not shown", a_secret_is_never_repeated},
      {"of a header not even a part is repeated", of_a_header_not_even_a_part_is_repeated},
      {"a long message is cut", a_long_message_is_cut},
      {"a sentence names the server and the remedy", a_sentence_names_the_server_and_the_remedy},
      {"texts are escaped for addresses", texts_are_escaped_for_addresses},
      {"base64 is padded", base64_is_padded})
