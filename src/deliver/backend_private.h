/*
 * backend_private: what the rows' files have in common, and the parts of those that are two files.
 *
 * A request's own texts lie in one buf, which moves while it grows: a `span` remembers where a text
 * is, and becomes a slice once all is written.
 */
#ifndef DELIVER_BACKEND_PRIVATE_H
#define DELIVER_BACKEND_PRIVATE_H

#include "deliver/backend.h"

bool datadog_address(struct backend_context *context, const struct backend_place *place,
                     struct buf *out, struct err *err);
void datadog_omits(const struct backend_context *context, struct omissions *out);
void studio_omits(const struct backend_context *context, struct omissions *out);

/* Datadog's event.json: what the profiles are of, and the names of their files: of the delivery's at-th, 0 being the
 * first. */
enum { DATADOG_NAME_MAX = 64 };
void datadog_name(const struct delivery *delivery, size_t at, char out[static DATADOG_NAME_MAX]);
void datadog_event(struct buf *out, const struct backend_context *context, const struct delivery *delivery);

/* The header line of collapsed stacks as the studio wants it: with every fact about where they
 * come from. `line` is the one that is there, without its line end; empty: there is none. */
void studio_header(struct buf *out, struct str line, const struct backend_context *context,
                   const struct delivery *delivery);

/* What is known of the cloud and the container, as an object with the names that it gives them. */
void studio_cloud(struct buf *out, const struct origin *origin);

struct span {
    size_t at, len;
};

/* What was appended to `text` since it was `at` bytes long. */
static inline struct span span_since(const struct buf *text, size_t at)
{
    return (struct span){at, text->len - at};
}

static inline struct str span_of(const struct buf *text, struct span span)
{
    return (struct str){text->ptr + span.at, span.len};
}

/* False, with the reason, when a delivery is not of the format that the service takes. */
bool backend_check_format(const char *title, const char *format, const struct delivery *delivery, struct err *err);

/* Makes a POST, as yet without headers, of what stands at these places in `text`; false when that
 * became larger than it may. */
bool backend_post(struct http_request *out, const struct buf *text, struct span target,
                  struct span body, struct err *err);

/* False, with the reason, when a text cannot be a header's value. `what` names it: "the token". */
bool backend_check_header(const char *what, struct str value, struct err *err);

/* Did the user give this header? */
bool backend_is_given(const struct backend_context *context, const char *name);

/* Writes what an Authorization header says of the context's token: "user:password" is Basic,
 * else Bearer; nothing without a token, or where the user gave such a header. */
struct span backend_authorization(const struct backend_context *context, struct buf *text);

/* Adds the headers that the user gave, the authorization when it is not empty, and a tenant. */
bool backend_add_headers(const struct backend_context *context, struct http_request *out,
                         struct str authorization, struct err *err);

/* What the server says in words: the "message" of a JSON object, a JSON string, or a line of
 * text; "" for a page. The token never stands in it. */
enum { BACKEND_MESSAGE_MAX = 160 };
void backend_message(const struct backend_context *context, const struct http_response *response,
                     char out[static BACKEND_MESSAGE_MAX]);

/* Puts stars where the secret stands in what was appended since the text was `from` bytes long. */
void backend_hide(struct buf *text, size_t from, struct str secret);

/* Do these words stand anywhere in the response? */
bool backend_says(const struct http_response *response, const char *words);

/* What a status means to most services, and the sentence for it. */
enum verdict backend_classify(const struct backend_context *context, const char *title,
                           const struct http_response *response, struct err *err);

/* The same verdicts' sentence with a remedy of one's own; "" for none. */
void backend_blame(const struct backend_context *context, const char *title,
                   const struct http_response *response, const char *remedy, struct err *err);

/* A UUID of these bits; version 8: of one's own making (RFC 9562 5.8). */
void backend_uuid(char out[static 40], uint64_t one, uint64_t two);

/* Notes that the fact is omitted, unless `why` is null; `out` may be null. */
void backend_omit(struct omissions *out, const struct fact *fact, bool is_tag, const char *why);

/* The value of the named argument or tag; empty when it is not there. */
const struct fact *backend_fact(const struct fact *facts, size_t count, struct str name);

#endif
