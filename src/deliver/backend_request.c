/* What the requests of several back ends have in common: headers, authorization, a format that
 * fits, identifiers, and what of the origin a request leaves out. The rows' files call it; it knows none
 * of them. */
#include "deliver/backend_private.h"

#include "deliver/escape.h"

#include <stdio.h>
#include <strings.h>

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
           err_set(err, ERR_USAGE, 0, "%s accepts %s, not %.*s", title, format, (int)delivery->format.len,
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
