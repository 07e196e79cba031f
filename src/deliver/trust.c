/* The authorities that are trusted: added from PEM or from the built-in table, found by the
 * hash of their names, and public keys that are pinned. It owns what was parsed; peer.c asks
 * it. */
#include "deliver/trust.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "deliver/der.h"
#include "deliver/pem.h"
#include "deliver/tls_private.h"

enum {
    ANCHORS_MAX = 4096,              /* distributions ship about 150 */
    CERTIFICATE_BYTES_MAX = 1 << 16, /* the longest known has 3 KB */
};

/* build/roots.c wrote it; see there. */
extern const unsigned char trust_roots[], trust_roots_end[];

static bool is_built_in(const unsigned char *ptr)
{
    return (uintptr_t)ptr >= (uintptr_t)trust_roots && (uintptr_t)ptr < (uintptr_t)trust_roots_end;
}

static unsigned char *bytes_of(struct str text)
{
    return (unsigned char *)(uintptr_t)text.ptr; /* BearSSL's types lack a const */
}

bool tls_key_of(const struct public_key *key, br_x509_pkey *out)
{
    if (key->kind == KEY_RSA && key->modulus.len <= RSA_BYTES_MAX &&
        key->exponent.len <= RSA_BYTES_MAX) {
        out->key_type = BR_KEYTYPE_RSA;
        out->key.rsa = (br_rsa_public_key){bytes_of(key->modulus), key->modulus.len,
                                           bytes_of(key->exponent), key->exponent.len};
        return true;
    }
    if (key->kind == KEY_EC) {
        out->key_type = BR_KEYTYPE_EC;
        out->key.ec =
            (br_ec_public_key){(int)key->curve, bytes_of(key->point), key->point.len};
        return true;
    }
    return false;
}

/* ---- Anchors */

static bool same_bytes(const unsigned char *a, size_t a_len, const unsigned char *b, size_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool same_key(const br_x509_pkey *a, const br_x509_pkey *b)
{
    if (a->key_type != b->key_type) {
        return false;
    }
    if (a->key_type == BR_KEYTYPE_EC) {
        return a->key.ec.curve == b->key.ec.curve &&
               same_bytes(a->key.ec.q, a->key.ec.qlen, b->key.ec.q, b->key.ec.qlen);
    }
    return same_bytes(a->key.rsa.n, a->key.rsa.nlen, b->key.rsa.n, b->key.rsa.nlen) &&
           same_bytes(a->key.rsa.e, a->key.rsa.elen, b->key.rsa.e, b->key.rsa.elen);
}

/* Folders of authorities name each file twice: by what it is and by a hash. */
static bool is_known(const struct trust *trust, const br_x509_trust_anchor *x)
{
    vec_each(&trust->anchors, a) {
        if (a->x.flags == x->flags &&
            same_bytes(a->x.dn.data, a->x.dn.len, x->dn.data, x->dn.len) &&
            same_key(&a->x.pkey, &x->pkey)) {
            return true;
        }
    }
    return false;
}

static void keep(unsigned char **to, unsigned char **field, size_t len)
{
    memcpy(*to, *field, len);
    *field = *to;
    *to += len;
}

/* Lets an anchor own its bytes, in one block that begins with the name. */
static bool own(br_x509_trust_anchor *x)
{
    br_rsa_public_key *rsa = &x->pkey.key.rsa;
    br_ec_public_key *ec = &x->pkey.key.ec;
    bool is_rsa = x->pkey.key_type == BR_KEYTYPE_RSA;
    unsigned char *to = malloc(x->dn.len + (is_rsa ? rsa->nlen + rsa->elen : ec->qlen));
    if (to == NULL) {
        return false;
    }
    keep(&to, &x->dn.data, x->dn.len);
    if (is_rsa) {
        keep(&to, &rsa->n, rsa->nlen);
        keep(&to, &rsa->e, rsa->elen);
    } else {
        keep(&to, &ec->q, ec->qlen);
    }
    return true;
}

/* BearSSL's anchors have no place for them. */
static bool add_limit(struct trust *trust, const struct certificate *c)
{
    struct trust_limit *l = trust->limits.len < ANCHORS_MAX ? vec_push(&trust->limits) : NULL;
    char *to = l != NULL ? malloc(c->subject.len + c->constraints.len) : NULL;
    if (to == NULL) {
        trust->limits.len -= l != NULL;
        return false;
    }
    l->name = (struct str){to, c->subject.len};
    l->constraints = (struct str){to + c->subject.len, c->constraints.len};
    memcpy(to, c->subject.ptr, c->subject.len);
    memcpy(to + c->subject.len, c->constraints.ptr, c->constraints.len);
    return true;
}

static bool add_anchor(struct trust *trust, const struct certificate *c)
{
    br_x509_trust_anchor x = {
        .dn = {bytes_of(c->subject), c->subject.len},
        .flags = c->is_authority ? BR_X509_TA_CA : 0,
    };
    if (!tls_key_of(&c->key, &x.pkey) || trust->anchors.len >= ANCHORS_MAX) {
        return false;
    }
    if (c->constraints.len > 0 && !add_limit(trust, c)) {
        return false;
    }
    if (is_known(trust, &x)) {
        return true;
    }
    struct trust_anchor *a = own(&x) ? vec_push(&trust->anchors) : NULL;
    if (a == NULL) {
        if (x.dn.data != bytes_of(c->subject)) {
            free(x.dn.data);
        }
        return false;
    }
    a->x = x;
    return true;
}

/* One certificate, and behind it what OpenSSL adds to a TRUSTED one. */
static bool add_der(struct trust *trust, struct str bytes)
{
    struct der d = der_of(bytes);
    struct der_element e;
    struct certificate c;
    return der_next(&d, &e) && certificate_parse(e.whole, &c, NULL) && add_anchor(trust, &c);
}

static bool is_certificate(struct str label)
{
    return str_eq(label, STR("CERTIFICATE")) || str_eq(label, STR("X509 CERTIFICATE")) ||
           str_eq(label, STR("TRUSTED CERTIFICATE"));
}

static void name_source(struct trust *trust, const char *source)
{
    size_t used = strlen(trust->source);
    if (strcmp(trust->source, source) != 0) {
        snprintf(trust->source + used, sizeof trust->source - used, "%s%s", used > 0 ? ", " : "",
                 source);
    }
}

static size_t add_blocks(struct trust *trust, struct str pem)
{
    size_t added = 0;
    struct pem_block block;
    while (pem_next(&pem, &block)) {
        size_t room = pem_room(&block);
        unsigned char *der = NULL;
        if (is_certificate(block.label) && room <= CERTIFICATE_BYTES_MAX) {
            der = malloc(room);
        }
        if (der != NULL) {
            size_t len = pem_decode(&block, der);
            added += add_der(trust, (struct str){(const char *)der, len});
        }
        free(der);
    }
    return added;
}

size_t trust_add_pem(struct trust *trust, struct str pem, const char *source)
{
    bool is_der = pem.len > 0 && (unsigned char)pem.ptr[0] == DER_SEQUENCE;
    size_t added = is_der ? add_der(trust, pem) : add_blocks(trust, pem);
    if (added > 0) {
        name_source(trust, source);
    }
    return added;
}

/* ---- What is built in */

static unsigned char *take_bytes(struct cursor *c, size_t len)
{
    return (unsigned char *)(uintptr_t)cursor_take(c, len);
}

/* u16 name, its bytes; u8 kind; RSA: u16 modulus, u8 exponent, both; EC: u8 curve, u8 point, it. */
static bool take_root(struct cursor *c, br_x509_trust_anchor *x)
{
    size_t dn_len = cursor_u16(c);
    x->dn.len = dn_len;
    x->dn.data = take_bytes(c, dn_len);
    x->flags = BR_X509_TA_CA;
    x->pkey.key_type = cursor_u8(c);
    if (x->pkey.key_type == BR_KEYTYPE_RSA) {
        br_rsa_public_key *rsa = &x->pkey.key.rsa;
        rsa->nlen = cursor_u16(c);
        rsa->elen = cursor_u8(c);
        rsa->n = take_bytes(c, rsa->nlen);
        rsa->e = take_bytes(c, rsa->elen);
    } else {
        br_ec_public_key *ec = &x->pkey.key.ec;
        ec->curve = cursor_u8(c);
        ec->qlen = cursor_u8(c);
        ec->q = take_bytes(c, ec->qlen);
    }
    return !c->short_read;
}

size_t trust_add_built_in(struct trust *trust)
{
    struct cursor c = cursor_of(trust_roots, (size_t)(trust_roots_end - trust_roots));
    uint32_t count = cursor_u32(&c), date = cursor_u32(&c);
    br_x509_trust_anchor x = {0};
    size_t added = 0;
    while (added < count && trust->anchors.len < ANCHORS_MAX && take_root(&c, &x)) {
        struct trust_anchor *a = vec_push(&trust->anchors);
        if (a == NULL) {
            break;
        }
        a->x = x;
        added++;
    }
    char source[64];
    snprintf(source, sizeof source, "built in, as of %u-%02u-%02u", date / 10000,
             date / 100 % 100, date % 100);
    name_source(trust, source);
    return added;
}

/* ---- Pins */

bool trust_add_pin(struct trust *trust, struct str text, struct err *err)
{
    static const char form[] = "a pin has the form sha256//BASE64, 44 characters of base64 of a "
                               "public "
                               "key's SHA-256";
    struct str prefix = STR("sha256//");
    unsigned char hash[48];
    text = str_trim(text);
    if (!str_starts(text, prefix) ||
        base64_decode(str_sub(text, prefix.len, text.len), hash, sizeof hash) != 32) {
        return err_set(err, ERR_USAGE, 0, "%s", form);
    }
    if (trust->pin_count == TRUST_PINS_MAX) {
        return err_set(err, ERR_LIMIT, 0, "more than %d pins", TRUST_PINS_MAX);
    }
    memcpy(trust->pins[trust->pin_count++], hash, 32);
    return true;
}

void trust_release(struct trust *trust)
{
    vec_each(&trust->anchors, a) {
        if (!is_built_in(a->x.dn.data)) {
            free(a->x.dn.data);
        }
    }
    vec_each(&trust->limits, l) {
        free((char *)(uintptr_t)l->name.ptr);
    }
    vec_release(&trust->limits);
    vec_release(&trust->anchors);
    *trust = (struct trust){0};
}
