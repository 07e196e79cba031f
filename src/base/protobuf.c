#include "base/protobuf.h"

void protobuf_varint(struct buf *out, uint64_t value)
{
    char bytes[10];
    size_t len = 0;
    for (; value >= 0x80; value >>= 7) {
        bytes[len++] = (char)(value | 0x80);
    }
    bytes[len++] = (char)value;
    buf_add(out, bytes, len);
}

static void tag(struct buf *out, unsigned field, enum protobuf_wire wire)
{
    protobuf_varint(out, (uint64_t)field << 3 | wire);
}

void protobuf_u64(struct buf *out, unsigned field, uint64_t value)
{
    if (value != 0) {
        tag(out, field, PROTOBUF_VARINT);
        protobuf_varint(out, value);
    }
}

static void bytes_field(struct buf *out, unsigned field, struct str bytes)
{
    tag(out, field, PROTOBUF_BYTES);
    protobuf_varint(out, bytes.len);
    buf_str(out, bytes);
}

void protobuf_text(struct buf *out, unsigned field, struct str text)
{
    if (text.len > 0) {
        bytes_field(out, field, text);
    }
}

void protobuf_message(struct buf *out, unsigned field, const struct buf *message)
{
    out->failed |= message->failed;
    bytes_field(out, field, buf_slice(message));
}

static bool read_value(struct cursor *message, struct protobuf_field *field)
{
    switch (field->wire) {
    case PROTOBUF_VARINT:
        field->value = cursor_uleb(message);
        break;
    case PROTOBUF_FIXED64:
        field->value = cursor_u64(message);
        break;
    case PROTOBUF_FIXED32:
        field->value = cursor_u32(message);
        break;
    case PROTOBUF_BYTES:
        field->bytes.len = (size_t)cursor_uleb(message);
        field->bytes.ptr = cursor_take(message, field->bytes.len);
        break;
    default:
        message->short_read = true;
    }
    return !message->short_read;
}

bool protobuf_next(struct cursor *message, struct protobuf_field *field)
{
    if (message->len == 0 || message->short_read) {
        return false;
    }
    uint64_t key = cursor_uleb(message);
    *field = (struct protobuf_field){.number = (unsigned)(key >> 3),
                                     .wire = (enum protobuf_wire)(key & 7)};
    if (key > UINT32_MAX || field->number == 0) {
        message->short_read = true;
    }
    return !message->short_read && read_value(message, field);
}

bool protobuf_packed_next(const struct protobuf_field *field, size_t *at, uint64_t *value,
                          bool *damaged)
{
    if (field->wire != PROTOBUF_BYTES) {
        *value = field->value;
        return (*at)++ == 0;
    }
    if (*at >= field->bytes.len) {
        return false;
    }
    struct cursor rest = cursor_of(field->bytes.ptr + *at, field->bytes.len - *at);
    *value = cursor_uleb(&rest);
    *at = field->bytes.len - rest.len;
    *damaged |= rest.short_read;
    return !rest.short_read;
}
