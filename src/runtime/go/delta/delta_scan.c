/* The fields of a packed protobuf message as a stream. A field that lies in the window is shown there; one that goes
 * over its end is put together in a buffer, which so grows to the largest such field and not to the message. What is
 * not wanted is passed over without a copy. All lengths are foreign: they are compared with what is left of the
 * limits before anything is reserved for them. */
#include "runtime/go/delta/delta_scan.h"

#include <stdlib.h>

struct go_scan *go_scan_new(struct str message, struct err *err)
{
    struct go_scan *s = malloc(sizeof *s);
    if (s == NULL) {
        (void)err_set(err, ERR_MEMORY, 0, "no memory to read a profile");
        return NULL;
    }
    buf_init(&s->field, GO_FIELD_MAX_BYTES);
    if (!gunzip_open(&s->gunzip, message.ptr, message.len, err)) {
        go_scan_free(s);
        return NULL;
    }
    go_scan_start(s, 0);
    return s;
}

void go_scan_free(struct go_scan *scan)
{
    if (scan != NULL) {
        gunzip_release(&scan->gunzip);
        buf_release(&scan->field);
        free(scan);
    }
}

void go_scan_start(struct go_scan *scan, uint32_t wanted)
{
    gunzip_rewind(&scan->gunzip);
    scan->wanted = wanted;
    scan->at = scan->len = 0;
    scan->plain_bytes = 0;
    scan->is_damaged = false;
}

static bool refuse(struct go_scan *s, struct err *err, const char *why)
{
    s->is_damaged = true;
    return err_set(err, ERR_MALFORMED, 0, "the profile is damaged: %s", why);
}

/* Unpacks the next window. False: err, or the end. */
static bool fill(struct go_scan *s, struct err *err)
{
    s->at = s->len = 0;
    if (!gunzip_read(&s->gunzip, s->window, sizeof s->window, &s->len, err)) {
        s->is_damaged = true;
        s->len = 0;
        return false;
    }
    s->plain_bytes += s->len;
    if (s->plain_bytes > GO_PLAIN_MAX_BYTES) {
        s->is_damaged = true;
        return err_set(err, ERR_LIMIT, 0, "the profile has more than %d bytes unpacked", GO_PLAIN_MAX_BYTES);
    }
    return s->len > 0;
}

/* False: err, or there is none. */
static inline bool take_byte(struct go_scan *s, unsigned char *out, struct err *err)
{
    if (s->at == s->len && !fill(s, err)) {
        return false;
    }
    *out = s->window[s->at++];
    return true;
}

static bool take_varint(struct go_scan *s, uint64_t *out, struct err *err)
{
    *out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        unsigned char byte;
        if (!take_byte(s, &byte, err)) {
            return s->is_damaged ? false : refuse(s, err, "it ends within a number");
        }
        if (shift == 63 && byte > 1) {
            break;
        }
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return refuse(s, err, "a number has more than 64 bits");
}

/* Moves over `len` bytes; into the buffer where there is one. */
static bool pass(struct go_scan *s, uint64_t len, struct buf *into, struct err *err)
{
    while (len > 0) {
        if (s->at == s->len && !fill(s, err)) {
            return s->is_damaged ? false : refuse(s, err, "it ends within a field");
        }
        size_t left = s->len - s->at;
        size_t part = left < len ? left : (size_t)len;
        if (into != NULL) {
            buf_add(into, s->window + s->at, part);
        }
        s->at += part;
        len -= part;
    }
    return true;
}

static bool take_bytes(struct go_scan *s, bool is_wanted, struct str *out, struct err *err)
{
    uint64_t len;
    if (!take_varint(s, &len, err)) {
        return false;
    }
    if (!is_wanted) {
        return pass(s, len, NULL, err);
    }
    if (len <= s->len - s->at) {
        *out = (struct str){(const char *)s->window + s->at, (size_t)len};
        return pass(s, len, NULL, err);
    }
    if (len > GO_FIELD_MAX_BYTES) {
        s->is_damaged = true;
        return err_set(err, ERR_LIMIT, 0, "a field of the profile has %llu bytes; at most %d are read",
                       (unsigned long long)len, GO_FIELD_MAX_BYTES);
    }
    buf_clear(&s->field);
    if (!pass(s, len, &s->field, err)) {
        return false;
    }
    if (s->field.failed) {
        s->is_damaged = true;
        return err_set(err, ERR_MEMORY, 0, "no memory for a field of the profile");
    }
    *out = buf_slice(&s->field);
    return true;
}

static bool take_fixed(struct go_scan *s, unsigned bytes, uint64_t *out, struct err *err)
{
    *out = 0;
    for (unsigned i = 0; i < bytes; i++) {
        unsigned char byte;
        if (!take_byte(s, &byte, err)) {
            return s->is_damaged ? false : refuse(s, err, "it ends within a number");
        }
        *out |= (uint64_t)byte << (8 * i);
    }
    return true;
}

static bool take_value(struct go_scan *s, struct protobuf_field *f, bool is_wanted, struct err *err)
{
    switch (f->wire) {
    case PROTOBUF_VARINT:
        return take_varint(s, &f->value, err);
    case PROTOBUF_FIXED64:
        return take_fixed(s, 8, &f->value, err);
    case PROTOBUF_FIXED32:
        return take_fixed(s, 4, &f->value, err);
    case PROTOBUF_BYTES:
        return take_bytes(s, is_wanted, &f->bytes, err);
    default:
        return refuse(s, err, "a field of a kind that profiles do not have");
    }
}

bool go_scan_next(struct go_scan *scan, struct protobuf_field *out, struct err *err)
{
    while (!scan->is_damaged && (scan->at < scan->len || fill(scan, err))) {
        uint64_t key;
        if (!take_varint(scan, &key, err)) {
            return false;
        }
        struct protobuf_field field = {.number = (unsigned)(key >> 3), .wire = (enum protobuf_wire)(key & 7)};
        if (key > UINT32_MAX || field.number == 0) {
            return refuse(scan, err, "a field without a sound number");
        }
        bool is_wanted = field.number < 32 && (scan->wanted >> field.number & 1) != 0;
        if (!take_value(scan, &field, is_wanted, err)) {
            return false;
        }
        if (is_wanted) {
            *out = field;
            return true;
        }
    }
    return false;
}
