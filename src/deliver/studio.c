/* The back end Performance Studio: collapsed stacks in a JSON object, compressed while it is
 * written, with the header that it requires (studio_header.c); and what its responses mean, which
 * use status 400 for much. */
#include "deliver/backend_private.h"

#include "base/gzip.h"
#include "base/json.h"
#include "base/time.h"
#include "deliver/escape.h"

#include <stdio.h>

enum {
    PART_BYTES = 64 * 1024,         /* of the body before it is compressed, at a time */
    PART_MAX_BYTES = 200 * 1024 * 1024, /* one line of the largest kind, every character escaped */
};

#define PROFILES "/api/v2/profiles"
#define HEALTH "/api/v1/health_check"
#define OUR_VERSION "1.2.3" /* as in the header: an agent's, three numbers */

static struct str service_of(const struct backend_context *context)
{
    struct str service = context->origin->service;
    return service.len > 0 ? service : STR("unknown");
}

/* ---- the body ---- */

static void put_member(struct buf *out, const char *name, struct str text)
{
    buf_printf(out, ", \"%s\": ", name);
    json_text(out, text);
}

static void put_moment(struct buf *out, const char *name, uint64_t wall_ns)
{
    char text[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, text);
    put_member(out, name, str_of(text));
}

static void put_percent(struct buf *out, const char *name, double percent)
{
    if (percent < 0) {
        buf_printf(out, ", \"%s\": null", name);
    } else {
        buf_printf(out, ", \"%s\": %.2f", name, percent);
    }
}

static void put_members(struct buf *out, const struct backend_context *context,
                        const struct delivery *delivery)
{
    char start[TIME_TEXT_MAX];
    time_iso_seconds(delivery->start_wall_ns, start);
    buf_printf(out, "{\"start_time\": \"%s\"", start);
    put_moment(out, "end_time", delivery->end_wall_ns);
    put_member(out, "gpid", str_of(context->gpid));
    put_member(out, "hostname", context->origin->hostname);
    put_moment(out, "spawn_time", context->origin->spawn_wall_ns);
    put_percent(out, "cpu_avg", delivery->cpu_percent);
    put_percent(out, "mem_avg", delivery->memory_percent);
    buf_text(out, ", \"profile\": \"");
}

static bool flush(struct sink *to, struct buf *part, struct err *err)
{
    if (part->failed) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a part of %zu bytes", part->len);
    }
    bool ok = sink_write(to, part->ptr, part->len, err);
    buf_clear(part);
    return ok;
}

/* The first line is written anew; of the others a part at a time is escaped and compressed. */
static bool write_body(const struct backend_context *context, const struct delivery *delivery,
                       struct sink *to, struct buf *part, struct err *err)
{
    struct str rest = delivery->profile, line = {NULL, 0};
    struct buf header;
    if (str_starts(rest, STR("#"))) {
        line = str_cut(&rest, '\n');
    }
    buf_init(&header, PART_MAX_BYTES);
    studio_header(&header, line, context, delivery);
    put_members(part, context, delivery);
    json_escaped(part, buf_slice(&header));
    part->failed |= header.failed;
    buf_release(&header);
    bool ok = true;
    while (ok && rest.len > 0) {
        buf_text(part, "\\n");
        json_escaped(part, str_cut(&rest, '\n'));
        ok = part->len < PART_BYTES || flush(to, part, err);
    }
    buf_text(part, "\"}");
    return ok && flush(to, part, err);
}

static bool add_body(const struct backend_context *context, const struct delivery *delivery,
                     struct buf *text, struct err *err)
{
    struct gzip gzip;
    struct sink packed = sink_of_buf(text);
    if (!gzip_open_quick(&gzip, &packed, err)) {
        return false;
    }
    struct sink plain = gzip_sink(&gzip);
    struct buf part;
    buf_init(&part, PART_MAX_BYTES);
    bool ok = write_body(context, delivery, &plain, &part, err) && gzip_finish(&gzip, err);
    buf_release(&part);
    gzip_release(&gzip);
    return ok;
}

/* ---- the request ---- */

static void put_parameter(struct buf *out, const char *name, struct str value)
{
    buf_text(out, name);
    escape_url(out, value);
}

/* The token stands in the header alone: addresses are logged by whoever passes them on. */
static struct span put_target(const struct backend_context *context, const char *path,
                              uint64_t moment_ns, struct buf *text)
{
    size_t at = text->len;
    char moment[TIME_TEXT_MAX];
    time_iso_seconds(moment_ns, moment);
    buf_text(text, path);
    put_parameter(text, "?service=", service_of(context));
    put_parameter(text, "&hostname=", context->origin->hostname);
    put_parameter(text, "&timestamp=", str_of(moment));
    buf_text(text, "&version=" OUR_VERSION);
    return span_since(text, at);
}

/* The studio reduces a service's name to letters, digits and "_.-"; what a header could not hold
 * goes before. */
static struct span put_service(const struct backend_context *context, struct buf *text)
{
    size_t at = text->len;
    struct str service = service_of(context);
    for (size_t i = 0; i < service.len; i++) {
        char c = service.ptr[i];
        buf_byte(text, c > ' ' && c < 0x7f ? c : '_');
    }
    return span_since(text, at);
}

struct places {
    struct span target, service, body;
};

static bool finish(const struct backend_context *context, struct http_request *out,
                   const struct buf *text, const struct places *at, struct err *err)
{
    if (text->failed) {
        return err_set(err, ERR_LIMIT, 0, "the request is larger than %zu bytes", text->max);
    }
    out->target = span_of(text, at->target);
    out->body = span_of(text, at->body);
    return backend_check_header("the token", context->token, err) &&
           (http_add(out, STR("GPROFILER-API-KEY"), context->token, true) &&
            http_add(out, STR("GPROFILER-SERVICE-NAME"), span_of(text, at->service), false)) &&
           backend_add_headers(context, out, STR(""), err);
}

static bool studio_request(struct backend_context *context, const struct delivery *delivery,
                    struct http_request *out, struct buf *text, struct err *err)
{
    struct places at;
    if (!str_eq(delivery->format, STR("col"))) {
        return err_set(err, ERR_USAGE, 0,
                       "Performance Studio accepts collapsed stacks (.col), not %.*s",
                       (int)delivery->format.len, delivery->format.ptr);
    }
    *out = (struct http_request){.method = "POST"};
    at.target = put_target(context, PROFILES, delivery->start_wall_ns, text);
    at.service = put_service(context, text);
    size_t body = text->len;
    if (!add_body(context, delivery, text, err)) {
        return false;
    }
    at.body = span_since(text, body);
    return http_add(out, STR("Content-Type"), STR("application/json"), false) &&
           http_add(out, STR("Content-Encoding"), STR("gzip"), false) &&
           finish(context, out, text, &at, err);
}

static bool studio_health(struct backend_context *context, struct http_request *out, struct buf *text,
                   struct err *err)
{
    struct places at = {0};
    *out = (struct http_request){.method = "GET"};
    at.target = put_target(context, HEALTH, context->now_wall_ns, text);
    at.service = put_service(context, text);
    return finish(context, out, text, &at, err);
}

/* ---- the response ---- */

/* A number, whether it is written as one or as a text; anything else is not remembered. */
static void keep_gpid(struct backend_context *context, struct str body)
{
    struct str value = json_valid(body) ? json_member(body, "gpid") : (struct str){NULL, 0};
    bool is_text = value.len > 1 && value.ptr[0] == '"';
    struct str digits = is_text ? str_sub(value, 1, value.len - 2) : value;
    uint64_t number;
    if (str_u64(digits, &number)) {
        snprintf(context->gpid, sizeof context->gpid, "%llu", (unsigned long long)number);
    }
}

/* 400 stands for much: words tell what somebody has to change from what is wrong with this
 * profile. The last is sent when the profile was stored already. */
static enum verdict classify_400(enum verdict verdict, const struct http_response *response)
{
    if (backend_says(response, "Invalid API key") ||
        (backend_says(response, "Invalid ") && backend_says(response, " header"))) {
        return VERDICT_CONFIG;
    }
    return backend_says(response, "Failed to register the new service") ? VERDICT_TAKEN : verdict;
}

static enum verdict studio_classify(struct backend_context *context, const struct http_response *response,
                          struct err *err)
{
    enum verdict verdict = backend_classify(context, "Performance Studio", response, err);
    if (verdict == VERDICT_TAKEN) {
        keep_gpid(context, buf_slice(&response->body));
        return verdict;
    }
    bool had_gpid = context->gpid[0] != '\0';
    context->gpid[0] = '\0';
    if (response->status != 400) {
        return verdict;
    }
    verdict = classify_400(verdict, response);
    /* It may have been the id, which the server has forgotten. */
    return verdict == VERDICT_REFUSED && had_gpid ? VERDICT_AGAIN : verdict;
}

const struct backend backend_studio = {
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
    .classify = studio_classify,
    .health = studio_health,
    .omits = studio_omits,
};
