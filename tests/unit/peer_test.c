/* src/deliver/peer: chains as they come in a handshake, and the sentences of tls_error. */
#include "certificates.h"
#include "deliver/pem.h"
#include "deliver/tls_error.h"
#include "test.h"

#include <errno.h>

#define DECEMBER UINT64_C(1796083200) /* 2026-12-01T00:00:00Z: all are valid */

struct bench {
    struct trust trust;
    struct tls_settings settings;
    struct peer peer;
    struct err err;
};

static struct bench *set_up(const char *authorities)
{
    struct bench *b = calloc(1, sizeof *b);
    trust_add_pem(&b->trust, str_of(authorities), "ca.pem");
    b->settings = (struct tls_settings){.trust = &b->trust, .verify = true};
    b->settings.wall_ns = DECEMBER * 1000000000;
    return b;
}

static void tear_down(struct bench *b)
{
    trust_release(&b->trust);
    free(b);
}

static void hand_in(const br_x509_class **x, const struct pem_block *block)
{
    unsigned char der[2048];
    size_t len = pem_decode(block, der);
    (*x)->start_cert(x, (uint32_t)len);
    for (size_t i = 0; i < len; i += 256)
        (*x)->append(x, der + i, len - i < 256 ? len - i : 256);
    (*x)->end_cert(x);
}

/* The verdict on a chain, as BearSSL asks for it. */
static unsigned judged(struct bench *b, const char *chain, const char *host)
{
    struct str text = str_of(chain);
    struct pem_block block;
    const br_x509_class **x = &b->peer.vtable;
    b->peer = (struct peer){0};
    peer_init(&b->peer, &b->settings, str_of(host));
    (*x)->start_chain(x, host);
    while (pem_next(&text, &block))
        hand_in(x, &block);
    unsigned verdict = (*x)->end_chain(x);
    unsigned usages = 0;
    const br_x509_pkey *key = (*x)->get_pkey(x, &usages);
    CHECK((key != NULL) == (verdict == 0));
    CHECK(verdict != 0 || (usages & BR_KEYTYPE_SIGN) != 0);
    return verdict;
}

static const char *sentence(struct bench *b, int code)
{
    struct tls_failure f = {.code = code, .host = STR("h"), .settings = &b->settings, .peer = &b->peer};
    CHECK(!tls_error(&b->err, &f));
    CHECK_INT(b->err.kind, ERR_NETWORK);
    return b->err.text;
}

static void a_good_chain_is_good(void)
{
    struct bench *b = set_up(ROOT_PEM);
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), 0);
    CHECK_INT(judged(b, NAMED_PEM, "10.1.2.3"), 0);
    CHECK_INT(judged(b, NAMED_PEM, "2001:db8::1"), 0);
    CHECK_INT(judged(b, NAMED_PEM ROOT_PEM, "x.wild.example.com"), 0); /* the root is surplus */
    tear_down(b);
}

static void a_certificate_for_another_host_is_refused(void)
{
    struct bench *b = set_up(ROOT_PEM);
    CHECK_INT(judged(b, NAMED_PEM, "b.example.com"), BR_ERR_X509_BAD_SERVER_NAME);
    CHECK_TEXT(sentence(b, BR_ERR_X509_BAD_SERVER_NAME),
               "TLS with h: the certificate is for a.example.com, *.wild.example.com, 10.1.2.3, "
               "2001:db8::1, not for "
               "this host: use such a name, or get a certificate for it");
    CHECK_INT(b->err.number, EPROTONOSUPPORT);
    CHECK_INT(judged(b, NAMED_PEM, "10.1.2.4"), BR_ERR_X509_BAD_SERVER_NAME);
    tear_down(b);
    b = set_up(OLD_PEM);
    CHECK_INT(judged(b, OLD_PEM, "old.example.com"), BR_ERR_X509_BAD_SERVER_NAME);
    CHECK_TEXT(sentence(b, BR_ERR_X509_BAD_SERVER_NAME),
               "TLS with h: the certificate of old.example.com has no host in its subjectAltName, and the common "
               "name does not count: get one that has this host there, or pin its key");
    tear_down(b);
}

static void dates_are_held_against_the_clock_given(void)
{
    struct bench *b = set_up(ROOT_PEM);
    b->settings.wall_ns = (DECEMBER + UINT64_C(400) * 86400) * 1000000000;
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), BR_ERR_X509_EXPIRED);
    CHECK_TEXT(sentence(b, BR_ERR_X509_EXPIRED),
               "TLS with h: the certificate of cn.example.com expired 2027-11-22T09:16:37, and "
               "this machine's clock says "
               "2028-01-05T00:00:00 (UTC): renew it on the server, or set the clock");
    b->settings.wall_ns = UINT64_C(1795338996) * 1000000000; /* a second too early */
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), BR_ERR_X509_EXPIRED);
    CHECK_TEXT(sentence(b, BR_ERR_X509_EXPIRED),
               "TLS with h: the certificate of cn.example.com is valid only from "
               "2026-11-22T09:16:37, and this machine's "
               "clock says 2026-11-22T09:16:36 (UTC): set the clock, or wait");
    b->settings.wall_ns += 1000000000;
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), 0);
    tear_down(b);
}

static void an_unknown_authority_is_named(void)
{
    struct bench *b = set_up(RSA_PEM);
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), BR_ERR_X509_NOT_TRUSTED);
    CHECK_TEXT(sentence(b, BR_ERR_X509_NOT_TRUSTED),
               "TLS with h: the authority \"Test Root\" is unknown, of 1 known ones (ca.pem): give "
               "its certificate with "
               "--ca-file, or let the server send the intermediate ones");
    CHECK_INT(judged(b, OLD_PEM, "old.example.com"), BR_ERR_X509_NOT_TRUSTED);
    CHECK_TEXT(sentence(b, BR_ERR_X509_NOT_TRUSTED),
               "TLS with h: the certificate of old.example.com is signed by itself and not among "
               "the 1 known authorities "
               "(ca.pem): give it with --ca-file");
    tear_down(b);
    b = set_up("");
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), BR_ERR_X509_NOT_TRUSTED);
    CHECK(strstr(sentence(b, BR_ERR_X509_NOT_TRUSTED), "no authority is known") != NULL);
    tear_down(b);
}

static void a_certificate_that_is_given_itself_is_good(void)
{
    struct bench *b = set_up(NAMED_PEM); /* no authority, and not signed by itself: trusted as it is */
    CHECK_INT(judged(b, NAMED_PEM, "a.example.com"), 0);
    CHECK_INT(judged(b, NAMED_PEM, "b.example.com"), BR_ERR_X509_BAD_SERVER_NAME);
    tear_down(b);
}

static void a_clients_certificate_is_no_servers(void)
{
    struct bench *b = set_up(ROOT_PEM);
    CHECK_INT(judged(b, CLIENT_PEM, "client.example.com"), PEER_NO_SERVER);
    CHECK_TEXT(sentence(b, PEER_NO_SERVER),
               "TLS with h: the certificate of client.example.com may not be a server's "
               "(extendedKeyUsage): it needs "
               "serverAuth");
    tear_down(b);
}

static void a_critical_extension_that_is_not_known_is_named(void)
{
    struct bench *b = set_up(RSA_PEM);
    CHECK_INT(judged(b, CONSTRAINED_PEM, "x"), BR_ERR_X509_CRITICAL_EXTENSION);
    CHECK_TEXT(sentence(b, BR_ERR_X509_CRITICAL_EXTENSION),
               "TLS with h: the certificate of Constrained CA has a critical extension, 2.5.29.30 "
               "(nameConstraints), that "
               "is not known here: give it or what it signed with --ca-file, or pin the server's "
               "key");
    tear_down(b);
}

/* As OpenSSL takes them: whatever order the server sends behind its own certificate. */
static void a_chain_in_any_order_is_good(void)
{
    static const char *const chains[] = {
        LEAF_PEM LOWER_PEM UPPER_PEM,
        LEAF_PEM UPPER_PEM LOWER_PEM,                    /* swapped */
        LEAF_PEM TOP_PEM UPPER_PEM LOWER_PEM,            /* with the root, in the opposite order */
        LEAF_PEM NAMED_PEM LEAF_PEM LOWER_PEM UPPER_PEM, /* what does not belong, and one twice */
        LEAF_PEM LOWER_PEM DECOY_PEM UPPER_PEM,          /* of two with the same name one has signed */
    };
    struct bench *b = set_up(TOP_PEM);
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        CHECK_INT(judged(b, chains[i], "a.good.example.com"), 0);
        CHECK_INT(b->peer.relied, 3);
    }
    tear_down(b);
}

static void a_chain_with_a_gap_is_refused(void)
{
    struct bench *b = set_up(TOP_PEM);
    CHECK_INT(judged(b, LEAF_PEM UPPER_PEM TOP_PEM, "a.good.example.com"), BR_ERR_X509_NOT_TRUSTED);
    CHECK(strstr(sentence(b, BR_ERR_X509_NOT_TRUSTED), "the authority \"Lower\" is unknown") != NULL);
    CHECK(strstr(b->err.text, "or let the server send the intermediate ones") != NULL);
    CHECK_INT(judged(b, UPPER_PEM LOWER_PEM LEAF_PEM, "a.good.example.com"), BR_ERR_X509_BAD_SERVER_NAME);
    tear_down(b);
}

/* Each name may be that of any other: what is tried is bounded. */
static void a_maze_of_names_has_an_end(void)
{
    struct bench *b = set_up(ROOT_PEM);
    CHECK_INT(judged(b, LEAF_PEM LOWER_PEM LOWER_PEM LOWER_PEM LOWER_PEM UPPER_PEM UPPER_PEM UPPER_PEM UPPER_PEM
                     DECOY_PEM DECOY_PEM DECOY_PEM DECOY_PEM TOP_PEM TOP_PEM TOP_PEM TOP_PEM TOP_PEM,
                     "a.good.example.com"), BR_ERR_X509_NOT_TRUSTED);
    CHECK_INT(b->peer.paths, PEER_PATHS_MAX);
    CHECK_INT(b->peer.count, 18);
    tear_down(b);
}

static void an_authority_keeps_to_its_names(void)
{
    static const char *const roots[] = {TOP_PEM, LOWER_PEM}; /* one of the chain; the one that is trusted */
    for (size_t i = 0; i < 2; i++) {
        struct bench *b = set_up(roots[i]);
        CHECK_INT(judged(b, LEAF_PEM LOWER_PEM UPPER_PEM, "a.good.example.com"), 0);
        CHECK_INT(judged(b, LEAF_PEM LOWER_PEM UPPER_PEM, "10.9.9.9"), 0);
        CHECK_INT(judged(b, LEAF_PEM LOWER_PEM UPPER_PEM, "bad.good.example.com"), PEER_OUTSIDE);
        CHECK_INT(judged(b, STRAY_PEM LOWER_PEM UPPER_PEM, "elsewhere.example.com"), PEER_OUTSIDE);
        CHECK_TEXT(sentence(b, PEER_OUTSIDE),
                   "TLS with h: the authority \"Lower\" may not sign for all names of the certificate "
                   "(a.good.example.com, elsewhere.example.com, 192.0.2.1) and this host (its nameConstraints): get "
                   "one of another authority, or pin the server's key");
        tear_down(b);
    }
}

static void a_pinned_key_is_good_whoever_signed_it(void)
{
    struct bench *b = set_up("");
    CHECK(trust_add_pin(&b->trust, STR(NAMED_PIN), NULL));
    b->settings.wall_ns = 0; /* nor do dates and names matter */
    CHECK_INT(judged(b, NAMED_PEM, "elsewhere"), 0);
    CHECK_INT(b->peer.key.key_type, BR_KEYTYPE_EC);
    tear_down(b);
}

static void with_a_pin_every_other_key_is_refused(void)
{
    struct bench *b = set_up(ROOT_PEM OLD_PEM);
    CHECK(trust_add_pin(&b->trust, STR(NAMED_PIN), NULL));
    CHECK_INT(judged(b, OLD_PEM, "old.example.com"), PEER_NOT_PINNED);
    CHECK_TEXT(sentence(b, PEER_NOT_PINNED),
               "TLS with h: the key of old.example.com is none of the 1 pinned ones: is this the "
               "server, or did its key "
               "change?");
    tear_down(b);
}

static void without_verifying_any_certificate_will_do(void)
{
    struct bench *b = set_up("");
    b->settings.verify = false;
    CHECK_INT(judged(b, OLD_PEM, "x"), 0);
    CHECK_INT(judged(b, RSA_PEM, "x"), 0);
    CHECK_INT(b->peer.key.key_type, BR_KEYTYPE_RSA);
    CHECK_INT(judged(b, CLIENT_PEM, "x"), 0);
    tear_down(b);
}

static void a_damaged_signature_is_refused(void)
{
    /* The last byte of NAMED's signature is within its last base64 line. */
    char damaged[] = NAMED_PEM;
    struct bench *b = set_up(ROOT_PEM);
    char *end = strstr(damaged, "\n-----END");
    while (*end == '\n' || *end == '=')
        end--;
    end -= 4;
    *end = *end == 'A' ? 'B' : 'A';
    CHECK_INT(judged(b, damaged, "a.example.com"), BR_ERR_X509_NOT_TRUSTED);
    tear_down(b);
}

static void no_certificate_and_rubbish_are_refused(void)
{
    struct bench *b = set_up(ROOT_PEM);
    CHECK_INT(judged(b, "", "x"), BR_ERR_X509_EMPTY_CHAIN);
    CHECK(judged(b, "-----BEGIN X-----\nYWJjZA==\n-----END X-----\n", "x") != 0);
    b->settings.verify = false;
    CHECK(judged(b, "-----BEGIN X-----\nYWJjZA==\n-----END X-----\n", "x") != 0);
    tear_down(b);
}

static void a_certificate_too_long_to_look_into_is_refused(void)
{
    struct bench *b = set_up("");
    const br_x509_class **x = &b->peer.vtable;
    unsigned char zeros[256] = {0x30, 0x82, 0x50, 0x00};
    b->settings.verify = false;
    peer_init(&b->peer, &b->settings, STR("x"));
    (*x)->start_chain(x, NULL);
    (*x)->start_cert(x, 0x5004); /* 20 KB */
    for (unsigned i = 0; i < 0x50; i++)
        (*x)->append(x, zeros, sizeof zeros);
    (*x)->append(x, zeros, 4);
    (*x)->end_cert(x);
    CHECK_INT((*x)->end_chain(x), PEER_TOO_LONG);
    tear_down(b);
}

TESTS({"a good chain is good", a_good_chain_is_good},
      {"a certificate for another host is refused", a_certificate_for_another_host_is_refused},
      {"dates are held against the clock given", dates_are_held_against_the_clock_given},
      {"an unknown authority is named", an_unknown_authority_is_named},
      {"a certificate that is given itself is good", a_certificate_that_is_given_itself_is_good},
      {"a client's certificate is no server's", a_clients_certificate_is_no_servers},
      {"a critical extension that is not known is named", a_critical_extension_that_is_not_known_is_named},
      {"a chain in any order is good", a_chain_in_any_order_is_good},
      {"a chain with a gap is refused", a_chain_with_a_gap_is_refused},
      {"a maze of names has an end", a_maze_of_names_has_an_end},
      {"an authority keeps to its names", an_authority_keeps_to_its_names},
      {"a pinned key is good whoever signed it", a_pinned_key_is_good_whoever_signed_it},
      {"with a pin every other key is refused", with_a_pin_every_other_key_is_refused},
      {"without verifying any certificate will do", without_verifying_any_certificate_will_do},
      {"a damaged signature is refused", a_damaged_signature_is_refused},
      {"no certificate and rubbish are refused", no_certificate_and_rubbish_are_refused},
      {"a certificate too long to look into is refused", a_certificate_too_long_to_look_into_is_refused})
