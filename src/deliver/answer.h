/*
 * answer: an HTTP/1.1 answer, taken in as it comes.
 *
 * Bytes are given in pieces of any length; nothing is looked at twice. Interim answers (1xx) are passed over. As
 * soon as the final head is there the answer counts: a body that is cut, malformed or too long takes nothing from
 * its status, it only leaves `whole` false and the connection useless.
 *
 * What a server can make us hold or read is bounded: ANSWER_HEADS_MAX bytes for all heads together, trailers
 * and chunk sizes being counted as body; of the body HTTP_BODY_MAX are kept and ANSWER_DROP_MAX more are read.
 *
 *     answer_init(&a, &out, method, wall_ns)
 *     answer_feed(&a, bytes, &err)     until it is not ANSWER_MORE
 *     answer_end(&a, in_order)         when the stream ended or failed before that
 *     answer_release(&a)
 *
 * A head that is malformed is ANSWER_BAD. So is one with both a length and chunks, which RFC 9112, 6.3, takes for an
 * attempt to smuggle another answer in, and one whose lengths differ.
 *
 * Source: RFC 9112, 2 to 7; RFC 9110, 5.6.7 (dates), 10.2.3 (Retry-After).
 */
#ifndef DELIVER_ANSWER_H
#define DELIVER_ANSWER_H

#include "deliver/http.h"

enum { ANSWER_HEADS_MAX = 64 * 1024, ANSWER_DROP_MAX = 1024 * 1024 };

enum answer_state { ANSWER_MORE, ANSWER_DONE, ANSWER_BAD };

struct answer {
    struct http_answer *out;
    const char *method;
    struct str watch; /* the name of a field that is copied to out->watched; empty: none */
    uint64_t wall_ns;
    int step;            /* enum step of answer.c */
    struct buf head;     /* of the head that is coming in */
    size_t heads;        /* bytes of all heads so far */
    size_t line;         /* bytes of the present line, without its end */
    uint64_t left;       /* of the body or of the chunk */
    unsigned digits;     /* of the chunk's size */
    size_t passed;       /* bytes behind the head */
    bool chunked, coded, has_length, close, stays_open, is_10;
    uint64_t length;
};

void answer_init(struct answer *a, struct http_answer *out, const char *method, uint64_t wall_ns);
enum answer_state answer_feed(struct answer *a, struct str bytes, struct err *err);

/* Is there an answer? Completes it when there is. in_order: the other side ended, nothing failed. */
bool answer_end(struct answer *a, bool in_order);
void answer_release(struct answer *a);

#endif
