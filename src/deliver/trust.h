/*
 * trust: the certificate authorities that a server's certificate must come from.
 *
 * What is kept of each is its name, its public key and its nameConstraints; dates of authorities are not checked. The
 * set is filled from PEM texts (capture/ finds the files) or from the one that is built in, which
 * is Mozilla's as the distribution packages it, taken at build time.
 *
 * Source: RFC 5280, RFC 7468; /usr/share/ca-certificates of Debian's ca-certificates.
 */
#ifndef DELIVER_TRUST_H
#define DELIVER_TRUST_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdint.h>

enum { TRUST_PINS_MAX = 8 };

struct trust_anchor;

/* An authority that may sign for some names only. */
struct trust_limit {
    struct str name;        /* its subject; the block that holds both begins here */
    struct str constraints; /* of certificate.h */
};

struct trust {
    VEC(struct trust_anchor) anchors;
    VEC(struct trust_limit) limits;
    /* SHA-256 of a leaf's public key: such a leaf is good whoever signed it; with pins, no other
     * is. */
    unsigned char pins[TRUST_PINS_MAX][32];
    size_t pin_count;
    char source[256]; /* for sentences: "/etc/ssl/certs/ca-certificates.crt", "built in" */
};

/* Adds every certificate of a PEM text, or of one in DER, that can be used; how many those were,
 * known ones included. Others are passed over: a bundle may hold kinds that are not known here.
 * `source` names the text; for a folder, name the folder each time. */
size_t trust_add_pem(struct trust *trust, struct str pem, const char *source);

/* Adds those that are built in. */
size_t trust_add_built_in(struct trust *trust);

/* "sha256//BASE64", as other tools spell it. */
bool trust_add_pin(struct trust *trust, struct str text, struct err *err);

void trust_release(struct trust *trust);

#endif
