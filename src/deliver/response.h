/*
 * response: an HTTP/1.1 response, taken in as it comes.
 *
 * Bytes are given in pieces of any length; no byte is read twice. Interim answers (1xx) are passed over. As
 * soon as the final head is there the response counts: a body that is cut, malformed or too long takes nothing from
 * its status, it only leaves `whole` false and the connection useless.
 *
 * What a server can make us hold or read is bounded: RESPONSE_HEADS_MAX bytes for all heads together, trailers
 * and chunk sizes being counted as body; of the body HTTP_BODY_MAX are kept and RESPONSE_DROP_MAX more are read.
 *
 *     response_init(&a, &out, method, wall_ns)
 *     response_feed(&a, bytes, &err)     until it is not RESPONSE_MORE
 *     response_end(&a, in_order)         when the stream ended or failed before that
 *     response_release(&a)
 *
 * A head that is malformed is RESPONSE_BAD. So is one with both a length and chunks, which RFC 9112, 6.3, takes for an
 * attempt to smuggle another response in, and one whose lengths differ.
 *
 * Source: RFC 9112, 2 to 7; RFC 9110, 5.6.7 (dates), 10.2.3 (Retry-After).
 */
#ifndef DELIVER_RESPONSE_H
#define DELIVER_RESPONSE_H

#include "deliver/http.h"

enum { RESPONSE_HEADS_MAX = 64 * 1024, RESPONSE_DROP_MAX = 1024 * 1024 };

enum response_state { RESPONSE_MORE, RESPONSE_DONE, RESPONSE_BAD };

struct response {
    struct http_response *out;
    const char *method;
    struct str watch; /* the name of a field that is copied to out->watched; empty: none */
    uint64_t wall_ns;
    int step;            /* enum step of response.c */
    struct buf head;     /* of the head that is coming in */
    size_t heads;        /* bytes of all heads so far */
    size_t line;         /* bytes of the present line, without its end */
    uint64_t left;       /* of the body or of the chunk */
    unsigned digits;     /* of the chunk's size */
    size_t passed;       /* bytes behind the head */
    bool chunked, coded, has_length, close, stays_open, is_10;
    uint64_t length;
};

void response_init(struct response *a, struct http_response *out, const char *method, uint64_t wall_ns);
enum response_state response_feed(struct response *a, struct str bytes, struct err *err);

/* Is there a response? Completes it when there is. in_order: the other side ended, nothing failed. */
bool response_end(struct response *a, bool in_order);
void response_release(struct response *a);

#endif
