/* Requests that carry pillion's messages to Performance Studio: a batch of lines as JSON,
 * compressed, secrets masked; and what its responses mean. Who sends them and when is
 * capture/upload/log_sender.c. */
#include "deliver/studio_logs.h"

#include "base/gzip.h"
#include "base/json.h"
#include "base/time.h"
#include "base/version.h"
#include "deliver/backend_private.h"

#define LOGS "/api/v1/logs"

enum { BODY_MAX_BYTES = 1024 * 1024, HIDDEN_LEAST = 4 };

/* ---- a message ---- */

/* At most so many bytes, never half a character. */
static struct str cut(struct str text, size_t most)
{
    if (text.len > most) {
        while (most > 0 && ((unsigned char)text.ptr[most] & 0xc0) == 0x80) {
            most--;
        }
        text.len = most;
    }
    return text;
}

static void put_member(struct buf *out, const char *name, struct str text)
{
    buf_printf(out, ", \"%s\": ", name);
    json_text(out, text);
}

static void put_extra(struct buf *out, const struct studio_log *log)
{
    buf_text(out, ", \"extra\": {\"event\": ");
    json_text(out, log->event);
    for (size_t i = 0; i < log->extra_count && i < STUDIO_EXTRA_MAX; i++) {
        buf_text(out, ", ");
        json_text(out, cut(log->extra[i].name, STUDIO_VALUE_MAX));
        buf_text(out, ": ");
        json_text(out, cut(log->extra[i].value, STUDIO_VALUE_MAX));
    }
    buf_byte(out, '}');
}

void studio_log_put(struct buf *out, const struct studio_log *log)
{
    char moment[TIME_TEXT_MAX];
    struct str message = cut(log->message, STUDIO_MESSAGE_MAX);
    unsigned long long ms = log->wall_ns / NS_PER_MS, us = log->wall_ns / NS_PER_US % 1000;
    time_rfc3339(log->wall_ns, moment);
    buf_printf(out, "{\"severity\": %d, \"timestamp\": %llu.%03llu", (int)log->severity, ms, us);
    buf_printf(out, ", \"text\": {\"logger_name\": \"pillion\", \"serial_no\": %llu",
               (unsigned long long)log->number);
    put_member(out, "message", message);
    put_member(out, "timestamp", str_of(moment));
    put_extra(out, log);
    buf_text(out, message.len < log->message.len ? ", \"truncated\": true}}" : "}}");
}

/* ---- a batch ---- */

static void put_hex(char *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * count] = '\0';
}

void studio_batch_id(const unsigned char random[static 16], char out[static STUDIO_BATCH_ID_MAX])
{
    put_hex(out, random, 16);
}

/* RFC 9562: 8-4-4-4-12 digits; the version is 4, the variant's two bits are 10. */
void studio_run_id(const unsigned char random[static 16], char out[static STUDIO_RUN_ID_MAX])
{
    static const unsigned char groups[] = {4, 2, 2, 2, 6};
    unsigned char bytes[16];
    memcpy(bytes, random, sizeof bytes);
    bytes[6] = (unsigned char)(0x40 | (bytes[6] & 0x0f));
    bytes[8] = (unsigned char)(0x80 | (bytes[8] & 0x3f));
    for (size_t i = 0, from = 0; i < sizeof groups; from += groups[i++]) {
        put_hex(out, bytes + from, groups[i]);
        out += 2 * groups[i];
        *out++ = '-';
    }
    out[-1] = '\0';
}

/* As it would stand in JSON. A short one would star out half of every message. */
static void hide(struct buf *out, size_t from, struct str secret)
{
    struct buf escaped;
    buf_init(&escaped, 0);
    if (secret.len >= HIDDEN_LEAST) {
        escaped.max = 6 * secret.len + 1;
        json_escaped(&escaped, secret);
        backend_hide(out, from, buf_slice(&escaped));
    }
    buf_release(&escaped);
}

static void put_batch(struct buf *out, const struct backend_context *context,
                      const struct studio_batch *batch)
{
    const struct origin *origin = context->origin;
    buf_printf(out, "{\"batch_id\": \"%s\", \"metadata\": {\"run_id\": \"%s\"", batch->id,
               batch->run_id);
    put_member(out, "gprofiler_version", STR("pillion " PILLION_VERSION));
    put_member(out, "service_name", origin->service);
    if (origin->hostname.len > 0) {
        put_member(out, "hostname", origin->hostname);
    }
    buf_printf(out, "}, \"lost_logs_count\": %llu, \"logs\": [", (unsigned long long)batch->lost);
    size_t from = out->len;
    buf_str(out, batch->records);
    /* Nobody writes them into a message; of a mistake nothing could be taken back. */
    hide(out, from, context->token);
    for (size_t i = 0; i < context->header_count; i++) {
        hide(out, from, context->headers[i].value);
    }
    buf_text(out, "]}");
}

static bool pack(struct str plain, struct buf *out, struct err *err)
{
    struct gzip gzip;
    struct sink packed = sink_of_buf(out);
    if (!gzip_open_quick(&gzip, &packed, err)) {
        return false;
    }
    struct sink to = gzip_sink(&gzip);
    bool ok = sink_write(&to, plain.ptr, plain.len, err) && gzip_finish(&gzip, err);
    gzip_release(&gzip);
    return ok;
}

bool studio_logs_request(struct backend_context *context, const struct studio_batch *batch,
                         struct http_request *out, struct buf *text, struct err *err)
{
    struct buf plain;
    *out = (struct http_request){.method = "POST", .target = STR(LOGS)};
    buf_init(&plain, BODY_MAX_BYTES);
    put_batch(&plain, context, batch);
    bool ok = plain.failed ? err_set(err, ERR_MEMORY, 0, "no memory for a batch of messages")
                           : pack(buf_slice(&plain), text, err);
    buf_release(&plain);
    if (!ok) {
        return false;
    }
    out->body = buf_slice(text);
    return backend_check_header("the token", context->token, err) &&
           http_add(out, STR("Content-Type"), STR("application/json"), false) &&
           http_add(out, STR("Content-Encoding"), STR("gzip"), false) &&
           http_add(out, STR("X-Application-Name"), STR("gprofiler"), false) &&
           http_add(out, STR("X-Token"), context->token, true) &&
           backend_add_headers(context, out, STR(""), err);
}

/* ---- the response ---- */

bool studio_logs_are_taken(unsigned status)
{
    return status != 404 && status != 405 && status != 410 && status != 501;
}

enum verdict studio_logs_classify(struct backend_context *context, const struct http_response *response,
                               struct err *err)
{
    enum verdict verdict = backend_classify(context, "the studio's log service", response, err);
    return verdict == VERDICT_SMALLER ? VERDICT_REFUSED : verdict; /* a batch is small already */
}
