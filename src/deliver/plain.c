/* The back end http: PUT or POST of a profile to any address, whose path may name the window's
 * times, service, host, format and number in braces. Servers of one's own, object stores with
 * signed addresses. Further profiles of a window get a place of their own. */
#include "deliver/backend_private.h"

#include "base/time.h"
#include "deliver/escape.h"

/* "20261120T103104Z": nothing in it has to be escaped. */
static void put_moment(struct buf *out, uint64_t wall_ns)
{
    char text[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, text);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c != '-' && *c != ':') {
            buf_byte(out, *c);
        }
    }
    buf_byte(out, 'Z');
}

/* False: there is no such name. */
static bool put_named(struct buf *out, struct str name, const struct backend_context *context,
                      const struct delivery *delivery)
{
    if (str_eq(name, STR("start"))) {
        put_moment(out, delivery->start_wall_ns);
    } else if (str_eq(name, STR("end"))) {
        put_moment(out, delivery->end_wall_ns);
    } else if (str_eq(name, STR("service"))) {
        escape_url(out, context->origin->service);
    } else if (str_eq(name, STR("host"))) {
        escape_url(out, context->origin->hostname);
    } else if (str_eq(name, STR("format"))) {
        escape_url(out, delivery->type);
        buf_text(out, delivery->type.len > 0 ? "." : "");
        escape_url(out, delivery->format);
    } else if (str_eq(name, STR("type"))) {
        escape_url(out, delivery->type.len > 0 ? delivery->type : STR("cpu"));
    } else if (str_eq(name, STR("sequence"))) {
        buf_printf(out, "%llu", (unsigned long long)delivery->sequence);
    } else {
        return false;
    }
    return true;
}

/* A bracket that names nothing stays, as an address may hold it (escaped). */
static void put_path(struct buf *out, struct str rest, const struct backend_context *context,
                     const struct delivery *delivery)
{
    while (rest.len > 0) {
        size_t open = str_find(rest, '{'), close = str_find(rest, '}');
        buf_str(out, str_sub(rest, 0, open));
        bool is_name = open < close && close < rest.len &&
                       put_named(out, str_sub(rest, open + 1, close - open - 1), context, delivery);
        if (!is_name && open < rest.len) {
            buf_text(out, "%7B");
        }
        rest = str_sub(rest, is_name ? close + 1 : open + 1, rest.len);
    }
}

static bool names(struct str path, const char *what)
{
    return path.len > 0 && memmem(path.ptr, path.len, what, strlen(what)) != NULL;
}

static struct span put_target(struct backend_context *context, const struct delivery *delivery,
                              struct buf *text)
{
    size_t at = text->len;
    if (context->url.path.len > 0) { /* the first time, and when the address was read anew */
        context->path = context->url.path;
        context->url.path = STR("");
    }
    struct str rest = context->path, path = str_cut(&rest, '?');
    put_path(text, path, context, delivery);
    if (text->len == at) {
        buf_byte(text, '/');
    }
    /* no profile is put over another one of the window */
    if (delivery->type.len > 0 && !delivery->is_raw && !names(path, "{type}") && !names(path, "{format}")) {
        buf_byte(text, '.');
        escape_url(text, delivery->type);
    }
    put_path(text, str_sub(context->path, path.len, context->path.len), context, delivery);
    return span_since(text, at);
}

static bool plain_request(struct backend_context *context, const struct delivery *delivery,
                   struct http_request *out, struct buf *text, struct err *err)
{
    bool is_post = str_eq(context->method, STR("POST"));
    if (!is_post && context->method.len > 0 && !str_eq(context->method, STR("PUT"))) {
        return err_set(err, ERR_USAGE, 0, "a profile is sent with PUT or POST, not %.*s",
                       (int)context->method.len, context->method.ptr);
    }
    *out = (struct http_request){.method = is_post ? "POST" : "PUT", .body = delivery->profile};
    struct span target = put_target(context, delivery, text);
    struct span authorization = backend_authorization(context, text);
    struct str mime = delivery->mime.len > 0 ? delivery->mime : STR("application/octet-stream");
    if (text->failed) {
        return err_set(err, ERR_LIMIT, 0, "the address is larger than %zu bytes", text->max);
    }
    out->target = span_of(text, target);
    return http_add(out, STR("Content-Type"), mime, false) &&
           backend_add_headers(context, out, span_of(text, authorization), err);
}

static enum verdict plain_classify(struct backend_context *context, const struct http_response *response,
                         struct err *err)
{
    return backend_classify(context, "the server", response, err);
}

const struct backend backend_http = {
    .name = "http",
    .title = "HTTP",
    .format = "pprof",
    .default_port = 80,
    .names_host = true,
    .takes_headers = true,
    .request = plain_request,
    .classify = plain_classify,
};
