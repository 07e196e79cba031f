/*
 * tls_private: what the files of TLS share, and where BearSSL's types are.
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

struct tls_identity {
    br_x509_certificate *chain;
    size_t chain_count;
    /* BearSSL 0.6 lets a key fill 3 * BR_X509_BUFSIZE_KEY bytes of a field that has 3 *
     * BR_X509_BUFSIZE_SIG (skey_decoder.t0, len-key_data): what a crafted key writes behind it
     * lands here. */
    struct {
        br_skey_decoder_context decoder;
        unsigned char overflow[64];
    } key;
};
_Static_assert(3 * (BR_X509_BUFSIZE_KEY - BR_X509_BUFSIZE_SIG) <= 64, "room for what overflows");

#endif
