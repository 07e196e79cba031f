/* One HTTP/1.1 request over a stream: writes head and body, listens for an early response
 * meanwhile, and reads the response through response.c. Headers are checked so that no value can
 * add a line of its own. */
#include "deliver/http.h"
#include "base/version.h"
#include "deliver/response.h"
#include "base/ascii.h"

#include <errno.h>

enum {
    FIRST_MAX = 16 * 1024, /* of the body, sent with the head: one packet or record less */
    PIECE_MAX = 64 * 1024, /* written before it is asked again whether a response came */
    READ_MAX = 16 * 1024,
    HEAD_USUAL = 8 * 1024,
    HEAD_MAX = 64 * 1024,
};

bool http_add(struct http_request *request, struct str name, struct str value, bool secret)
{
    if (request->header_count >= HTTP_HEADERS_MAX) {
        return false;
    }
    request->headers[request->header_count++] = (struct http_header){name, value, secret};
    return true;
}

/* ---- what may be sent ---- */

static bool is_token(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!ascii_is_alnum(c) && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL)) {
            return false;
        }
    }
    return text.len > 0;
}

/* Visible bytes, those beyond ASCII, blanks and tabs: all but what ends a line or a text somewhere. */
static bool is_value(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is_visible(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_visible(text.ptr[i])) {
            return false;
        }
    }
    return text.len > 0;
}

static bool is_framing(struct str name)
{
    return ascii_same(name, STR("content-length")) || ascii_same(name, STR("transfer-encoding")) ||
           ascii_same(name, STR("connection"));
}

static bool check_header(const struct http_header *header, struct err *err)
{
    if (!is_token(header->name)) {
        return err_set(err, ERR_USAGE, 0, "a header's name contains an invalid byte");
    }
    int len = (int)(header->name.len < 80 ? header->name.len : 80);
    if (!is_value(header->value)) {
        return err_set(err, ERR_USAGE, 0,
                       "the value of the header %.*s has a line end or another control character in it",
                       len, header->name.ptr);
    }
    if (is_framing(header->name)) {
        return err_set(err, ERR_USAGE, 0, "the header %.*s is not for others to set", len,
                       header->name.ptr);
    }
    return true;
}

bool http_check(const struct http_request *request, struct err *err)
{
    if (!is_token(str_of(request->method)) || !is_visible(request->target) ||
        !is_visible(request->host) || request->header_count > HTTP_HEADERS_MAX) {
        return err_set(err, ERR_USAGE, 0,
                       "the method, the host or the path of a request is empty or has a blank or a "
                       "control character in it");
    }
    for (size_t i = 0; i < request->header_count; i++) {
        if (!check_header(&request->headers[i], err)) {
            return false;
        }
    }
    return true;
}

static bool has_header(const struct http_request *request, struct str name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (ascii_same(request->headers[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* ---- the head ---- */

static void add_line(struct buf *out, struct str name, struct str value, const char *line_end)
{
    buf_str(out, name);
    buf_text(out, ": ");
    buf_str(out, value);
    buf_text(out, line_end);
}

static void add_length(struct buf *out, const struct http_request *request, const char *line_end)
{
    bool expects_none =
        strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    bool tunnel = strcmp(request->method, "CONNECT") == 0;
    if (!tunnel && (request->body.len > 0 || !expects_none)) {
        buf_printf(out, "Content-Length: %zu%s", request->body.len, line_end);
    }
}

static void add_head(struct buf *out, const struct http_request *request, bool shown)
{
    const char *line_end = shown ? "\n" : "\r\n";
    buf_text(out, request->method);
    buf_byte(out, ' ');
    buf_str(out, request->target);
    buf_text(out, " HTTP/1.1");
    buf_text(out, line_end);
    if (!has_header(request, STR("host"))) {
        add_line(out, STR("Host"), request->host, line_end);
    }
    if (!has_header(request, STR("user-agent"))) {
        add_line(out, STR("User-Agent"), STR("pillion/" PILLION_VERSION), line_end);
    }
    if (!has_header(request, STR("accept"))) {
        add_line(out, STR("Accept"), STR("*/*"), line_end);
    }
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        bool hidden = shown && header->secret;
        add_line(out, header->name, hidden ? STR("***") : header->value, line_end);
    }
    add_length(out, request, line_end);
    buf_text(out, line_end);
}

void http_show(const struct http_request *request, struct buf *out)
{
    struct err err = {0};
    if (!http_check(request, &err)) {
        buf_printf(out, "(a request that is not sent: %s)\n", err.text);
        return;
    }
    add_head(out, request, true);
    if (request->body.len > 0) {
        buf_printf(out, "(%zu bytes)\n", request->body.len);
    }
}

/* ---- the exchange ---- */

struct exchange {
    struct stream *stream;
    uint64_t deadline_ns;
    struct response response;
    struct buf first; /* the head and the beginning of the body */
    struct str rest;  /* of the body */
    bool over;        /* the response is complete or no more of it can come */
    bool in_order;    /* and the other side ended in order */
    struct err trouble; /* why not */
};

static void note(struct exchange *x, const struct err *err)
{
    if (x->trouble.kind == ERR_NONE) {
        x->trouble = *err;
    }
}

static void read_some(struct exchange *x)
{
    char bytes[READ_MAX];
    struct err err = {0};
    ptrdiff_t got = x->stream->read(x->stream->context, bytes, sizeof bytes, x->deadline_ns, &err);
    if (got > 0) {
        enum response_state state =
            response_feed(&x->response, (struct str){bytes, (size_t)got}, &err);
        x->over = state != RESPONSE_MORE;
        if (state == RESPONSE_BAD) {
            x->trouble = err; /* tells more than a write that failed before */
        }
        return;
    }
    x->over = true;
    x->in_order = got == 0;
    if (got < 0 && err.number == EPROTONOSUPPORT) {
        x->trouble = err; /* the server's refusal tells more, too */
    } else if (got < 0) {
        note(x, &err);
    }
}

/* All of it, or what the other side takes until it answers or cuts the connection. */
static bool write_all(struct exchange *x, struct str bytes)
{
    while (bytes.len > 0 && !x->over) {
        struct err err = {0};
        if (x->stream->readable(x->stream->context)) {
            read_some(x);
            continue;
        }
        size_t len = bytes.len < PIECE_MAX ? bytes.len : PIECE_MAX;
        ptrdiff_t put =
            x->stream->write(x->stream->context, bytes.ptr, len, x->deadline_ns, &err);
        if (put < 0 && err.number == EAGAIN) {
            continue;
        }
        if (put <= 0) {
            note(x, &err);
            x->over = err.number == ECANCELED; /* else a response may have come before the cut */
            return false;
        }
        x->response.out->sent = true;
        bytes = str_sub(bytes, (size_t)put, bytes.len);
    }
    return bytes.len == 0;
}

static bool prepare(struct exchange *x, const struct http_request *request, struct err *err)
{
    size_t with_head = request->body.len < FIRST_MAX ? request->body.len : FIRST_MAX;
    buf_init(&x->first, HEAD_MAX + FIRST_MAX);
    /* At once: a buffer that grows leaves copies behind, and header values may be secrets. */
    (void)buf_room(&x->first, HEAD_USUAL + with_head);
    add_head(&x->first, request, false);
    buf_str(&x->first, str_sub(request->body, 0, with_head));
    x->rest = str_sub(request->body, with_head, request->body.len);
    if (x->first.failed) {
        return err_set(err, ERR_LIMIT, 0, "the headers of a request are more than 64 KiB");
    }
    return true;
}

static bool why_none(struct exchange *x, struct err *err)
{
    const struct http_response *out = x->response.out;
    if (x->trouble.kind == ERR_NONE) {
        return err_set(err, ERR_NETWORK, ECONNRESET, "the connection was closed %s",
                       out->began ? "in the middle of the response's headers"
                       : out->sent_all ? "instead of a response"
                                       : "before the whole request was sent, without a response");
    }
    if (err != NULL) {
        *err = x->trouble;
    }
    return false;
}

bool http_exchange(struct stream *stream, const struct http_request *request, uint64_t wall_ns,
                   uint64_t deadline_ns, struct http_response *out, struct err *err)
{
    struct exchange x = {.stream = stream, .deadline_ns = deadline_ns};
    response_init(&x.response, out, request->method, wall_ns);
    x.response.watch = str_of(request->watch);
    if (request->most_kept > 0) {
        buf_init(&out->body, request->most_kept);
    }
    if (!http_check(request, err) || !prepare(&x, request, err)) {
        buf_wipe(&x.first);
        return false;
    }
    out->sent_all = write_all(&x, buf_slice(&x.first)) && write_all(&x, x.rest);
    buf_wipe(&x.first);
    while (!x.over) {
        read_some(&x);
    }
    bool answered = response_end(&x.response, x.in_order);
    response_release(&x.response);
    out->is_early = answered && !out->sent_all;
    out->keeps = out->keeps && out->sent_all && x.trouble.kind == ERR_NONE;
    return answered ? true : why_none(&x, err);
}

void http_response_release(struct http_response *response)
{
    buf_release(&response->body);
}
