/* Reads DER (X.690): tags, lengths, and the few types that certificates have. Every length is
 * checked against what is there; indefinite lengths are refused. Pure: nothing is
 * allocated. */
#include "deliver/der.h"

#include <stdio.h>

/* No certificate or key has 16 MB. */
enum { LENGTH_BYTES_MAX = 3, MULTI_BYTE_TAG = 0x1f };

static bool fail(struct der *d)
{
    d->bad = true;
    d->left = (struct str){NULL, 0};
    return false;
}

/* The length field that starts at byte 1; how many bytes head and value have. */
static bool measure(struct str bytes, size_t *head, size_t *value)
{
    if (bytes.len < 2) {
        return false;
    }
    unsigned first = (unsigned char)bytes.ptr[1];
    *head = 2;
    *value = first;
    if (first >= 0x80) {
        unsigned count = first & 0x7f;
        if (count == 0 || count > LENGTH_BYTES_MAX || bytes.len < 2 + count) {
            return false;
        }
        *head = 2 + count;
        *value = 0;
        for (unsigned i = 0; i < count; i++) {
            *value = *value << 8 | (unsigned char)bytes.ptr[2 + i];
        }
    }
    return *value <= bytes.len - *head;
}

bool der_next(struct der *d, struct der_element *out)
{
    if (d->bad || d->left.len == 0) {
        return false;
    }
    size_t head, value;
    unsigned char tag = (unsigned char)d->left.ptr[0];
    if ((tag & MULTI_BYTE_TAG) == MULTI_BYTE_TAG || !measure(d->left, &head, &value)) {
        return fail(d);
    }
    out->tag = tag;
    out->value = str_sub(d->left, head, value);
    out->whole = str_sub(d->left, 0, head + value);
    d->left = str_sub(d->left, head + value, d->left.len);
    return true;
}

struct str der_take(struct der *d, unsigned char tag)
{
    struct der_element e;
    if (!der_next(d, &e) || e.tag != tag) {
        fail(d);
        return (struct str){NULL, 0};
    }
    return e.value;
}

struct str der_take_if(struct der *d, unsigned char tag)
{
    return der_has(d, tag) ? der_take(d, tag) : (struct str){NULL, 0};
}

struct str der_number(struct der *d)
{
    struct str number = der_take(d, DER_INTEGER);
    if (number.len == 0 || ((unsigned char)number.ptr[0] & 0x80) != 0) {
        fail(d);
        return (struct str){NULL, 0};
    }
    while (number.len > 0 && number.ptr[0] == 0) {
        number = str_sub(number, 1, number.len);
    }
    return number;
}

void der_oid_text(struct str oid, char *out, size_t room)
{
    size_t used = 0;
    uint64_t value = 0;
    bool first = true;
    out[0] = '\0';
    for (size_t i = 0; i < oid.len && used < room; i++) {
        unsigned char byte = (unsigned char)oid.ptr[i];
        value = value << 7 | (byte & 0x7f);
        if (byte & 0x80) {
            continue;
        }
        /* The first two numbers share one: 40 * first + second, where first is at most 2. */
        unsigned top = value < 80 ? (unsigned)value / 40 : 2;
        int wrote = first ? snprintf(out, room, "%u.%llu", top,
                                     (unsigned long long)(value - 40 * top))
                          : snprintf(out + used, room - used, ".%llu", (unsigned long long)value);
        used += (size_t)wrote;
        first = false;
        value = 0;
    }
}
