/* The client's own certificate and private key (tls_identity_new): reads PEM, checks that the kinds
 * and sizes can be used and that key and certificate belong together, and wipes what is secret when
 * it is released. */
#include <stdlib.h>

#include "deliver/der.h"
#include "deliver/pem.h"
#include "deliver/tls_private.h"

enum {
    CHAIN_MAX = 8,
    CERTIFICATE_BYTES_MAX = 1 << 16,
    RSA_FACTOR_BYTES_MAX = 260, /* BearSSL's BR_MAX_RSA_FACTOR */
    RSA_BITS_MIN = 8 * RSA_BYTES_MIN,
    RSA_BITS_MAX = 8 * RSA_BYTES_MAX,
    POINT_BYTES_MAX = 133,
};

static bool read_chain(struct tls_identity *id, struct str pem, struct err *err)
{
    struct pem_block block;
    id->chain = calloc(CHAIN_MAX, sizeof *id->chain);
    if (id->chain == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the client certificate");
    }
    while (pem_next(&pem, &block)) {
        size_t room = pem_room(&block);
        if (!str_eq(block.label, STR("CERTIFICATE"))) {
            continue;
        }
        if (id->chain_count == CHAIN_MAX || room > CERTIFICATE_BYTES_MAX) {
            return err_set(err, ERR_LIMIT, 0, "the client certificate's file has more than %d "
                           "certificates, or one of more than %d bytes", CHAIN_MAX,
                           CERTIFICATE_BYTES_MAX);
        }
        br_x509_certificate *c = &id->chain[id->chain_count];
        c->data = malloc(room);
        if (c->data == NULL) {
            return err_set(err, ERR_MEMORY, 0, "no memory for the client certificate");
        }
        id->chain_count++;
        c->data_len = pem_decode(&block, c->data);
    }
    return id->chain_count > 0 || err_set(err, ERR_USAGE, 0, "the client certificate's file holds "
                                                            "no "
                                          "certificate in PEM (BEGIN CERTIFICATE)");
}

/* ---- The key */

static bool decode_key(struct tls_identity *id, const struct pem_block *block, struct err *err)
{
    if (pem_room(block) > sizeof id->key_der) {
        return err_set(err, ERR_LIMIT, 0, "the client's private key has more than %d bytes: RSA up "
                                          "to "
                       "%d bits and EC keys can be used", KEY_BYTES_MAX, RSA_BITS_MAX);
    }
    id->key_len = pem_decode(block, id->key_der);
    br_skey_decoder_init(&id->key.decoder);
    br_skey_decoder_push(&id->key.decoder, id->key_der, id->key_len);
    return id->key_len > 0 && br_skey_decoder_last_error(&id->key.decoder) == 0;
}

static bool read_key(struct tls_identity *id, struct str pem, struct err *err)
{
    struct pem_block block;
    do {
        if (!pem_next(&pem, &block)) {
            return err_set(err, ERR_USAGE, 0, "the client key's file holds no private key in PEM "
                           "(BEGIN PRIVATE KEY)");
        }
    } while (!str_ends(block.label, STR("PRIVATE KEY")));
    if (block.encrypted || str_starts(block.label, STR("ENCRYPTED"))) {
        return err_set(err, ERR_USAGE, 0, "the client's private key is locked by a pass phrase: "
                                          "write it "
                       "without one (openssl pkey -in KEY -out PLAIN)");
    }
    struct err why = {0};
    if (decode_key(id, &block, &why)) {
        return true;
    }
    if (why.kind != ERR_NONE) {
        return err_set(err, why.kind, 0, "%s", why.text);
    }
    return err_set(err, ERR_UNSUPPORTED, 0, "the client's private key cannot be read: RSA of %d to "
                                            "%d "
                   "bits and EC keys of P-256, P-384 and P-521 can be used", RSA_BITS_MIN,
                   RSA_BITS_MAX);
}

/* ---- Do they belong together? */

static bool is_odd(const unsigned char *number, size_t len)
{
    return len > 0 && len <= RSA_FACTOR_BYTES_MAX && (number[len - 1] & 1) != 0;
}

static bool rsa_matches(const br_rsa_private_key *key, const struct public_key *leaf)
{
    unsigned char modulus[RSA_BYTES_MAX];
    if (key->n_bitlen < RSA_BITS_MIN || key->n_bitlen > RSA_BITS_MAX ||
        !is_odd(key->p, key->plen) || !is_odd(key->q, key->qlen)) {
        return false;
    }
    size_t len = br_rsa_compute_modulus_get_default()(modulus, key);
    return leaf->kind == KEY_RSA && len > 0 &&
           str_eq((struct str){(const char *)modulus, len}, leaf->modulus);
}

static bool ec_matches(const br_ec_private_key *key, const struct public_key *leaf)
{
    unsigned char point[POINT_BYTES_MAX];
    static const unsigned char key_bytes[] = {32, 48, 66};
    if (leaf->kind != KEY_EC || key->curve != (int)leaf->curve ||
        key->xlen > key_bytes[leaf->curve - 23]) {
        return false;
    }
    size_t len = br_ec_compute_pub(br_ec_get_default(), NULL, point, key);
    return len > 0 && str_eq((struct str){(const char *)point, len}, leaf->point);
}

static bool check_pair(const struct tls_identity *id, struct err *err)
{
    struct certificate leaf;
    struct str der = {(const char *)id->chain[0].data, id->chain[0].data_len};
    if (!certificate_parse(der, &leaf, NULL)) {
        return err_set(err, ERR_MALFORMED, 0, "the client certificate's file does not begin with "
                                              "an "
                       "X.509 certificate");
    }
    const br_skey_decoder_context *key = &id->key.decoder;
    bool is_rsa = br_skey_decoder_key_type(key) == BR_KEYTYPE_RSA;
    bool matches = is_rsa ? rsa_matches(br_skey_decoder_get_rsa(key), &leaf.key)
                          : ec_matches(br_skey_decoder_get_ec(key), &leaf.key);
    return matches ||
           err_set(err, ERR_USAGE, 0, "the client's private key is not that of its certificate, "
                                      "which has "
                   "to be the first in its file (RSA has to have %d to %d bits)", RSA_BITS_MIN,
                   RSA_BITS_MAX);
}

struct tls_identity *tls_identity_new(struct str chain_pem, struct str key_pem, struct err *err)
{
    struct tls_identity *id = calloc(1, sizeof *id);
    if (id == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory for the client certificate");
        return NULL;
    }
    if (!read_chain(id, chain_pem, err) || !read_key(id, key_pem, err) || !check_pair(id, err)) {
        tls_identity_free(id);
        return NULL;
    }
    return id;
}

void tls_identity_free(struct tls_identity *identity)
{
    if (identity == NULL) {
        return;
    }
    for (size_t i = 0; i < identity->chain_count; i++) {
        free(identity->chain[i].data);
    }
    free(identity->chain);
    explicit_bzero(identity, sizeof *identity);
    free(identity);
}
