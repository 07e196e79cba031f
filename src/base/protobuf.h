/*
 * protobuf: the wire format of Protocol Buffers, written and read without generated code.
 *
 * Writing appends to a buf. A nested message is built in a buf of its own and added with
 * protobuf_message; zero numbers and empty texts are the defaults of proto3 and are omitted unless
 * the function says otherwise. Failure is the buf's sticky flag.
 *
 * Reading walks the fields of one message with protobuf_next; a nested message is a cursor over the
 * field's bytes. Repeated numbers come packed (one field of bytes) or one by one:
 * protobuf_packed_next accepts both.
 *
 * Limits: none of its own; nothing is copied, slices borrow the message. Group fields (wire types 3
 * and 4) were deprecated before proto3 and are refused.
 *
 * Format: https://protobuf.dev/programming-guides/encoding/
 */
#ifndef BASE_PROTOBUF_H
#define BASE_PROTOBUF_H

#include "base/cursor.h"
#include "base/str.h"

enum protobuf_wire {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5,
};

/* The bare varint, zero included. */
void protobuf_varint(struct buf *out, uint64_t value);

/* Number, text or message under a field number. */
void protobuf_u64(struct buf *out, unsigned field, uint64_t value);
void protobuf_text(struct buf *out, unsigned field, struct str text);

/* Written even when empty: an empty message is not the same as none. */
void protobuf_message(struct buf *out, unsigned field, const struct buf *message);

/* One field of a message. Numbers of every wire type are in `value`. */
struct protobuf_field {
    unsigned number;
    enum protobuf_wire wire;
    uint64_t value;
    struct str bytes;
};

/* The next field. False at the end of the message and when it is damaged; the latter sets
 * message->short_read. */
bool protobuf_next(struct cursor *message, struct protobuf_field *field);

/* The next number of a repeated number field; *at is zero before the first call and counts the
 * bytes read. False at the end; a damaged packed field sets *damaged. */
bool protobuf_packed_next(const struct protobuf_field *field, size_t *at, uint64_t *value,
                          bool *damaged);

#endif
