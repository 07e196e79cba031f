/* The back end Pyroscope: pprof to its push API with labels, or to the old ingest address where a
 * server does not know the new one, and the rules that its usual limits ask for. Labels are brought
 * into the form it accepts; others are listed as omissions. */
#include "deliver/backend_private.h"

#include "base/protobuf.h"
#include "base/time.h"
#include "base/utf8.h"
#include "deliver/escape.h"

#define PUSH "/push.v1.PusherService/Push"
#define INGEST "/ingest"
#define SPY "pillion"

/* What a server refuses by its usual limits, with some room: 16,000 samples and 4 MiB unpacked
 * for a profile, and 2 MB at once for a tenant, which a larger profile never gets through. */
enum { SAMPLES_MOST = 12000, PLAIN_MOST = 1900 * 1000 };

enum {
    MISSES_MOST = 6, LABELS_MAX = 12, NAME_MAX_BYTES = 128, VALUE_MAX_BYTES = 1024,
    LABELS_BYTES = LABELS_MAX * (NAME_MAX_BYTES + 4 * VALUE_MAX_BYTES), /* all of the longest */
};

/* push.v1.proto, types.v1.proto */
enum {
    PUSH_SERIES = 1,
    SERIES_LABELS = 1, SERIES_SAMPLES,
    LABEL_NAME = 1, LABEL_VALUE,
    SAMPLE_PROFILE = 1, SAMPLE_ID,
};

/* Every set of labels of a stack is a series to the server, so one per thread would be without
 * end: what is left is which program, container and application it was. */
static const struct encode_rules pyroscope_rules = {.merges_threads = true, .plain_types = true,
                                             .most_samples = SAMPLES_MOST, .most_bytes = PLAIN_MOST};

/* ---- labels ---- */

static bool is_name(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

/* Appends a label's name with what it may not hold replaced. */
static void put_name(struct buf *out, struct str name)
{
    struct str shown = str_sub(name, 0, NAME_MAX_BYTES);
    if (shown.len > 0 && !is_name(shown.ptr[0], true)) {
        buf_byte(out, '_');
    }
    for (size_t i = 0; i < shown.len; i++) {
        buf_byte(out, is_name(shown.ptr[i], false) ? shown.ptr[i] : '_');
    }
}

/* The labels of all that is sent, by their places in `text`. */
struct labels {
    struct span names[LABELS_MAX], values[LABELS_MAX];
    size_t count;
};

/* The place of the label of this name, or labels->count. */
static size_t label_of(const struct labels *labels, const struct buf *text, struct span name)
{
    size_t i = 0;
    while (i < labels->count &&
           !str_eq(span_of(text, labels->names[i]), span_of(text, name))) {
        i++;
    }
    return i;
}

/* Null: it is one; else why it is omitted. Empty: nothing is lost by that. */
static const char *why_no_label(const struct labels *labels, const struct buf *text,
                                struct str given, struct span name, struct str value)
{
    size_t same = label_of(labels, text, name);
    if (text->failed || name.len == 0 || value.len == 0) {
        return "";
    }
    if (str_starts(given, STR("__"))) {
        return "names that begin with __ are the server's own";
    }
    if (same < labels->count) {
        bool is_said = str_eq(span_of(text, labels->values[same]), value);
        return is_said ? ""
                       : "another label has this name, in which all but letters and digits is _";
    }
    return labels->count < LABELS_MAX
               ? NULL : "a profile has at most twelve labels, up to three of them pillion's own; "
                        "give fewer tags";
}

/* Null unless it is omitted, and then why. */
static const char *add_label(struct labels *labels, struct buf *text, struct str name,
                             struct str value)
{
    size_t at = text->len;
    put_name(text, name);
    struct span named = span_since(text, at);
    const char *why = why_no_label(labels, text, name, named, value);
    if (why != NULL) {
        text->len = at;
        return why[0] != '\0' ? why : NULL;
    }
    at = text->len;
    utf8_add(text, str_sub(value, 0, VALUE_MAX_BYTES));
    labels->names[labels->count] = named;
    labels->values[labels->count++] = span_since(text, at);
    return NULL;
}

static struct str service_of(const struct backend_context *context)
{
    struct str service = context->origin->service;
    return service.len > 0 ? service : STR("unknown");
}

static void put_labels(const struct backend_context *context, struct labels *labels,
                       struct buf *text, struct omissions *omitted)
{
    const struct origin *origin = context->origin;
    const struct fact *named = backend_fact(origin->tags, origin->tag_count, STR("service_name"));
    struct str service = named != NULL ? named->value : service_of(context);
    add_label(labels, text, STR("service_name"), service);
    add_label(labels, text, STR("hostname"), origin->hostname);
    add_label(labels, text, STR("pyroscope_spy"), STR(SPY));
    for (size_t i = 0; i < origin->tag_count; i++) {
        const struct fact *tag = &origin->tags[i];
        const char *why = add_label(labels, text, tag->name, tag->value);
        backend_omit(omitted, tag, true, tag == named ? NULL : why);
    }
}

static void pyroscope_omits(const struct backend_context *context, struct omissions *out)
{
    struct labels labels = {.count = 0};
    struct buf text;
    buf_init(&text, LABELS_BYTES);
    put_labels(context, &labels, &text, out);
    buf_release(&text);
}

/* ---- the new address: push.v1 ---- */

static void put_pair(struct buf *series, struct buf *pair, struct str name, struct str value)
{
    buf_clear(pair);
    protobuf_text(pair, LABEL_NAME, name);
    protobuf_text(pair, LABEL_VALUE, value);
    protobuf_message(series, SERIES_LABELS, pair);
}

/* The same one whenever this delivery is sent again. */
static void put_id(char out[static 40], const struct delivery *delivery)
{
    uint64_t type = delivery->type.len > 0 ? str_hash(delivery->type) : 0;
    backend_uuid(out, hash_u64(delivery->identity ^ type),
                 hash_u64(delivery->start_wall_ns ^ hash_u64(delivery->identity)));
}

/* What the server calls a profile of this sample type. */
static struct str metric_of(struct str type)
{
    static const struct {
        const char *start, *name;
    } names[] = {{"heap", "memory"}, {"alloc", "memory"}, {"inuse", "memory"}, {"mutex", "mutex"}, {"lock", "mutex"},
                 {"block", "block"}, {"goroutine", "goroutines"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_starts(type, str_of(names[i].start))) {
            return str_of(names[i].name);
        }
    }
    return type.len > 0 ? type : STR("process_cpu");
}

static void put_push(const struct delivery *delivery, const struct labels *labels, struct buf *text)
{
    char id[40];
    struct buf series, part;
    size_t room = delivery->profile.len + 64 * 1024;
    buf_init(&series, room);
    buf_init(&part, room);
    put_pair(&series, &part, STR("__name__"), metric_of(delivery->type));
    /* else alloc_space and its like are taken for sums since a process began, and the first is only a base */
    put_pair(&series, &part, STR("__delta__"), STR("false"));
    for (size_t i = 0; i < labels->count; i++) {
        put_pair(&series, &part, span_of(text, labels->names[i]), span_of(text, labels->values[i]));
    }
    buf_clear(&part);
    put_id(id, delivery);
    protobuf_text(&part, SAMPLE_PROFILE, delivery->profile);
    protobuf_text(&part, SAMPLE_ID, str_of(id));
    protobuf_message(&series, SERIES_SAMPLES, &part);
    protobuf_message(text, PUSH_SERIES, &series);
    buf_release(&series);
    buf_release(&part);
}

/* ---- the old address: /ingest ---- */

/* "app{label=value,…}" knows no quoting, so what would end a value goes. */
static void put_app(struct buf *out, const struct labels *labels, const struct buf *text)
{
    struct str service = span_of(text, labels->values[0]);
    for (size_t i = 0; i < service.len; i++) {
        char c = service.ptr[i];
        buf_byte(out, is_name(c, false) || c == '.' || c == '-' || c == '/' ? c : '_');
    }
    for (size_t i = 1; i < labels->count; i++) {
        struct str value = span_of(text, labels->values[i]);
        buf_byte(out, i == 1 ? '{' : ',');
        buf_str(out, span_of(text, labels->names[i]));
        buf_byte(out, '=');
        for (size_t k = 0; k < value.len; k++) {
            char c = value.ptr[k];
            buf_byte(out, c == ',' || c == '}' || c == '{' || c == '=' ? '_' : c);
        }
    }
    buf_text(out, labels->count > 1 ? "}" : "");
}

static void put_ingest(const struct delivery *delivery, const struct labels *labels,
                       struct buf *text)
{
    struct buf app;
    buf_init(&app, LABELS_BYTES);
    put_app(&app, labels, text);
    buf_text(text, INGEST "?name=");
    escape_url(text, buf_slice(&app));
    text->failed |= app.failed;
    buf_release(&app);
    uint64_t until_ns = delivery->end_wall_ns + NS_PER_S - 1;
    buf_printf(text, "&from=%llu&until=%llu&format=pprof&spyName=" SPY,
               (unsigned long long)(delivery->start_wall_ns / NS_PER_S),
               (unsigned long long)(until_ns / NS_PER_S));
    if (delivery->frequency_hz != 0) {
        buf_printf(text, "&sampleRate=%u", delivery->frequency_hz);
    }
}

/* ---- both ---- */

struct places {
    struct span target, body, authorization;
};

static void put_request(const struct backend_context *context, const struct delivery *delivery,
                        struct buf *text, struct places *at)
{
    struct labels labels = {.count = 0};
    put_labels(context, &labels, text, NULL);
    at->authorization = backend_authorization(context, text);
    size_t start = text->len;
    if (context->fallback) {
        put_ingest(delivery, &labels, text);
        at->target = span_since(text, start);
        start = text->len;
        buf_str(text, delivery->profile);
    } else {
        buf_text(text, PUSH);
        at->target = span_since(text, start);
        start = text->len;
        put_push(delivery, &labels, text);
    }
    at->body = span_since(text, start);
}

static bool pyroscope_request(struct backend_context *context, const struct delivery *delivery,
                       struct http_request *out, struct buf *text, struct err *err)
{
    struct places at = {0};
    if (!backend_check_format("Pyroscope", "pprof", delivery, err)) {
        return false;
    }
    put_request(context, delivery, text, &at);
    if (!backend_post(out, text, at.target, at.body, err)) {
        return false;
    }
    struct str mime =
        context->fallback ? STR("application/octet-stream") : STR("application/proto");
    return http_add(out, STR("Content-Type"), mime, false) &&
           (context->fallback || http_add(out, STR("Connect-Protocol-Version"), STR("1"), false)) &&
           backend_add_headers(context, out, span_of(text, at.authorization), err);
}

/* The new address is unknown to servers before 1.0, and to what stands before some. */
static bool is_not_there(unsigned status)
{
    return status == 404 || status == 405 || status == 415 || status == 501;
}

/* Words tell limits of a profile and of a rate from what is wrong with it; older servers have
 * one status for all three. */
static enum verdict classify_words(enum verdict verdict, const struct http_response *response)
{
    if (verdict != VERDICT_REFUSED && verdict != VERDICT_LATER) {
        return verdict;
    }
    if (backend_says(response, "exceeds the size limit") ||
        backend_says(response, "exceeds the samples count limit") ||
        backend_says(response, "body size")) {
        return VERDICT_SMALLER;
    }
    bool is_rate = backend_says(response, "rate limit") || backend_says(response, "ingest limit");
    return is_rate ? VERDICT_LATER : verdict;
}

/* A 404 may be a moment of a deployment: the new address is asked for again after a window, after two, four … */
static void note_taken(struct backend_context *context, struct err *err)
{
    if (!context->fallback) {
        context->fallback_misses = 0;
        return;
    }
    err_set(err, ERR_NETWORK, 0,
            "Pyroscope at %.*s does not have " PUSH ", as those before 1.0; " INGEST " is used, where a window whose "
            "response is lost is there twice",
            (int)context->url.host.len, context->url.host.ptr);
    context->fallback = --context->fallback_left > 0;
}

static enum verdict pyroscope_classify(struct backend_context *context, const struct http_response *response,
                             struct err *err)
{
    enum verdict verdict = backend_classify(context, "Pyroscope", response, err);
    if (verdict == VERDICT_TAKEN) {
        note_taken(context, err);
        return verdict;
    }
    bool not_there = is_not_there(response->status) || backend_says(response, "\"unimplemented\"");
    if (not_there && !context->fallback) {
        context->fallback = true;
        context->fallback_left = 1u << context->fallback_misses;
        context->fallback_misses += context->fallback_misses < MISSES_MOST;
        return VERDICT_AGAIN;
    }
    if (not_there) {
        context->fallback = false; /* neither is there now: the new one is asked for first again */
    }
    return classify_words(verdict, response);
}

const struct backend backend_pyroscope = {
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
    .classify = pyroscope_classify,
    .omits = pyroscope_omits,
};
