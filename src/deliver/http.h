/*
 * http: one HTTP/1.1 request and its response over a stream.
 *
 * The request always tells its length and is written at once with its head; while it is being written, a response that
 * comes early is read (and the rest of the request is then not sent). A server that cuts the connection while
 * it is written to is still heard: its response, when there is one, is the result, not the broken pipe.
 * Answers: 1xx are skipped; chunked, by length, or until the end; heads up to 64 KiB; of the body at most
 * HTTP_BODY_MAX bytes (or as many as the request says) are kept, the rest is read and dropped (at most 1 MiB, then the
 * connection is given up).
 * A response whose head came is a response, `whole` or not (deliver/response.h).
 *
 * A GET or HEAD without a body has no Content-Length: none is expected, and some firewalls refuse it. A User-Agent,
 * Accept or Host among the headers takes the place of ours. What could be taken for a line of its own (CR, LF,
 * NUL, other controls) is refused in every part with ERR_USAGE, before anything is sent; so are Content-Length,
 * Connection and Transfer-Encoding among the headers.
 *
 * Errors: ERR_NETWORK when no response came; `sent` tells whether any byte of the request had gone out, `began`
 * whether any of the response had come: a connection that was kept and gives neither is simply stale. `out` can be
 * released whatever came of it.
 *
 * A stream whose write fails with EAGAIN has been left unharmed: something can be read meanwhile, and the rest is
 * written later (deliver/client.c makes its streams so, lest a server that answers and no longer reads holds us up).
 *
 * Source: RFC 9110, RFC 9112.
 */
#ifndef DELIVER_HTTP_H
#define DELIVER_HTTP_H

#include "base/iface.h"

enum { HTTP_BODY_MAX = 64 * 1024, HTTP_HEADERS_MAX = 24, HTTP_TEXT_MAX = 256 };

struct http_header {
    struct str name, value;
    bool secret; /* never shown */
};

struct http_request {
    const char *method;
    struct str target; /* "/api/v2/profiles?x=y", escaped already */
    struct str host;   /* for the Host header, with its port when that is not the usual one */
    struct http_header headers[HTTP_HEADERS_MAX]; /* besides Host, User-Agent, Accept, Content-Length, Connection */
    size_t header_count;
    struct str body;
    const char *watch; /* a field of the response's head that is wanted; null: none */
    size_t most_kept;  /* of the response's body; 0: HTTP_BODY_MAX */
};

struct http_response {
    unsigned status;
    char reason[HTTP_TEXT_MAX]; /* printable ASCII, what was not is '?' */
    char location[1024];     /* "" when none was given, or one that cannot be an address */
    uint64_t retry_after_ns; /* 0: not given; at most a day */
    char watched[64];        /* what the request watches for; "": it was not there */
    bool keeps;              /* the connection may carry another request */
    bool sent_all, sent, began;
    bool is_early;           /* it came before the whole request was on its way */
    bool by_proxy;           /* which read the request, and may have answered itself */
    bool whole;              /* the body came to its end; of it at most HTTP_BODY_MAX are kept */
    struct buf body;         /* what was kept of it; released with http_response_release */
};

/* Adds a header; false when there is no room. */
bool http_add(struct http_request *request, struct str name, struct str value, bool secret);

/* Could it be sent? http_exchange asks, too; a caller may want to know before it connects. */
bool http_check(const struct http_request *request, struct err *err);

/* wall_ns: now, for a Retry-After that is a date. */
bool http_exchange(struct stream *stream, const struct http_request *request, uint64_t wall_ns,
                   uint64_t deadline_ns, struct http_response *out, struct err *err);

/* The request as text with secrets starred out, the body as its length: for --dry-run. */
void http_show(const struct http_request *request, struct buf *out);

void http_response_release(struct http_response *response);

#endif
