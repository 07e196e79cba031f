/* Whether a TLS server is who it should be: collects the certificates it shows, checks names, pins
 * and the chain to a trusted authority, and keeps the reason of a refusal for tls_error.c to put
 * into words. */
#include "deliver/peer.h"

#include "deliver/der.h"

enum { DAYS_TO_1970 = 719528, SECONDS_PER_DAY = 86400 }; /* BearSSL's day 0 is 0000-01-01 */

static struct peer *peer_of(const br_x509_class **ctx)
{
    return (struct peer *)(void *)ctx;
}

static const br_x509_class **minimal_of(struct peer *peer)
{
    return &peer->minimal.vtable;
}

/* ---- What is kept of a certificate */

static void look_at(const unsigned char *der, size_t len, struct peer_facts *out)
{
    struct certificate c;
    *out = (struct peer_facts){0};
    if (!certificate_parse((struct str){(const char *)der, len}, &c, NULL)) {
        return;
    }
    certificate_name_text(c.subject, out->subject);
    certificate_name_text(c.issuer, out->issuer);
    certificate_names_text(&c, out->names);
    der_oid_text(c.critical_oid.len > 0 ? c.critical_oid : c.signature_oid, out->oid,
                 sizeof out->oid);
    out->not_before_s = c.not_before_s;
    out->not_after_s = c.not_after_s;
    out->self_signed = str_eq(c.subject, c.issuer);
}

/* ---- BearSSL's calls, in their order */

/* The server's name is ours to check: BearSSL would not find an address, and would send one as a
 * name. */
static void start_chain(const br_x509_class **ctx, const char *name)
{
    struct peer *peer = peer_of(ctx);
    (void)name;
    peer->started = true;
    peer->count = 0;
    (*minimal_of(peer))->start_chain(minimal_of(peer), NULL);
}

static void start_certificate(const br_x509_class **ctx, uint32_t length)
{
    struct peer *peer = peer_of(ctx);
    peer->der_len = 0;
    peer->too_long = length > sizeof peer->der;
    peer->decided = peer->minimal.err != 0;
    (*minimal_of(peer))->start_cert(minimal_of(peer), length);
}

static void append(const br_x509_class **ctx, const unsigned char *bytes, size_t len)
{
    struct peer *peer = peer_of(ctx);
    if (!peer->too_long && len <= sizeof peer->der - peer->der_len) {
        memcpy(peer->der + peer->der_len, bytes, len);
        peer->der_len += len;
    }
    (*minimal_of(peer))->append(minimal_of(peer), bytes, len);
}

/* Every certificate that is relied on has to let its holder serve, or say nothing about it. */
static bool may_serve(const struct peer *peer)
{
    struct certificate c;
    struct str der = {(const char *)peer->der, peer->der_len};
    return certificate_parse(der, &c, NULL) && c.may_serve;
}

static void end_certificate(const br_x509_class **ctx)
{
    struct peer *peer = peer_of(ctx);
    (*minimal_of(peer))->end_cert(minimal_of(peer));
    if (peer->count++ == 0) {
        memcpy(peer->leaf_der, peer->der, peer->der_len);
        peer->leaf_len = peer->der_len;
        peer->leaf_too_long = peer->too_long;
        look_at(peer->leaf_der, peer->leaf_len, &peer->leaf);
    }
    if (peer->decided) {
        return; /* surplus */
    }
    look_at(peer->der, peer->der_len, &peer->blamed);
    if (peer->verdict == 0 && !peer->too_long && !may_serve(peer)) {
        peer->verdict = PEER_NO_SERVER;
    }
}

static bool is_pinned(const struct trust *trust, struct str key_info)
{
    unsigned char hash[br_sha256_SIZE];
    br_sha256_context sha;
    br_sha256_init(&sha);
    br_sha256_update(&sha, key_info.ptr, key_info.len);
    br_sha256_out(&sha, hash);
    for (size_t i = 0; i < trust->pin_count; i++) {
        if (memcmp(trust->pins[i], hash, sizeof hash) == 0) {
            return true;
        }
    }
    return false;
}

/* Without authorities: all that is needed is a key that this side can verify with. */
static unsigned classify_key(struct peer *peer, const struct certificate *leaf, bool pinned)
{
    if (pinned && !is_pinned(peer->settings->trust, leaf->key_info)) {
        return PEER_NOT_PINNED;
    }
    peer->own_key = tls_key_of(&leaf->key, &peer->key);
    return peer->own_key ? 0 : BR_ERR_X509_UNSUPPORTED;
}

static unsigned classify(struct peer *peer, unsigned minimal)
{
    const struct tls_settings *settings = peer->settings;
    struct str der = {(const char *)peer->leaf_der, peer->leaf_len};
    struct certificate leaf;
    if (peer->leaf_too_long) {
        return PEER_TOO_LONG;
    }
    if (!certificate_parse(der, &leaf, NULL)) {
        return minimal != 0 ? minimal : BR_ERR_X509_UNEXPECTED;
    }
    bool pinned = settings->verify && settings->trust != NULL && settings->trust->pin_count > 0;
    if (!settings->verify || pinned) {
        return classify_key(peer, &leaf, pinned);
    }
    if (minimal != 0) {
        return minimal;
    }
    if (peer->verdict != 0) {
        return peer->verdict;
    }
    return certificate_is_for(&leaf, peer->host) ? 0 : BR_ERR_X509_BAD_SERVER_NAME;
}

static unsigned end_chain(const br_x509_class **ctx)
{
    struct peer *peer = peer_of(ctx);
    unsigned minimal = (*minimal_of(peer))->end_chain(minimal_of(peer));
    peer->verdict = peer->count == 0 ? BR_ERR_X509_EMPTY_CHAIN : classify(peer, minimal);
    return peer->verdict;
}

static const br_x509_pkey *get_key(const br_x509_class *const *ctx, unsigned *usages)
{
    struct peer *peer = (struct peer *)(void *)(uintptr_t)ctx;
    if (peer->own_key) {
        if (usages != NULL) {
            *usages = BR_KEYTYPE_SIGN;
        }
        return &peer->key;
    }
    return peer->verdict == 0 ? peer->minimal.vtable->get_pkey(minimal_of(peer), usages) : NULL;
}

static const br_x509_class peer_class = {
    sizeof(struct peer), start_chain, start_certificate, append, end_certificate, end_chain,
    get_key,
};

static void set_date(br_x509_minimal_context *minimal, uint64_t wall_ns)
{
    uint64_t seconds = wall_ns / 1000000000;
    br_x509_minimal_set_time(minimal, (uint32_t)(seconds / SECONDS_PER_DAY) + DAYS_TO_1970,
                             (uint32_t)(seconds % SECONDS_PER_DAY));
}

void peer_init(struct peer *peer, const struct tls_settings *settings, struct str host)
{
    const struct trust *trust = settings->trust;
    bool any = trust != NULL && trust->anchors.len > 0;
    peer->vtable = &peer_class;
    peer->settings = settings;
    peer->host = host;
    br_x509_minimal_init(&peer->minimal, &br_sha256_vtable, any ? &trust->anchors.at->x : NULL,
                         any ? trust->anchors.len : 0);
    br_x509_minimal_set_rsa(&peer->minimal, br_rsa_pkcs1_vrfy_get_default());
    br_x509_minimal_set_ecdsa(&peer->minimal, br_ec_get_default(),
                              br_ecdsa_vrfy_asn1_get_default());
    br_x509_minimal_set_hash(&peer->minimal, br_sha256_ID, &br_sha256_vtable);
    br_x509_minimal_set_hash(&peer->minimal, br_sha384_ID, &br_sha384_vtable);
    br_x509_minimal_set_hash(&peer->minimal, br_sha512_ID, &br_sha512_vtable);
    br_x509_minimal_set_minrsa(&peer->minimal, RSA_BYTES_MIN);
    set_date(&peer->minimal, settings->wall_ns);
}
