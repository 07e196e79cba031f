/*
 * websocket: messages over a connection to V8's inspector, of which we are the client.
 *
 * Call order. websocket_open of a connection, which is the websocket's then, also when it fails; websocket_send and
 * websocket_receive; websocket_close. Texts only. What is asked of us in between (a ping) is answered.
 *
 * Limits. A message of WEBSOCKET_MAX bytes. Everything that comes is hostile.
 *
 * Source: RFC 6455, without extensions.
 */
#ifndef RUNTIME_V8_WEBSOCKET_H
#define RUNTIME_V8_WEBSOCKET_H

#include "base/iface.h"

enum { WEBSOCKET_MAX = 32 << 20 };

struct websocket {
    struct stream stream;
    struct buf in;  /* what came and is not yet taken */
    uint64_t seed;  /* of what has to look random in between */
};

/* `path`: "/" and what names it there. The seed is any number. */
bool websocket_open(struct websocket *w, const struct stream *stream, struct str path, uint16_t port, uint64_t seed,
                    uint64_t deadline_ns, struct err *err);
void websocket_close(struct websocket *w);

bool websocket_send(struct websocket *w, struct str message, uint64_t deadline_ns, struct err *err);

/* Replaces `message`. False with ETIMEDOUT: none came; else the connection is over. */
bool websocket_receive(struct websocket *w, struct buf *message, uint64_t deadline_ns, struct err *err);

/* Has something come, or is the connection over? Does not wait. */
bool websocket_has_any(const struct websocket *w);

/* What both of them need: reads once, to the end of `in`. */
bool websocket_read(const struct stream *stream, struct buf *in, uint64_t deadline_ns, struct err *err);

#endif
