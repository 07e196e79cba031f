/*
 * tls_private: what the files of TLS share, and where BearSSL's types are.
 *
 * Two engines speak TLS, each behind the same stream: tls12.c by BearSSL, tls13.c by mbedTLS. What both have of a
 * connection is a link. Errors have BearSSL's numbers in both.
 */
#ifndef DELIVER_TLS_PRIVATE_H
#define DELIVER_TLS_PRIVATE_H

#include <bearssl.h>

#include "deliver/certificate.h"
#include "deliver/tls.h"

/* An array of these is an array of BearSSL's. What they point to is one block of memory, or built
 * in. */
struct trust_anchor {
    br_x509_trust_anchor x;
};
_Static_assert(sizeof(struct trust_anchor) == sizeof(br_x509_trust_anchor), "used as an array of "
                                                            "those");

enum {
    RSA_BYTES_MIN = 256, /* 2048 bits */
    RSA_BYTES_MAX = 512, /* BearSSL computes with 4096 bits at most */
};

/* Points into the certificate. False for a kind or a size that BearSSL cannot verify with. */
bool tls_key_of(const struct public_key *key, br_x509_pkey *out);

enum { KEY_BYTES_MAX = 2600 }; /* PKCS#8 of RSA with 4096 bits has 2375 */

struct tls_identity {
    br_x509_certificate *chain;
    size_t chain_count;
    unsigned char key_der[KEY_BYTES_MAX]; /* as it was in the file */
    size_t key_len;
    /* BearSSL 0.6 lets a key fill 3 * BR_X509_BUFSIZE_KEY bytes of a field that has 3 *
     * BR_X509_BUFSIZE_SIG (skey_decoder.t0, len-key_data): what a crafted key writes behind it
     * lands here. */
    struct {
        br_skey_decoder_context decoder;
        unsigned char overflow[64];
    } key;
};
_Static_assert(3 * (BR_X509_BUFSIZE_KEY - BR_X509_BUFSIZE_SIG) <= 64, "room for what overflows");

enum {
    TLS13 = PILLION_TLS13, /* is the second engine compiled? */
    TLS_HOST_MAX = 255,
    TLS_RECEIVES_MAX = 1 << 16, /* without anything coming of them: a record has 16 KB at most */
};

/* Numbers of the second engine's, beside BearSSL's and the peer's. */
enum { TLS_MESSAGE_TOO_LONG = 230, TLS_CHANGES_KEYS };

struct peer;

struct tls_link {
    struct stream under;
    char host[TLS_HOST_MAX + 1];
    struct tls_settings settings; /* for the handshake only; whether it has an identity, always */
    struct peer *peer;            /* likewise */
    uint64_t deadline_ns;         /* the last one given: also for the farewell */
    unsigned char first[3];       /* of what came in */
    size_t first_len;
    bool asked_for_certificate;
    bool second; /* which engine */
    bool other_may; /* the handshake failed, and might not by the second engine */
    bool is_guess;  /* no word of the server says so */
};

/* Each owns the link from here on; on failure it is released. */
bool tls12_open(struct tls_link *link, struct tls_session *session, struct stream *out, struct err *err);
bool tls13_open(struct tls_link *link, struct tls_session *session, struct stream *out, struct err *err);

/* As the stream's. */
ptrdiff_t tls_link_read(struct tls_link *link, void *to, size_t len, uint64_t deadline_ns, struct err *err);

void tls_link_shaken(struct tls_link *link);  /* forgets what was for the handshake */
void tls_link_release(struct tls_link *link); /* closes the stream */
bool tls_link_is_address(const struct tls_link *link); /* which must not be sent as a name (RFC 6066, 3) */

/* Sentences; always false. */
bool tls_link_explain(struct tls_link *link, int code, struct err *err);
bool tls_link_cut(const struct tls_link *link, struct err *err);
bool tls_link_held_up(const struct tls_link *link, struct err *err);
bool tls_link_closed(struct tls_link *link, struct err *err);                      /* in the handshake */
bool tls_link_lost(struct tls_link *link, const struct err *why, struct err *err); /* likewise */

#endif
