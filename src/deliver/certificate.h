/*
 * certificate: the parts of an X.509 certificate that are used here.
 *
 * certificate_parse takes it apart without judging it: the signature, the dates and the chain are
 * BearSSL's business (peer.h). What its checks lack is here: whom the certificate is for, addresses
 * included, and whether it may be a server. All parts point into the bytes given.
 *
 * Names (RFC 6125): host names are compared with the dNSName entries, without regard to case;
 * "*" stands for exactly one label, alone, at the front, with two labels behind it. Addresses are
 * compared with the iPAddress entries. The common name never counts (RFC 9525).
 *
 * Source: RFC 5280, 6125, 9525, 8017 (RSA keys), 5480 (EC keys).
 */
#ifndef DELIVER_CERTIFICATE_H
#define DELIVER_CERTIFICATE_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum key_kind { KEY_OTHER, KEY_RSA, KEY_EC };

struct public_key {
    enum key_kind kind;        /* KEY_OTHER: a kind that cannot be used here */
    struct str oid;            /* of the kind */
    struct str modulus, exponent; /* RSA; without leading zeros */
    unsigned curve;            /* EC; its number in TLS: 23, 24, 25 for P-256, P-384, P-521 */
    struct str point;
};

struct certificate {
    struct str issuer, subject; /* names, with tag and length */
    uint64_t not_before_s, not_after_s; /* since 1970 */
    struct str key_info; /* SubjectPublicKeyInfo, tag and length too: what a pin is the hash of */
    struct public_key key;
    struct str signature_oid;
    bool is_authority;   /* may sign others; or is as old as version 1, which cannot say so */
    struct str names;           /* what its subjectAltName holds; empty: there is none */
    struct str constraints;     /* its nameConstraints, critical or not; empty: none */
    bool may_serve;             /* its extendedKeyUsage, if any, allows for a TLS server */
    struct str critical_oid;    /* of an extension that must be understood and is not; else empty */
};

bool certificate_parse(struct str der, struct certificate *out, struct err *err);

/* Is it for this host: a name, without a final dot, or an address? */
bool certificate_is_for(const struct certificate *c, struct str host);

/* May an authority with these nameConstraints sign it: are all its names, and this host, within them? What is
 * malformed permits nothing. Only names and addresses of hosts are looked at, as nothing else identifies a server. */
bool certificate_is_within(const struct certificate *c, struct str constraints, struct str host);

/* Is it an address; its 4 or 16 bytes? */
bool address_of(struct str host, unsigned char out[static 16], size_t *len);

enum { CERTIFICATE_TEXT_MAX = 120 };

/* The common name, or the last part, of a name; printable. */
void certificate_name_text(struct str name, char out[static CERTIFICATE_TEXT_MAX]);

/* The names and addresses it is for, with commas; those that fit, and "..."; "" where there are none. */
void certificate_names_text(const struct certificate *c, char out[static CERTIFICATE_TEXT_MAX]);

#endif
