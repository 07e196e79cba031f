/*
 * tls: TLS 1.2 and 1.3 for a client, over any stream.
 *
 * Concept. tls_open takes a connected stream, shakes hands and gives a stream of plain bytes back, which owns the
 * other one. Two engines speak the protocol. The first, BearSSL, offers TLS 1.2: ECDHE with ECDSA or RSA, AES-GCM and
 * ChaCha20-Poly1305, P-256, P-384, P-521, X25519; certificates signed with SHA-256, -384 or -512, RSA keys of 2048 to
 * 4096 bits. The second, mbedTLS, takes over with servers that refuse that: it speaks 1.3, and 1.2 with Extended
 * Master Secret, with the same ciphers and groups; RSA-PSS signatures and RSA keys of up to 8192 bits as well. Whom
 * to trust is decided by the same code for both (peer.h). A build with TLS13=0 has the first engine alone.
 *
 * Call order: trust_* (trust.h), tls_identity_* when the client has a certificate; then tls_open for each connection.
 * A struct tls_session remembers the last handshake with one server, so that the next is a short one, and which
 * engine that server wants; all zero to begin with, of one host, port and settings, never written anywhere. When
 * tls_open fails and session->again is true, the next call may not, on a new connection: call once more. A short
 * handshake looks at no certificate: who trusts others from now on starts with a new one.
 *
 * The stream. A read that gives 0 had the server's word for it; a connection that ends without one is an error
 * (ECONNRESET), so that a body that lasts until the end is never taken for whole when it was cut. `readable` says
 * true only when a read would not wait: for plain bytes, an end or an error. A write returns when what it took is on
 * its way; after one that failed only reading is possible. Closing says farewell, until the last deadline given, and
 * waits for no response. By TLS 1.3 a server judges the client's certificate after the handshake: the first read
 * tells.
 *
 * Memory: 39 KB for a connection, another 38 KB during the handshake; of the second engine 43 KB and some 60 KB.
 * Several threads may have connections.
 *
 * Nothing here knows the time or where randomness is from: the settings carry both. But what the second engine takes
 * comes from os/tls13_random.c, and its seed is of no use.
 *
 * Errors: ERR_NETWORK, one sentence with its remedy for every way in which a handshake can fail: which certificate,
 * which name, which date and what the clock says, what the server would have needed. tls_failed_by_config tells those
 * that trying again does not mend: their number is EPROTONOSUPPORT.
 *
 * Source: RFC 5246, 8446, 7627, 5280, 6066, 6125; bearssl_ssl.h, bearssl_x509.h; mbedtls/ssl.h.
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
    unsigned char bytes[128]; /* the first engine's */
    bool any;
    bool second; /* the server wants the second engine */
    bool again;  /* tls_open failed, and the next call may not, by the other engine or without a session */
    bool guessed; /* that the other may do better: it is not kept to unless it does */
    bool judged_late; /* the server judges the client's certificate after the handshake */
    bool resumed; /* the last handshake was a short one */
    unsigned char *ticket; /* the second engine's; null: none */
    size_t ticket_len;
};

/* Frees what it holds; all zero again. */
void tls_session_forget(struct tls_session *session);

struct tls_settings {
    const struct trust *trust;
    bool verify;                         /* false: any certificate will do */
    const struct tls_identity *identity; /* null: none */
    unsigned char seed[32];              /* fresh random bytes for every tls_open */
    uint64_t wall_ns;                    /* now, for the certificates' dates */
};

/* Settings, trust and identity are borrowed until it returns, session (which may be null) until the stream is closed:
 * tickets come late. `host` is what the certificate must be for: a name (a final dot is ignored) or an address. On
 * failure `under` is closed, too. */
bool tls_open(struct stream *under, struct str host, const struct tls_settings *settings,
              struct tls_session *session, uint64_t deadline_ns, struct stream *out,
              struct err *err);

/* Was the handshake that failed refused for a reason that stays until someone changes something: a certificate, a
 * protocol, a missing client certificate? By the errors of tls_open, and of the first read. */
bool tls_failed_by_config(const struct err *err);

#endif
