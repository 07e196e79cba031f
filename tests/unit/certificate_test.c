/* src/deliver/certificate and der. */
#include "certificates.h"
#include "deliver/certificate.h"
#include "deliver/der.h"
#include "deliver/pem.h"
#include "test.h"

enum { ROOM = 4096 };

struct decoded {
    unsigned char der[ROOM];
    size_t len;
};

static struct str der_of_pem(const char *pem, struct decoded *out)
{
    struct str text = str_of(pem);
    struct pem_block block;
    CHECK(pem_next(&text, &block) && pem_room(&block) <= sizeof out->der);
    out->len = pem_decode(&block, out->der);
    return (struct str){(const char *)out->der, out->len};
}

static struct certificate parsed(const char *pem, struct decoded *room)
{
    struct certificate c = {0};
    CHECK(certificate_parse(der_of_pem(pem, room), &c, NULL));
    return c;
}

static bool is_for(const struct certificate *c, const char *host)
{
    return certificate_is_for(c, str_of(host));
}

static void a_certificate_is_taken_apart(void)
{
    struct decoded room;
    char text[CERTIFICATE_TEXT_MAX];
    struct certificate c = parsed(NAMED_PEM, &room);
    certificate_name_text(c.subject, text);
    CHECK_TEXT(text, "cn.example.com");
    certificate_name_text(c.issuer, text);
    CHECK_TEXT(text, "Test Root");
    CHECK_INT(c.not_before_s, 1795338997); /* 2026-11-22T09:16:37Z */
    CHECK_INT(c.not_after_s - c.not_before_s, 365 * 86400);
    CHECK_INT(c.key.kind, KEY_EC);
    CHECK_INT(c.key.curve, 23);
    CHECK_INT(c.key.point.len, 65);
    CHECK(c.names.len > 0 && c.may_serve && !c.is_authority && c.critical_oid.len == 0);
    der_oid_text(c.signature_oid, text, sizeof text);
    CHECK_TEXT(text, "1.2.840.10045.4.3.2"); /* ecdsa-with-SHA256 */
}

static void an_rsa_key_has_no_leading_zeros(void)
{
    struct decoded room;
    struct certificate c = parsed(RSA_PEM, &room);
    CHECK_INT(c.key.kind, KEY_RSA);
    CHECK_INT(c.key.modulus.len, 256);
    CHECK_INT(c.key.exponent.len, 3);
    CHECK(memcmp(c.key.exponent.ptr, "\x01\x00\x01", 3) == 0);
    CHECK(c.is_authority && c.may_serve);
}

static void what_a_certificate_may_be_is_read(void)
{
    struct decoded room;
    char oid[32];
    struct certificate c = parsed(CLIENT_PEM, &room);
    CHECK(!c.may_serve && c.key.curve == 24);
    c = parsed(CONSTRAINED_PEM, &room);
    CHECK(c.is_authority);
    der_oid_text(c.critical_oid, oid, sizeof oid);
    CHECK_TEXT(oid, "2.5.29.30");
    c = parsed(OLD_PEM, &room); /* version 1 has no way to say that it is one */
    CHECK(c.is_authority && c.names.len == 0 && c.may_serve);
}

static void names_are_compared_without_case(void)
{
    struct decoded room;
    struct certificate c = parsed(NAMED_PEM, &room);
    CHECK(is_for(&c, "a.example.com") && is_for(&c, "A.EXAMPLE.com"));
    CHECK(!is_for(&c, "b.example.com") && !is_for(&c, "xa.example.com") && !is_for(&c, ""));
    CHECK(!is_for(&c, "a.example.com.evil") && !is_for(&c, "a.example.co"));
}

static void a_star_is_one_label(void)
{
    struct decoded room;
    struct certificate c = parsed(NAMED_PEM, &room);
    CHECK(is_for(&c, "x.wild.example.com") && is_for(&c, "X.Wild.Example.Com"));
    CHECK(!is_for(&c, "x.y.wild.example.com"));
    CHECK(!is_for(&c, "wild.example.com"));
    CHECK(!is_for(&c, ".wild.example.com"));
    CHECK(!is_for(&c, "*"));
}

static void addresses_are_compared_as_addresses(void)
{
    struct decoded room;
    struct certificate c = parsed(NAMED_PEM, &room);
    CHECK(is_for(&c, "10.1.2.3") && !is_for(&c, "10.1.2.4"));
    CHECK(is_for(&c, "2001:db8::1") && is_for(&c, "2001:0DB8:0:0:0:0:0:1"));
    CHECK(!is_for(&c, "2001:db8::2") && !is_for(&c, "::ffff:10.1.2.3"));
    /* 0x0a010203 as a host name that ends in dNSName bytes must not count as the address. */
    CHECK(!is_for(&c, "\x0a\x01\x02\x03"));
}

static void the_common_name_never_counts(void)
{
    struct decoded room;
    struct certificate c = parsed(NAMED_PEM, &room);
    CHECK(!is_for(&c, "cn.example.com"));
    c = parsed(OLD_PEM, &room);
    CHECK(!is_for(&c, "old.example.com") && !is_for(&c, "XX"));
}

/* The pattern of a SAN of one entry, put together by hand: 82 is dNSName. */
static bool pattern_is_for(const char *entry, size_t len, const char *host)
{
    struct certificate c = {.names = {entry, len}};
    return is_for(&c, host);
}

static void patterns_that_would_take_too_much_take_nothing(void)
{
    CHECK(pattern_is_for("\x82\x07*.b.com", 9, "a.b.com"));
    CHECK(!pattern_is_for("\x82\x05*.com", 7, "b.com"));
    CHECK(!pattern_is_for("\x82\x01*", 3, "localhost"));
    CHECK(!pattern_is_for("\x82\x08" "a*.b.com", 10, "ax.b.com"));
    CHECK(!pattern_is_for("\x82\x09" "a.*.b.com", 11, "a.x.b.com"));
    /* A NUL does not end a name. */
    CHECK(!pattern_is_for("\x82\x0d" "a.b.com\0.evil", 15, "a.b.com"));
    /* An entry that is longer than the list holds nothing. */
    CHECK(!pattern_is_for("\x82\x08" "a.b.com", 9, "a.b.com"));
}

/* What LOWER's nameConstraints, or others put together by hand, say of a certificate with one name. */
static bool within(const char *constraints, size_t len, const char *entry, size_t entry_len, const char *host)
{
    struct certificate c = {.names = {entry, entry_len}};
    return certificate_is_within(&c, (struct str){constraints, len}, str_of(host));
}

static void name_constraints_are_read_as_in_rfc_5280(void)
{
    struct decoded room, leaf_room, stray_room;
    struct certificate lower = parsed(LOWER_PEM, &room);
    struct certificate leaf = parsed(LEAF_PEM, &leaf_room), stray = parsed(STRAY_PEM, &stray_room);
    CHECK(lower.constraints.len > 0 && leaf.constraints.len == 0);
    static const char *const good[] = {"a.good.example.com", "good.example.com", "GOOD.Example.com", "10.9.9.9"};
    static const char *const bad[] = {"bad.good.example.com", "x.bad.good.example.com", "notgood.example.com",
                                      "example.com", "11.9.9.9", "2001:db8::1"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        CHECK(certificate_is_within(&leaf, lower.constraints, str_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!certificate_is_within(&leaf, lower.constraints, str_of(bad[i])));
    /* Names beside that of the host count, too. */
    CHECK(!certificate_is_within(&stray, lower.constraints, STR("a.good.example.com")));
}

static void name_constraints_by_hand(void)
{
    static const char dotted[] = "\x30\x0a\xa0\x08\x30\x06\x82\x04.b.c"; /* below b.c, not b.c */
    CHECK(within(dotted, 12, "", 0, "a.b.c") && !within(dotted, 12, "", 0, "b.c"));
    CHECK(within(dotted, 12, "\x82\x05" "x.b.c", 7, "a.b.c") && !within(dotted, 12, "\x82\x01x", 3, "a.b.c"));
    CHECK(within(dotted, 12, "", 0, "10.0.0.1")); /* says nothing of addresses */
    static const char nothing[] = "\x30\x06\xa1\x04\x30\x02\x82\x00"; /* no name at all */
    CHECK(!within(nothing, 8, "", 0, "a.b.c") && within(nothing, 8, "", 0, "10.0.0.1"));
    static const char mail[] = "\x30\x07\xa0\x05\x30\x03\x81\x01x"; /* of another kind alone */
    CHECK(within(mail, 9, "", 0, "a.b.c"));
    static const char odd[] = "\x30\x0a\xa0\x08\x30\x06\x87\x04\x0a\0\0"; /* an address without its mask */
    CHECK(!within(odd, 12, "", 0, "10.0.0.1"));
    for (size_t len = 1; len < 12; len++) /* what is cut permits nothing */
        CHECK(!within(dotted, len, "", 0, "a.b.c"));
}

static void names_are_listed_for_sentences(void)
{
    struct decoded room;
    char text[CERTIFICATE_TEXT_MAX];
    struct certificate c = parsed(NAMED_PEM, &room);
    certificate_names_text(&c, text);
    CHECK_TEXT(text, "a.example.com, *.wild.example.com, 10.1.2.3, 2001:db8::1");
    c = parsed(OLD_PEM, &room);
    certificate_names_text(&c, text);
    CHECK_TEXT(text, "");
    c = (struct certificate){ .names = {"\x82\x03" "a\x1b\n", 5}};
    certificate_names_text(&c, text);
    CHECK_TEXT(text, "a??");
    c.names = (struct str){NULL, 0};
    certificate_names_text(&c, text);
    CHECK_TEXT(text, "");
}

static void a_long_list_of_names_ends_in_dots(void)
{
    char entries[40 * 12], text[CERTIFICATE_TEXT_MAX];
    for (size_t i = 0; i < 40; i++)
        memcpy(entries + 12 * i, "\x82\x0a" "aaaa.b.com", 12);
    struct certificate c = {.names = {entries, sizeof entries}};
    certificate_names_text(&c, text);
    CHECK(str_ends(str_of(text), STR("aaaa.b.com, ...")));
    CHECK(strlen(text) < CERTIFICATE_TEXT_MAX);
}

static void every_cut_of_a_certificate_is_refused(void)
{
    struct decoded room;
    struct certificate c;
    struct str der = der_of_pem(NAMED_PEM, &room);
    for (size_t len = 0; len < der.len; len++) {
        unsigned char *exact = malloc(len + 1); /* the sanitizer sees a byte read too far */
        memcpy(exact, der.ptr, len);
        CHECK(!certificate_parse((struct str){(const char *)exact, len}, &c, NULL));
        free(exact);
    }
}

static void dates_are_of_both_forms(void)
{
    /* The parser of dates is reached through a whole certificate: NAMED with another form put in
     * its place. */
    struct decoded room;
    struct certificate c = {0};
    struct str der = der_of_pem(NAMED_PEM, &room);
    static const char date[] = "\x17\x0d" "261122091637Z";
    unsigned char *at = memmem(room.der, der.len, date, sizeof date - 1);
    CHECK(at != NULL);
    memcpy(at + 2, "991231235959Z", 13);
    CHECK(certificate_parse(der, &c, NULL));
    CHECK_INT(c.not_before_s, 946684799); /* 1999-12-31T23:59:59Z */
    memcpy(at + 2, "000229000000Z", 13);
    CHECK(certificate_parse(der, &c, NULL));
    CHECK_INT(c.not_before_s, 951782400); /* 2000-02-29 */
    memcpy(at + 2, "001329000000Z", 13);
    CHECK(!certificate_parse(der, &c, NULL));
    memcpy(at + 2, "00010100000xZ", 13);
    CHECK(!certificate_parse(der, &c, NULL));
}

static void lengths_are_bounded(void)
{
    struct der_element e;
    struct der d = der_of((struct str){"\x30\x80\x00\x00", 4}); /* not definite */
    CHECK(!der_next(&d, &e) && d.bad);
    d = der_of((struct str){"\x30\x84\x00\x00\x00\x01\x00", 7}); /* four bytes of length */
    CHECK(!der_next(&d, &e) && d.bad);
    d = der_of((struct str){"\x1f\x81\x01\x00", 4}); /* a tag of several bytes */
    CHECK(!der_next(&d, &e) && d.bad);
    d = der_of((struct str){"\x04\x02" "a", 3});
    CHECK(!der_next(&d, &e) && d.bad);
    d = der_of((struct str){"\x04\x81\x01" "a\x05\x00", 6});
    CHECK(der_next(&d, &e) && e.value.len == 1 && e.whole.len == 4);
    CHECK(der_next(&d, &e) && e.tag == 5 && e.value.len == 0);
    CHECK(!der_next(&d, &e) && !d.bad); /* the end is no error */
}

static void object_identifiers_are_written_as_numbers(void)
{
    char text[32], little[8];
    der_oid_text((struct str){"\x55\x1d\x1e", 3}, text, sizeof text);
    CHECK_TEXT(text, "2.5.29.30");
    der_oid_text((struct str){"\x2a\x86\x48\x86\xf7\x0d", 6}, text, sizeof text);
    CHECK_TEXT(text, "1.2.840.113549");
    der_oid_text((struct str){"\x88\x37\x03", 3}, text, sizeof text);
    CHECK_TEXT(text, "2.999.3");
    der_oid_text((struct str){"\x2a\x86\x48\x86\xf7\x0d", 6}, little, sizeof little);
    CHECK_TEXT(little, "1.2.840");
    der_oid_text((struct str){NULL, 0}, text, sizeof text);
    CHECK_TEXT(text, "");
}

TESTS({"a certificate is taken apart", a_certificate_is_taken_apart},
      {"an RSA key has no leading zeros", an_rsa_key_has_no_leading_zeros},
      {"what a certificate may be is read", what_a_certificate_may_be_is_read},
      {"names are compared without case", names_are_compared_without_case},
      {"a star is one label", a_star_is_one_label},
      {"addresses are compared as addresses", addresses_are_compared_as_addresses},
      {"the common name never counts", the_common_name_never_counts},
      {"patterns that would take too much take nothing", patterns_that_would_take_too_much_take_nothing},
      {"name constraints are read as in RFC 5280", name_constraints_are_read_as_in_rfc_5280},
      {"name constraints by hand", name_constraints_by_hand},
      {"names are listed for sentences", names_are_listed_for_sentences},
      {"a long list of names ends in dots", a_long_list_of_names_ends_in_dots},
      {"every cut of a certificate is refused", every_cut_of_a_certificate_is_refused},
      {"dates are of both forms", dates_are_of_both_forms},
      {"lengths are bounded", lengths_are_bounded},
      {"object identifiers are written as numbers", object_identifiers_are_written_as_numbers})
