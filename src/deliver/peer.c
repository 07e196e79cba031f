/* Whether a TLS server is who it should be: collects the certificates it shows, puts them in order, checks
 * names, pins and the chain to a trusted authority, and keeps the reason of a refusal for tls_error.c to
 * put into words. */
#include "deliver/peer.h"

#include "base/time.h"
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

static void look_at(struct str der, struct peer_facts *out)
{
    struct certificate c;
    *out = (struct peer_facts){0};
    if (!certificate_parse(der, &c, NULL)) {
        return;
    }
    certificate_name_text(c.subject, out->subject);
    certificate_name_text(c.issuer, out->issuer);
    certificate_names_text(&c, out->names);
    struct str of_kind = c.key.kind == KEY_OTHER ? c.key.oid : c.signature_oid;
    der_oid_text(c.critical_oid.len > 0 ? c.critical_oid : of_kind, out->oid, sizeof out->oid);
    out->not_before_s = c.not_before_s;
    out->not_after_s = c.not_after_s;
    out->self_signed = str_eq(c.subject, c.issuer);
}

/* ---- BearSSL's calls, in their order */

static void start_chain(const br_x509_class **ctx, const char *name)
{
    struct peer *peer = peer_of(ctx);
    (void)name; /* BearSSL would not find an address, and would send one as a name */
    peer->started = true;
    peer->count = 0;
    peer->der_len = 0;
}

static void start_certificate(const br_x509_class **ctx, uint32_t length)
{
    struct peer *peer = peer_of(ctx);
    bool fits = length <= PEER_LEAF_MAX && length <= sizeof peer->der - peer->der_len &&
                peer->count < PEER_CERTIFICATES_MAX;
    peer->room = fits ? length : 0;
    if (peer->count < PEER_CERTIFICATES_MAX) {
        peer->chain[peer->count] = (struct str){(const char *)peer->der + peer->der_len, 0};
    }
    peer->leaf_too_long |= peer->count == 0 && !fits;
}

static void append(const br_x509_class **ctx, const unsigned char *bytes, size_t len)
{
    struct peer *peer = peer_of(ctx);
    if (len > 0 && len <= peer->room) {
        memcpy(peer->der + peer->der_len, bytes, len);
        peer->der_len += len;
        peer->room -= len;
        peer->chain[peer->count].len += len;
    }
}

static void end_certificate(const br_x509_class **ctx)
{
    struct peer *peer = peer_of(ctx);
    if (peer->count++ == 0) {
        look_at(peer->chain[0], &peer->leaf);
        peer->blamed = peer->leaf;
    }
}

/* ---- From the leaf to an authority, by names */

struct path {
    unsigned char at[PEER_CERTIFICATES_MAX]; /* of peer->chain */
    unsigned len;
};

static void feed(struct peer *peer, struct str der)
{
    const br_x509_class **x = minimal_of(peer);
    (*x)->start_cert(x, (uint32_t)der.len);
    (*x)->append(x, (const unsigned char *)der.ptr, der.len);
    (*x)->end_cert(x);
}

/* BearSSL decides at the first authority that it knows; what the path has behind it is surplus. */
static unsigned ask_minimal(struct peer *peer, const struct path *path, struct peer_facts *blamed)
{
    const br_x509_class **x = minimal_of(peer);
    (*x)->start_chain(x, NULL);
    for (peer->relied = 0; peer->relied < path->len && peer->minimal.err == 0; peer->relied++) {
        feed(peer, peer->chain[path->at[peer->relied]]);
    }
    look_at(peer->chain[path->at[peer->relied - 1]], blamed);
    return (*x)->end_chain(x);
}

/* What BearSSL looks at besides signatures, and the second engine does not, of those that are relied on. */
static unsigned ask_contents(const struct peer *peer, const struct path *path, struct peer_facts *blamed)
{
    uint64_t now_s = peer->settings->wall_ns / NS_PER_S;
    for (unsigned i = 0; i < peer->relied; i++) {
        struct certificate c;
        struct str der = peer->chain[path->at[i]];
        bool known = certificate_parse(der, &c, NULL) && c.critical_oid.len == 0;
        if (!known || now_s < c.not_before_s || now_s > c.not_after_s) {
            look_at(der, blamed);
            return known ? BR_ERR_X509_EXPIRED : BR_ERR_X509_CRITICAL_EXTENSION;
        }
    }
    return 0;
}

/* The first authority on the path that is known decides, as with BearSSL. Where the second engine cannot read one
 * either, BearSSL's verdict says why. */
static unsigned ask_second(struct peer *peer, const struct path *path, unsigned verdict, struct peer_facts *blamed)
{
    struct str ders[PEER_CERTIFICATES_MAX];
    bool of_kinds = verdict == BR_ERR_X509_UNSUPPORTED || verdict == BR_ERR_X509_LIMIT_EXCEEDED ||
                    verdict == BR_ERR_X509_WRONG_KEY_TYPE;
    unsigned second = BR_ERR_X509_NOT_TRUSTED;
    if (peer->verify == NULL || !of_kinds) {
        return verdict;
    }
    for (unsigned i = 0; i < path->len && second == BR_ERR_X509_NOT_TRUSTED; i++) {
        ders[i] = peer->chain[path->at[i]];
        second = peer->verify(peer->settings, ders, i + 1);
        peer->relied = i + 1;
    }
    if (second == PEER_UNREADABLE) {
        return verdict;
    }
    look_at(ders[peer->relied - 1], blamed);
    return second != 0 ? second : ask_contents(peer, path, blamed);
}

/* Every certificate that is relied on has to let its holder serve, or say nothing about it. */
static unsigned ask_usages(const struct peer *peer, const struct path *path, struct peer_facts *blamed)
{
    struct certificate c;
    for (unsigned i = 0; i < peer->relied; i++) {
        struct str der = peer->chain[path->at[i]];
        if (!certificate_parse(der, &c, NULL) || !c.may_serve) {
            look_at(der, blamed);
            return PEER_NO_SERVER;
        }
    }
    return 0;
}

/* No authority of the path signs for more than its nameConstraints allow, nor does any trusted one that has the name
 * of who signed the last: which of several that is BearSSL does not tell. */
static unsigned ask_constraints(const struct peer *peer, const struct path *path, struct peer_facts *blamed)
{
    struct certificate leaf, c;
    struct str outside = {NULL, 0};
    (void)certificate_parse(peer->chain[0], &leaf, NULL); /* as it did before */
    c = leaf;
    for (unsigned i = 1; i < peer->relied && certificate_parse(peer->chain[path->at[i]], &c, NULL); i++) {
        if (c.constraints.len > 0 && !certificate_is_within(&leaf, c.constraints, peer->host)) {
            outside = c.subject;
        }
    }
    vec_each(&peer->settings->trust->limits, l) {
        if (str_eq(l->name, c.issuer) && !certificate_is_within(&leaf, l->constraints, peer->host)) {
            outside = l->name;
        }
    }
    if (outside.len == 0) {
        return 0;
    }
    certificate_name_text(outside, blamed->subject);
    return PEER_OUTSIDE;
}

/* A wrong signature may mean only that the path went to a namesake, so another path's reason is the better one. */
static bool is_good(struct peer *peer, const struct path *path)
{
    struct peer_facts blamed;
    unsigned verdict = ask_minimal(peer, path, &blamed);
    verdict = verdict == 0 ? 0 : ask_second(peer, path, verdict, &blamed);
    verdict = verdict != 0 ? verdict : ask_usages(peer, path, &blamed);
    verdict = verdict != 0 ? verdict : ask_constraints(peer, path, &blamed);
    if (peer->paths == 0 || verdict == 0 || peer->verdict == BR_ERR_X509_BAD_SIGNATURE) {
        peer->verdict = verdict;
        peer->blamed = blamed;
    }
    peer->paths++;
    return verdict == 0;
}

/* Has it the name of who signed the path's last one? */
static bool continues(const struct peer *peer, const struct path *path, unsigned i)
{
    struct certificate last, next;
    return memchr(path->at, (int)i, path->len) == NULL &&
           certificate_parse(peer->chain[path->at[path->len - 1]], &last, NULL) &&
           !str_eq(last.issuer, last.subject) && certificate_parse(peer->chain[i], &next, NULL) &&
           str_eq(next.subject, last.issuer);
}

/* Servers send certificates in any order, with others among them, and authorities have namesakes. As deep as
 * there are certificates. */
static bool try_paths(struct peer *peer, struct path *path)
{
    bool at_end = true;
    for (unsigned i = 1; i < peer->count && i < PEER_CERTIFICATES_MAX && peer->paths < PEER_PATHS_MAX; i++) {
        if (!continues(peer, path, i)) {
            continue;
        }
        at_end = false;
        path->at[path->len++] = (unsigned char)i;
        bool good = try_paths(peer, path);
        path->len--;
        if (good) {
            return true;
        }
    }
    return at_end && is_good(peer, path);
}

static unsigned judge(struct peer *peer, const struct certificate *leaf)
{
    struct path path = {.at = {0}, .len = 1};
    peer->paths = 0;
    if (!try_paths(peer, &path)) {
        return peer->verdict;
    }
    return certificate_is_for(leaf, peer->host) ? 0 : BR_ERR_X509_BAD_SERVER_NAME;
}

/* ---- The verdict */

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
    return peer->own_key || peer->verify != NULL ? 0 : BR_ERR_X509_UNSUPPORTED;
}

static unsigned classify(struct peer *peer)
{
    const struct tls_settings *settings = peer->settings;
    struct certificate leaf;
    if (peer->count == 0) {
        return BR_ERR_X509_EMPTY_CHAIN;
    }
    if (peer->leaf_too_long) {
        return PEER_TOO_LONG;
    }
    if (!certificate_parse(peer->chain[0], &leaf, NULL)) {
        return BR_ERR_X509_UNEXPECTED;
    }
    bool pinned = settings->verify && settings->trust != NULL && settings->trust->pin_count > 0;
    return !settings->verify || pinned ? classify_key(peer, &leaf, pinned) : judge(peer, &leaf);
}

static unsigned end_chain(const br_x509_class **ctx)
{
    struct peer *peer = peer_of(ctx);
    peer->verdict = classify(peer);
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
