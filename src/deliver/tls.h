/*
 * tls: TLS 1.2 for a client, over any stream.
 *
 * Concept. tls_open takes a connected stream, shakes hands and gives a stream of plain bytes back,
 * which owns the other one. What it offers: TLS 1.2, ECDHE with ECDSA or RSA, AES-GCM and
 * ChaCha20-Poly1305, P-256, P-384, P-521, X25519; certificates signed with SHA-256, -384 or -512,
 * RSA keys of 2048 bits and more. The protocol itself is BearSSL's; certificate.h adds what its
 * checks lack.
 *
 * Call order: trust_* (trust.h), tls_identity_* when the client has a certificate; then tls_open
 * for each connection. A struct tls_session remembers the last handshake with one server, so that
 * the next is a short one; all zero to begin with, of one host, port and settings, never written
 * anywhere. A short handshake looks at no certificate: who trusts others from now on starts with a
 * new one.
 *
 * The stream. A read that gives 0 had the server's word for it; a connection that ends without one
 * is an error (ECONNRESET), so that a body that lasts until the end is never taken for whole when
 * it was cut. `readable` says true only when a read would not wait: for plain bytes, an end or an
 * error. A write returns when what it took is on its way; after one that failed only reading is
 * possible. Closing says farewell, until the last deadline given, and waits for no response.
 *
 * Memory: 39 KB for a connection, another 38 KB during the handshake.
 *
 * Nothing here knows the time or where randomness is from: the settings carry both.
 *
 * Errors: ERR_NETWORK, one sentence with its remedy for every way in which a handshake can fail:
 * which certificate, which name, which date and what the clock says, what the server would have
 * needed. tls_failed_by_config tells those that trying again does not mend: their number is EPROTO.
 *
 * Source: RFC 5246, 5280, 6066, 6125; bearssl_ssl.h, bearssl_x509.h.
 */
#ifndef DELIVER_TLS_H
#define DELIVER_TLS_H

#include "base/iface.h"
#include "deliver/trust.h"

struct tls_identity; /* a certificate chain with its private key */

/* Both in PEM; the key in PKCS#8, PKCS#1 or SEC1, without a pass phrase. Null: err. */
struct tls_identity *tls_identity_new(struct str chain_pem, struct str key_pem, struct err *err);
void tls_identity_free(struct tls_identity *identity);

struct tls_session {
    unsigned char bytes[128];
    bool any;
    bool resumed; /* the last handshake was a short one */
};

struct tls_settings {
    const struct trust *trust;
    bool verify;                         /* false: any certificate will do */
    const struct tls_identity *identity; /* null: none */
    unsigned char seed[32];              /* fresh random bytes for every tls_open */
    uint64_t wall_ns;                    /* now, for the certificates' dates */
};

/* Settings, trust and identity are borrowed until it returns; session may be null. `host` is what
 * the certificate must be for: a name (a final dot is ignored) or an address. On failure `under` is
 * closed, too. */
bool tls_open(struct stream *under, struct str host, const struct tls_settings *settings,
              struct tls_session *session, uint64_t deadline_ns, struct stream *out,
              struct err *err);

/* Was the last handshake that failed refused for a reason that stays until someone changes
 * something: a certificate, a protocol, a missing client certificate? By the errors of tls_open. */
bool tls_failed_by_config(const struct err *err);

#endif
