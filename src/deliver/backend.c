#include "deliver/backend_private.h"

#include "base/json.h"
#include "base/time.h"
#include "deliver/escape.h"

#include <stdio.h>
#include <strings.h>

const struct backend backends[BACKEND_COUNT] = {
    {
        .name = "studio",
        .title = "Performance Studio",
        .format = "col",
        .default_port = 80,
        /* The application takes 4 MiB, but what usually stands before it takes no more than its
         * own default. */
        .most_bytes = 1024 * 1024,
        .env_host = "GPROFILER_SERVER_HOST",
        .env_token = "GPROFILER_TOKEN",
        .env_service = "GPROFILER_SERVICE_NAME GPROFILER_SERVICE",
        .needs_token = true,
        .names_host = true,
        .request = studio_request,
        .judge = studio_judge,
        .health = studio_health,
        .omits = studio_omits,
    },
    {
        .name = "pyroscope",
        .title = "Pyroscope",
        .format = "pprof",
        .rules = &pyroscope_rules,
        .default_host = "http://localhost:4040",
        .default_port = 4040,
        .most_bytes = 4 * 1024 * 1024,
        .env_host = "PYROSCOPE_SERVER_ADDRESS",
        .env_token = "PYROSCOPE_AUTH_TOKEN",
        .env_service = "PYROSCOPE_APPLICATION_NAME",
        .env_tenant = "PYROSCOPE_TENANT_ID PYROSCOPE_SCOPE_ORG_ID",
        /* It refuses what is more than an hour old; some of that is needed for the way. */
        .most_age_ns = UINT64_C(55) * 60 * NS_PER_S,
        .request = pyroscope_request,
        .judge = pyroscope_judge,
        .omits = pyroscope_omits,
    },
    {
        .name = "http",
        .title = "HTTP",
        .format = "pprof",
        .default_port = 80,
        .names_host = true,
        .request = plain_request,
        .judge = plain_judge,
    },
    {
        .name = "datadog",
        .title = "Datadog",
        .format = "pprof",
        .rules = &datadog_rules,
        .default_port = 8126,
        .most_bytes = 10 * 1024 * 1024,
        .env_host = "DD_TRACE_AGENT_URL DD_AGENT_HOST DD_TRACE_AGENT_PORT",
        .env_token = "DD_API_KEY",
        .env_service = "DD_SERVICE",
        .keeps_token = true,
        .takes_sets = true,
        /* How far back its profiles may lie is not told; its logs may 18 hours. */
        .most_age_ns = UINT64_C(18) * 3600 * NS_PER_S,
        .address = datadog_address,
        .request = datadog_request,
        .judge = datadog_judge,
        .omits = datadog_omits,
    },
    {
        .name = "otlp",
        .title = "OpenTelemetry",
        .format = "otlp",
        .rules = &otlp_rules,
        .default_host = "http://localhost:4318",
        .default_port = 4318,
        .most_bytes = 16 * 1024 * 1024,
        .env_host = "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT OTEL_EXPORTER_OTLP_ENDPOINT",
        .env_service = "OTEL_SERVICE_NAME",
        .most_age_ns = UINT64_C(24) * 3600 * NS_PER_S,
        .unpacks = true,
        .attributes = otlp_attributes,
        .request = otlp_request,
        .judge = otlp_judge,
        .omits = otlp_omits,
    },
};

const struct backend *backend_by_name(struct str name)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (str_eq(name, str_of(backends[i].name))) {
            return &backends[i];
        }
    }
    return NULL;
}

static bool any_is_set(const char *names, struct str (*get)(void *context, const char *name),
                       void *context)
{
    struct str rest = str_of(names);
    while (rest.len > 0) {
        char name[64];
        struct str one = str_sub(str_cut(&rest, ' '), 0, sizeof name - 1);
        memcpy(name, one.ptr, one.len);
        name[one.len] = '\0';
        if (get(context, name).len > 0) {
            return true;
        }
    }
    return false;
}

/* A server's address says more than a token, which may be there for another program. */
const struct backend *backend_from_environment(struct str (*get)(void *context, const char *name),
                                               void *context)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (any_is_set(backends[i].env_host, get, context)) {
            return &backends[i];
        }
    }
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (any_is_set(backends[i].env_token, get, context)) {
            return &backends[i];
        }
    }
    return NULL;
}

const struct fact *backend_fact(const struct fact *facts, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(facts[i].name, name)) {
            return &facts[i];
        }
    }
    return NULL;
}

void backend_omit(struct omissions *out, const struct fact *fact, bool is_tag, const char *why)
{
    if (out != NULL && why != NULL && out->count < sizeof out->list / sizeof out->list[0]) {
        out->list[out->count++] = (struct omission){*fact, is_tag, why};
    }
}

void backend_uuid(char out[static 40], uint64_t one, uint64_t two)
{
    snprintf(out, 40, "%08x-%04x-8%03x-%04x-%012llx", (unsigned)(one >> 32),
             (unsigned)(one >> 16 & 0xffff), (unsigned)(one & 0xfff),
             (unsigned)(two >> 48 & 0x3fff) | 0x8000, (unsigned long long)(two & 0xffffffffffff));
}

/* ---- requests ---- */

bool backend_check_format(const char *title, const char *format, const struct delivery *delivery, struct err *err)
{
    return str_eq(delivery->format, str_of(format)) ||
           err_set(err, ERR_USAGE, 0, "%s takes %s, not %.*s", title, format, (int)delivery->format.len,
                   delivery->format.ptr);
}

bool backend_post(struct http_request *out, const struct buf *text, struct span target,
                  struct span body, struct err *err)
{
    if (text->failed) {
        return err_set(err, ERR_LIMIT, 0, "the request is larger than %zu bytes", text->max);
    }
    *out = (struct http_request){.method = "POST", .target = span_of(text, target),
                                 .body = span_of(text, body)};
    return true;
}

/* ---- headers ---- */

bool backend_check_header(const char *what, struct str value, struct err *err)
{
    return escape_is_header(value) ||
           err_set(err, ERR_USAGE, 0, "%s holds a control character, such as a line end", what);
}

bool backend_is_given(const struct backend_context *context, const char *name)
{
    for (size_t i = 0; i < context->header_count; i++) {
        struct str given = context->headers[i].name;
        if (given.len == strlen(name) && strncasecmp(given.ptr, name, given.len) == 0) {
            return true;
        }
    }
    return false;
}

struct span backend_authorization(const struct backend_context *context, struct buf *text)
{
    size_t at = text->len;
    struct str token = context->token;
    if (token.len > 0 && !backend_is_given(context, "Authorization")) {
        bool is_pair = str_find(token, ':') < token.len;
        buf_text(text, is_pair ? "Basic " : "Bearer ");
        if (is_pair) {
            escape_base64(text, token);
        } else {
            buf_str(text, token);
        }
    }
    return span_since(text, at);
}

static bool add(struct http_request *out, struct str name, struct str value, bool secret,
                struct err *err)
{
    return backend_check_header("a header", name, err) &&
           backend_check_header("a header", value, err) &&
           (http_add(out, name, value, secret) ||
            err_set(err, ERR_LIMIT, 0, "more than %d headers", HTTP_HEADERS_MAX));
}

bool backend_add_headers(const struct backend_context *context, struct http_request *out,
                         struct str authorization, struct err *err)
{
    bool ok = backend_check_header("the token", context->token, err);
    if (ok && authorization.len > 0) {
        ok = add(out, STR("Authorization"), authorization, true, err);
    }
    if (ok && context->tenant.len > 0 && !backend_is_given(context, "X-Scope-OrgID")) {
        ok = add(out, STR("X-Scope-OrgID"), context->tenant, false, err);
    }
    for (size_t i = 0; ok && i < context->header_count; i++) {
        /* What a header of one's own is for is not known: it may well be a secret. */
        ok = add(out, context->headers[i].name, context->headers[i].value, true, err);
    }
    return ok;
}

/* ---- answers ---- */

enum { SECRET_LEAST_BYTES = 4 }; /* a shorter header is hardly one, and would star out words */

/* The text of an error in JSON, wherever frameworks put it: {"message"}, {"detail"}, {"detail":
 * [{"msg"}]}, {"error"}, or a bare string. Bounded by what json_valid takes. */
static bool json_message(struct str value, struct buf *out)
{
    static const char *const keys[] = {"message", "detail", "error", "msg"};
    for (unsigned depth = 0; depth < 4; depth++) {
        struct str inner = {NULL, 0}, rest = value;
        if (json_text_of(value, out)) {
            return true;
        }
        if (value.len > 0 && value.ptr[0] == '[') {
            (void)json_next(&rest, NULL, &inner);
        }
        for (size_t i = 0; i < sizeof keys / sizeof keys[0] && inner.len == 0; i++) {
            inner = json_member(value, keys[i]);
        }
        value = inner;
    }
    return false;
}

void backend_hide(struct buf *text, size_t from, struct str secret)
{
    for (size_t at = from; secret.len > 0 && at + secret.len <= text->len; at++) {
        if (memcmp(text->ptr + at, secret.ptr, secret.len) == 0) {
            memset(text->ptr + at, '*', secret.len);
        }
    }
}

/* A server may well repeat what it was sent. */
static void hide_secrets(struct buf *text, const struct backend_context *context)
{
    backend_hide(text, 0, context->token);
    for (size_t i = 0; i < context->header_count; i++) {
        struct str value = context->headers[i].value;
        backend_hide(text, 0, value.len >= SECRET_LEAST_BYTES ? value : STR(""));
    }
}

void backend_message(const struct backend_context *context, const struct http_answer *answer,
                     char out[static BACKEND_MESSAGE_MAX])
{
    struct str body = str_trim(buf_slice(&answer->body));
    struct buf text;
    buf_init(&text, HTTP_BODY_MAX);
    if (json_valid(body)) {
        (void)json_message(body, &text);
    } else if (body.len > 0 && body.ptr[0] != '<' && body.ptr[0] != '{' && body.ptr[0] != '[') {
        buf_str(&text, str_sub(body, 0, str_find(body, '\n')));
    }
    hide_secrets(&text, context); /* before the cut, which would leave a part of one */
    struct str shown = str_sub(str_trim(buf_slice(&text)), 0, BACKEND_MESSAGE_MAX - 1);
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char c = (unsigned char)shown.ptr[i];
        out[i] = c < ' ' || c >= 0x7f ? '?' : (char)c;
    }
    out[shown.len] = '\0';
    buf_release(&text);
}

bool backend_says(const struct http_answer *answer, const char *words)
{
    return answer->body.len > 0 &&
           memmem(answer->body.ptr, answer->body.len, words, strlen(words)) != NULL;
}

struct meaning {
    unsigned status;
    enum verdict verdict;
    const char *remedy;
};

static const struct meaning meanings[] = {
    {401, VERDICT_CONFIG, "the token is missing or wrong (--token-file)"},
    {403, VERDICT_CONFIG, "the token does not allow this"},
    {404, VERDICT_CONFIG, "there is nothing at this address (--server-host)"},
    {405, VERDICT_CONFIG, "this address is for something else (--server-host)"},
    {407, VERDICT_CONFIG, "a proxy wants a user and a password (https_proxy)"},
    {408, VERDICT_LATER, "it waited too long for us"},
    {410, VERDICT_CONFIG, "this address is no longer served (--server-host)"},
    {411, VERDICT_CONFIG, "something between took the length away: a proxy?"},
    {413, VERDICT_SMALLER, "it takes less at a time"},
    {425, VERDICT_LATER, ""},
    {429, VERDICT_LATER, "it asks to be left alone for a while"},
};

static struct meaning meaning_of(unsigned status)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].status == status) {
            return meanings[i];
        }
    }
    if (status >= 200 && status < 300) {
        return (struct meaning){status, VERDICT_TAKEN, ""};
    }
    if (status >= 300 && status < 400) {
        return (struct meaning){status, VERDICT_CONFIG, "the service is elsewhere (--server-host)"};
    }
    return (struct meaning){status, status >= 500 ? VERDICT_LATER : VERDICT_REFUSED, ""};
}

void backend_blame(const struct backend_context *context, const char *title,
                   const struct http_answer *answer, const char *remedy, struct err *err)
{
    char message[BACKEND_MESSAGE_MAX];
    backend_message(context, answer, message);
    err_set(err, ERR_NETWORK, 0, "%s at %.*s answered %u%s%s%s%s", title,
            (int)context->url.host.len, context->url.host.ptr, answer->status,
            message[0] != '\0' ? ": " : "", message, remedy[0] != '\0' ? "; " : "", remedy);
}

enum verdict backend_judge(const struct backend_context *context, const char *title,
                           const struct http_answer *answer, struct err *err)
{
    struct meaning meaning = meaning_of(answer->status);
    if (meaning.verdict != VERDICT_TAKEN) {
        backend_blame(context, title, answer, meaning.remedy, err);
    }
    return meaning.verdict;
}
