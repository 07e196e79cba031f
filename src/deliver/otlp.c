/* The back end OpenTelemetry: which attributes say where profiles come from, the request, which is the
 * encoded profile gzip'd, and what responses mean, partial success among them. Facts that its
 * attributes cannot hold are listed as omissions. */
#include "base/time.h"
#include "deliver/backend_private.h"

#include "base/gzip.h"
#include "base/protobuf.h"
#include "base/utf8.h"

#include <stdlib.h>

#define TARGET "/v1development/profiles"

/* A collector takes 20 MiB unpacked by its usual set-up. */
static const struct encode_rules otlp_rules = {.most_bytes = 16 * 1024 * 1024};

/* Pyroscope takes 30 labels in all: each resource has up to four of its own, each sample two, and
 * the server adds four. */
enum { KEY_MAX_BYTES = 128, VALUE_MAX_BYTES = 1024,
       ATTRIBUTES_BYTES = (BACKEND_ATTRIBUTES_MAX + 1) * 4 * (KEY_MAX_BYTES + VALUE_MAX_BYTES) };

/* ---- where the profiles come from ---- */

/* The attributes, by their places in `text`. */
struct attributes {
    struct span keys[BACKEND_ATTRIBUTES_MAX], values[BACKEND_ATTRIBUTES_MAX];
    size_t count;
    struct buf *text;
};

/* What became of an attribute. One without a value is none, and nothing is lost by that. */
enum fate { ADDED, NAMESAKE, NO_ROOM };

static enum fate add(struct attributes *a, struct str name, struct str value)
{
    size_t at = a->text->len, same = 0;
    if (name.len == 0 || value.len == 0) {
        return ADDED;
    }
    utf8_add(a->text, str_sub(name, 0, KEY_MAX_BYTES));
    struct span key = span_since(a->text, at);
    utf8_add(a->text, str_sub(value, 0, VALUE_MAX_BYTES));
    struct span text = span_since(a->text, at + key.len);
    if (a->text->failed) {
        return ADDED; /* so has the request */
    }
    while (same < a->count && !str_eq(span_of(a->text, a->keys[same]), span_of(a->text, key))) {
        same++;
    }
    if (same == a->count && a->count < BACKEND_ATTRIBUTES_MAX) {
        a->keys[a->count] = key;
        a->values[a->count++] = text;
        return ADDED;
    }
    bool is_said = same < a->count && str_eq(span_of(a->text, text), span_of(a->text, a->values[same]));
    enum fate fate = is_said ? ADDED : same < a->count ? NAMESAKE : NO_ROOM;
    a->text->len = at;
    return fate;
}

/* OTEL_RESOURCE_ATTRIBUTES, which tags may come from, escapes what it cannot hold. */
static void unescape(struct buf *out, struct str text)
{
    buf_clear(out);
    for (size_t i = 0; i < text.len; i++) {
        int high = i + 2 < text.len ? str_digit(text.ptr[i + 1]) : 16;
        int low = i + 2 < text.len ? str_digit(text.ptr[i + 2]) : 16;
        bool is_escape = text.ptr[i] == '%' && high < 16 && low < 16;
        buf_byte(out, is_escape ? (char)(high << 4 | low) : text.ptr[i]);
        i += is_escape ? 2 : 0;
    }
}

static struct str tag_key(struct str name)
{
    return str_eq(name, STR("env"))       ? STR("deployment.environment.name")
           : str_eq(name, STR("version")) ? STR("service.version")
                                          : name;
}

/* A service that was named counts more than one among the tags. */
static void put_service(const struct backend_context *context, struct attributes *a,
                        struct buf *value)
{
    const struct origin *origin = context->origin;
    const struct fact *tag = backend_fact(origin->tags, origin->tag_count, STR("service.name"));
    if (tag != NULL && !context->service_given) {
        unescape(value, tag->value);
        add(a, STR("service.name"), buf_slice(value));
    }
    add(a, STR("service.name"), origin->service);
}

static const char no_room[] =
    "a profile has at most twenty attributes that say where it comes from; give fewer tags";

/* Of the service's name put_service has decided. */
static void put_tag(struct attributes *a, const struct fact *tag, struct buf *value,
                    struct omissions *omitted)
{
    unescape(value, tag->value);
    enum fate fate = add(a, tag_key(tag->name), buf_slice(value));
    bool is_service = str_eq(tag->name, STR("service.name"));
    backend_omit(omitted, tag, true,
                 fate == NO_ROOM                   ? no_room
                 : fate == NAMESAKE && !is_service ? "another attribute has this name"
                                                   : NULL);
}

/* What a user gave counts more than what the platform says by the same name. */
static void put_fact(struct attributes *a, struct str name, struct str value,
                     struct omissions *omitted)
{
    const struct fact fact = {name, value};
    backend_omit(omitted, &fact, false, add(a, name, value) == NO_ROOM ? no_room : NULL);
}

static void put_origin(const struct backend_context *context, struct attributes *a,
                       struct omissions *omitted)
{
    const struct origin *origin = context->origin;
    struct buf value;
    buf_init(&value, 64 * 1024);
    put_service(context, a, &value);
    add(a, STR("host.name"), origin->hostname);
    for (size_t i = 0; i < origin->tag_count; i++) {
        put_tag(a, &origin->tags[i], &value, omitted);
    }
    put_fact(a, STR("container.id"), origin->container_id, omitted);
    for (size_t i = 0; i < origin->resource_count; i++) {
        put_fact(a, origin->resource[i].name, origin->resource[i].value, omitted);
    }
    a->text->failed |= value.failed;
    buf_release(&value);
}

static void otlp_omits(const struct backend_context *context, struct omissions *out)
{
    struct buf text;
    struct attributes a = {.text = &text};
    buf_init(&text, ATTRIBUTES_BYTES);
    put_origin(context, &a, out);
    buf_release(&text);
}

static size_t otlp_attributes(const struct backend_context *context, struct buf *text, struct fact *out)
{
    struct attributes a = {.text = text};
    put_origin(context, &a, NULL);
    for (size_t i = 0; i < a.count; i++) {
        out[i] = (struct fact){span_of(text, a.keys[i]), span_of(text, a.values[i])};
    }
    return a.count;
}

/* ---- the request ---- */

static bool pack(struct str request, struct buf *text, struct err *err)
{
    struct gzip *gzip = malloc(sizeof *gzip);
    struct sink packed = sink_of_buf(text);
    if (gzip == NULL || !gzip_open_quick(gzip, &packed, err)) {
        free(gzip);
        return err_set(err, ERR_MEMORY, 0, "no memory to compress with");
    }
    struct sink plain = gzip_sink(gzip);
    bool ok = sink_write(&plain, request.ptr, request.len, err) && gzip_finish(gzip, err);
    gzip_release(gzip);
    free(gzip);
    if (text->failed) {
        return err_set(err, ERR_LIMIT, 0, "the request is larger than %zu bytes", text->max);
    }
    return ok;
}

/* The address is what a path is put behind, unless it is the whole of it. */
static struct str target_of(const struct backend_context *context)
{
    bool is_whole = context->whole_path || str_ends(context->url.path, STR(TARGET));
    return is_whole ? STR("") : STR(TARGET);
}

static bool otlp_request(struct backend_context *context, const struct delivery *delivery,
                  struct http_request *out, struct buf *text, struct err *err)
{
    if (!backend_check_format("OpenTelemetry", "otlp", delivery, err)) {
        return false;
    }
    struct span authorization = backend_authorization(context, text);
    size_t at = text->len;
    if (!pack(delivery->profile, text, err)) {
        return false;
    }
    *out = (struct http_request){.method = "POST", .target = target_of(context),
                                 .body = span_of(text, span_since(text, at))};
    return http_add(out, STR("Content-Type"), STR("application/x-protobuf"), false) &&
           http_add(out, STR("Content-Encoding"), STR("gzip"), false) &&
           backend_add_headers(context, out, span_of(text, authorization), err);
}

/* ---- the response ---- */

/* The text of a google.rpc.Status; empty when the bytes are none. */
static struct str status_text(struct str body)
{
    enum { CODE = 1, MESSAGE, DETAILS };
    struct cursor c = cursor_of(body.ptr, body.len);
    struct protobuf_field f;
    struct str text = STR("");
    while (protobuf_next(&c, &f)) {
        if (f.number > DETAILS || (f.number == CODE) != (f.wire == PROTOBUF_VARINT)) {
            return STR("");
        }
        text = f.number == MESSAGE ? f.bytes : text;
    }
    return c.short_read || !utf8_valid(text) ? STR("") : text;
}

/* As the common sentences want it: words, whatever they came as. */
static void to_words(const struct http_response *response, struct str words, struct http_response *out)
{
    *out = *response;
    buf_init(&out->body, HTTP_BODY_MAX);
    buf_str(&out->body, words.len > 0 ? words : buf_slice(&response->body));
}

struct partial {
    uint64_t rejected;
    struct str message;
};

static struct partial partial_of(const struct http_response *response)
{
    enum { PARTIAL = 1, REJECTED = 1, MESSAGE = 2 };
    struct partial partial = {0, STR("")};
    struct cursor c = cursor_of(response->body.ptr, response->body.len);
    struct protobuf_field f, inner;
    while (protobuf_next(&c, &f)) {
        struct cursor message = cursor_of(f.bytes.ptr, f.bytes.len);
        while (f.number == PARTIAL && protobuf_next(&message, &inner)) {
            partial.rejected = inner.number == REJECTED ? inner.value : partial.rejected;
            partial.message = inner.number == MESSAGE ? inner.bytes : partial.message;
        }
    }
    return partial;
}

/* What was taken only in part must not be sent again; words without a number are a warning, which
 * stands in `err` then. */
static enum verdict classify_taken(const struct backend_context *context,
                                const struct http_response *response, struct err *err)
{
    struct partial partial = partial_of(response);
    struct http_response words;
    char message[BACKEND_MESSAGE_MAX];
    if (partial.rejected == 0 && partial.message.len == 0) {
        return VERDICT_TAKEN;
    }
    to_words(response, partial.message.len > 0 ? partial.message : STR("no reason given"), &words);
    backend_message(context, &words, message);
    buf_release(&words.body);
    err_set(err, ERR_NETWORK, 0, "OpenTelemetry at %.*s: %s%s", (int)context->url.host.len,
            context->url.host.ptr,
            partial.rejected != 0 ? "not all profiles of a window were accepted: " : "", message);
    return partial.rejected != 0 ? VERDICT_REFUSED : VERDICT_TAKEN;
}

/* By the protocol only these errors pass by themselves. A 500 is no such: Pyroscope answers it to a
 * profile that it cannot convert, now and ever. */
static bool may_pass(unsigned status)
{
    return status < 300 || status == 429 || status == 502 || status == 503 || status == 504;
}

/* As Go's readers of the protocol complain of a message of another release: it is not this window that is bad. */
static bool is_of_schema(const struct http_response *response)
{
    return response->status == 400 && (backend_says(response, "proto:") || backend_says(response, "unmarshal") ||
                                       backend_says(response, "wireType") || backend_says(response, "wire type"));
}

static const char *remedy_of(unsigned status, bool is_schema)
{
    return is_schema       ? "; it reads another release of the protocol than 1.10: update it, or send pprof "
                             "(--backend pyroscope)"
           : status == 404   ? "; a collector has profiles only with the feature gate "
                             "service.profilesSupport and a pipeline for them"
           : status == 415 ? "; it does not accept profiles in this format: is the address right?"
                           : "";
}

static enum verdict otlp_classify(struct backend_context *context, const struct http_response *response,
                        struct err *err)
{
    struct http_response words;
    struct err why = {0};
    to_words(response, status_text(buf_slice(&response->body)), &words);
    enum verdict verdict = backend_classify(context, "OpenTelemetry", &words, &why);
    buf_release(&words.body);
    if (verdict == VERDICT_TAKEN) {
        return classify_taken(context, response, err);
    }
    bool is_schema = is_of_schema(response);
    err_set(err, why.kind, why.number, "%s%s", why.text, remedy_of(response->status, is_schema));
    if (response->status == 415 || is_schema) {
        return VERDICT_CONFIG;
    }
    return verdict == VERDICT_LATER && !may_pass(response->status) ? VERDICT_REFUSED : verdict;
}

const struct backend backend_otlp = {
    .name = "otlp",
    .title = "OpenTelemetry",
    .format = "otlp",
    .rules = &otlp_rules,
    .default_host = "http://localhost:4318",
    .default_port = 4318,
    .reads_otel = true,
    .most_bytes = 16 * 1024 * 1024,
    .env_host = "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT OTEL_EXPORTER_OTLP_ENDPOINT",
    .env_service = "OTEL_SERVICE_NAME",
    .most_age_ns = UINT64_C(24) * 3600 * NS_PER_S,
    .unpacks = true,
    .attributes = otlp_attributes,
    .request = otlp_request,
    .classify = otlp_classify,
    .omits = otlp_omits,
};
