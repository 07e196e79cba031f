/*
 * peer: the server's certificates as they come in a handshake, and the verdict on them.
 *
 * An X.509 engine for BearSSL, around its own "minimal" one, which checks signatures, dates, the
 * chain and the keys' sizes. Added are the order of the chain, the check of the name with addresses (certificate.h),
 * extendedKeyUsage, nameConstraints (where they are critical in a certificate of the chain, BearSSL refuses it), pins,
 * and what sentences need: the leaf, and the certificate that was the matter.
 *
 * "minimal" wants each certificate signed by the next one. Servers send them in other orders, with the root
 * or with some that do not belong; so all are kept until the last one came, and paths from the first one are
 * tried by their names, as other clients do.
 *
 *     peer_init(&peer, settings, host)
 *     br_ssl_engine_set_x509(engine, &peer.vtable)
 *     … handshake …
 *     peer.verdict, peer.leaf, peer.blamed
 *
 * What BearSSL cannot verify because of the kind of a key or of a signature is given to `verify`, where the second
 * engine sets one.
 *
 * With pins, a leaf with a pinned key is good, and no other is: neither names nor dates nor
 * authorities matter then.
 */
#ifndef DELIVER_PEER_H
#define DELIVER_PEER_H

#include "deliver/tls_private.h"

enum {
    PEER_LEAF_MAX = 16 * 1024,  /* a longer certificate is not looked into, so refused */
    PEER_CHAIN_MAX = 32 * 1024, /* of all; those behind are not looked into */
    PEER_CERTIFICATES_MAX = 16,
    PEER_PATHS_MAX = 8, /* each may cost a signature for each certificate */

    /* Verdicts besides BearSSL's, which are below 64; alerts are from 256 on. */
    PEER_NO_SERVER = 200, /* its extendedKeyUsage does not let it be one */
    PEER_NOT_PINNED,
    PEER_OUTSIDE, /* of what an authority may sign */
    PEER_TOO_LONG,
    PEER_UNREADABLE, /* to the second engine: mostly a kind of key */
};

/* What a sentence tells of one certificate. */
struct peer_facts {
    char subject[CERTIFICATE_TEXT_MAX], issuer[CERTIFICATE_TEXT_MAX], names[CERTIFICATE_TEXT_MAX];
    char oid[48]; /* of a critical extension that is not understood, or of a kind of key, or of the signature */
    uint64_t not_before_s, not_after_s;
    bool self_signed;
};

/* Does this path, the leaf first, lead from its last one to a trusted authority? 0, or a verdict. */
typedef unsigned peer_verify(const struct tls_settings *settings, const struct str *path, unsigned len);

struct peer {
    const br_x509_class *vtable; /* first: BearSSL knows a peer by this */
    br_x509_minimal_context minimal;
    const struct tls_settings *settings;
    struct str host;
    peer_verify *verify; /* null: what BearSSL cannot verify is refused; else keys are its engine's business, too */
    unsigned char der[PEER_CHAIN_MAX];
    struct str chain[PEER_CERTIFICATES_MAX]; /* in `der`, as they came; the leaf first; empty: was too long */
    size_t der_len, room;  /* room: for the rest of the one that comes in */
    bool leaf_too_long;
    unsigned count;        /* certificates so far */
    unsigned paths;        /* that were tried */
    unsigned relied;       /* on so many of the last one */
    bool started;          /* not so in a resumed session */
    unsigned verdict;      /* 0: good */
    br_x509_pkey key;      /* the leaf's, when `minimal` does not give it */
    bool own_key;
    struct peer_facts leaf, blamed;
};

/* Settings and host are borrowed for as long as the peer is used. */
void peer_init(struct peer *peer, const struct tls_settings *settings, struct str host);

#endif
