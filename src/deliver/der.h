/*
 * der: bounded reading of DER, the encoding of certificates and keys.
 *
 * A struct der walks over the elements of one level; what an element holds is walked by another
 * one. An element that does not fit, has a tag of several bytes, or a length that is not definite
 * ends the walk and sets the sticky `bad`; a parser takes all it wants and looks at the flag once.
 *
 * Source: X.690.
 */
#ifndef DELIVER_DER_H
#define DELIVER_DER_H

#include "base/str.h"

enum der_tag {
    DER_BOOLEAN = 0x01,
    DER_INTEGER = 0x02,
    DER_BITS = 0x03,
    DER_OCTETS = 0x04,
    DER_OID = 0x06,
    DER_UTC_TIME = 0x17,
    DER_GENERALIZED_TIME = 0x18,
    DER_SEQUENCE = 0x30,
    DER_SET = 0x31,
    DER_CONTEXT = 0x80,             /* | number: [number] of a primitive */
    DER_CONTEXT_CONSTRUCTED = 0xa0, /* | number */
};

struct der {
    struct str left;
    bool bad;
};

struct der_element {
    unsigned char tag;
    struct str value;
    struct str whole; /* with its tag and length */
};

static inline struct der der_of(struct str bytes)
{
    return (struct der){bytes, false};
}

/* The next element; false at the end and when it is malformed. */
bool der_next(struct der *d, struct der_element *out);

/* The value of the next element, which has to have this tag. */
struct str der_take(struct der *d, unsigned char tag);

/* Is the next element of this tag? */
static inline bool der_has(const struct der *d, unsigned char tag)
{
    return !d->bad && d->left.len > 0 && (unsigned char)d->left.ptr[0] == tag;
}

/* The next element's value when it has this tag; empty, and nothing taken, when it has another. */
struct str der_take_if(struct der *d, unsigned char tag);

/* A number's bytes without leading zeros; bad when negative. */
struct str der_number(struct der *d);

/* An object identifier's value as "1.2.840": what fits. */
void der_oid_text(struct str oid, char *out, size_t room);

#endif
