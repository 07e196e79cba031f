/* What the responses of several services have in common: which status means what, the words in which a server
 * explains itself, and that no secret it was sent comes back in them. The rows' files call it; it
 * knows none of them. */
#include "deliver/backend_private.h"

#include "base/json.h"

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

void backend_message(const struct backend_context *context, const struct http_response *response,
                     char out[static BACKEND_MESSAGE_MAX])
{
    struct str body = str_trim(buf_slice(&response->body));
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

bool backend_says(const struct http_response *response, const char *words)
{
    return response->body.len > 0 &&
           memmem(response->body.ptr, response->body.len, words, strlen(words)) != NULL;
}

struct meaning {
    unsigned status;
    enum verdict verdict;
    const char *remedy;
};

static const struct meaning meanings[] = {
    {401, VERDICT_CONFIG, "the token is missing or wrong (--token-file)"},
    {403, VERDICT_CONFIG, "the token does not allow this"},
    {404, VERDICT_CONFIG, "nothing is served at this address (--server-host)"},
    {405, VERDICT_CONFIG, "this address does not accept profiles (--server-host)"},
    {407, VERDICT_CONFIG, "a proxy requires a user and a password (https_proxy)"},
    {408, VERDICT_LATER, "it timed out waiting for the request"},
    {410, VERDICT_CONFIG, "this address is no longer served (--server-host)"},
    {411, VERDICT_CONFIG, "the request's length was removed on the way, perhaps by a proxy"},
    {413, VERDICT_SMALLER, "the request is too large"},
    {425, VERDICT_LATER, ""},
    {429, VERDICT_LATER, "it limits the rate of requests"},
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
                   const struct http_response *response, const char *remedy, struct err *err)
{
    char message[BACKEND_MESSAGE_MAX];
    backend_message(context, response, message);
    err_set(err, ERR_NETWORK, 0, "%s at %.*s answered %u%s%s%s%s", title,
            (int)context->url.host.len, context->url.host.ptr, response->status,
            message[0] != '\0' ? ": " : "", message, remedy[0] != '\0' ? "; " : "", remedy);
}

enum verdict backend_classify(const struct backend_context *context, const char *title,
                           const struct http_response *response, struct err *err)
{
    struct meaning meaning = meaning_of(response->status);
    if (meaning.verdict == VERDICT_TAKEN && response->is_early) {
        meaning = (struct meaning){response->status, VERDICT_LATER, "it came before the whole request was sent"};
    }
    if (response->status == 403 && response->by_proxy) {
        meaning.remedy = "the proxy does not allow this address, or the service not this token";
    }
    if (meaning.verdict != VERDICT_TAKEN) {
        backend_blame(context, title, response, meaning.remedy, err);
    }
    return meaning.verdict;
}
