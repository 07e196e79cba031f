#include "deliver/tls13_chain.h"

#include <mbedtls/x509_crt.h>

/* mbedTLS takes keys only from certificates, so an authority, of which no more is kept than name and key, is made one
 * as far as it looks. */
static bool set_key(mbedtls_pk_context *to, const br_x509_pkey *key)
{
    static const mbedtls_ecp_group_id groups[] = {MBEDTLS_ECP_DP_SECP256R1, MBEDTLS_ECP_DP_SECP384R1,
                                                  MBEDTLS_ECP_DP_SECP521R1};
    if (key->key_type == BR_KEYTYPE_RSA) {
        const br_rsa_public_key *rsa = &key->key.rsa;
        return mbedtls_pk_setup(to, mbedtls_pk_info_from_type(MBEDTLS_PK_RSA)) == 0 &&
               mbedtls_rsa_import_raw(mbedtls_pk_rsa(*to), rsa->n, rsa->nlen, NULL, 0, NULL, 0, NULL, 0, rsa->e,
                                      rsa->elen) == 0 &&
               mbedtls_rsa_complete(mbedtls_pk_rsa(*to)) == 0;
    }
    const br_ec_public_key *ec = &key->key.ec;
    mbedtls_ecp_keypair *pair;
    if (mbedtls_pk_setup(to, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)) != 0) {
        return false;
    }
    pair = mbedtls_pk_ec(*to);
    return mbedtls_ecp_group_load(&pair->MBEDTLS_PRIVATE(grp), groups[ec->curve - BR_EC_secp256r1]) == 0 &&
           mbedtls_ecp_point_read_binary(&pair->MBEDTLS_PRIVATE(grp), &pair->MBEDTLS_PRIVATE(Q), ec->q, ec->qlen) == 0;
}

static bool is_same(const mbedtls_x509_buf *name, const unsigned char *bytes, size_t len)
{
    return name->len == len && memcmp(name->p, bytes, len) == 0;
}

/* The name is that of `below`, as its issuer's, and stays its own. */
static unsigned ask_authority(mbedtls_x509_crt *chain, mbedtls_x509_crt *below, const br_x509_trust_anchor *x)
{
    mbedtls_x509_crt authority;
    uint32_t flags = 0;
    unsigned verdict = BR_ERR_X509_NOT_TRUSTED;
    bool is_itself = below == chain && is_same(&below->issuer_raw, below->subject_raw.p, below->subject_raw.len);
    mbedtls_x509_crt_init(&authority);
    authority.version = 3;
    authority.MBEDTLS_PRIVATE(ca_istrue) = is_itself || (x->flags & BR_X509_TA_CA) != 0;
    authority.subject = below->issuer;
    authority.subject_raw = below->issuer_raw;
    if (set_key(&authority.pk, &x->pkey)) {
        bool good = mbedtls_x509_crt_verify(chain, &authority, NULL, NULL, &flags, NULL, NULL) == 0;
        bool unknown = (flags & (MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK)) != 0;
        bool weak = (flags & MBEDTLS_X509_BADCERT_BAD_KEY) != 0;
        verdict = good      ? 0
                  : unknown ? PEER_UNREADABLE
                  : weak    ? BR_ERR_X509_WEAK_PUBLIC_KEY
                            : BR_ERR_X509_NOT_TRUSTED;
    }
    mbedtls_pk_free(&authority.pk);
    return verdict;
}

static unsigned ask_authorities(mbedtls_x509_crt *chain, const struct trust *trust)
{
    unsigned verdict = BR_ERR_X509_NOT_TRUSTED;
    mbedtls_x509_crt *last = chain;
    while (last->next != NULL) {
        last = last->next;
    }
    vec_each(&trust->anchors, a) {
        if (verdict != 0 && is_same(&last->issuer_raw, a->x.dn.data, a->x.dn.len)) {
            verdict = ask_authority(chain, last, &a->x);
        }
    }
    return verdict;
}

unsigned tls13_chain_verify(const struct tls_settings *settings, const struct str *path, unsigned len)
{
    mbedtls_x509_crt chain;
    unsigned verdict = 0;
    mbedtls_x509_crt_init(&chain);
    for (unsigned i = 0; i < len && verdict == 0; i++) {
        const unsigned char *der = (const unsigned char *)path[i].ptr;
        verdict = mbedtls_x509_crt_parse_der_nocopy(&chain, der, path[i].len) == 0 ? 0 : PEER_UNREADABLE;
    }
    if (verdict == 0) {
        verdict = settings->trust == NULL ? BR_ERR_X509_NOT_TRUSTED : ask_authorities(&chain, settings->trust);
    }
    mbedtls_x509_crt_free(&chain);
    return verdict;
}
