/* src/deliver/trust and pem. */
#include "certificates.h"
#include "deliver/pem.h"
#include "deliver/tls_private.h"
#include "test.h"

static size_t base64(const char *text, unsigned char *out, size_t room)
{
    return base64_decode(str_of(text), out, room);
}

static void base64_is_decoded_strictly(void)
{
    unsigned char out[8];
    CHECK_INT(base64("aGVsbG8=", out, 8), 5);
    CHECK(memcmp(out, "hello", 5) == 0);
    CHECK_INT(base64("aGVs\r\n bG8=\n", out, 8), 5);
    CHECK_INT(base64("aA==", out, 8), 1);
    CHECK_INT(base64("", out, 8), 0);
    CHECK_INT(base64("aGVsbG8", out, 8), 0);   /* cut */
    CHECK_INT(base64("aGVs*G8=", out, 8), 0);
    CHECK_INT(base64("aA==aA==", out, 8), 0);  /* something behind the end */
    CHECK_INT(base64("a===", out, 8), 0);
    CHECK_INT(base64("aGVsbG8=", out, 4), 0);  /* no room */
}

static void blocks_are_found_among_other_text(void)
{
    struct str text = STR("# a comment\nsubject=x\n-----BEGIN A-----\nYQ==\n-----END A-----\n\n"
                          "-----BEGIN B B-----\r\nYg==\r\n-----END B B-----");
    struct pem_block b;
    unsigned char out[16];
    CHECK(pem_next(&text, &b));
    CHECK_STR(b.label, "A");
    CHECK(pem_decode(&b, out) == 1 && out[0] == 'a');
    CHECK(pem_next(&text, &b)); /* without a final line end */
    CHECK_STR(b.label, "B B");
    CHECK(pem_decode(&b, out) == 1 && out[0] == 'b');
    CHECK(!pem_next(&text, &b));
}

static void a_block_without_an_end_is_none(void)
{
    struct pem_block b;
    struct str text = STR("-----BEGIN A-----\nYQ==\n");
    CHECK(!pem_next(&text, &b));
    text = STR("-----BEGIN A-----\nYQ==\n-----END B-----\n");
    CHECK(!pem_next(&text, &b));
    text = STR("-----BEGIN A-----");
    CHECK(!pem_next(&text, &b));
    text = STR("");
    CHECK(!pem_next(&text, &b));
}

static void old_heads_are_passed_over(void)
{
    struct pem_block b;
    unsigned char out[16];
    struct str text = STR("-----BEGIN K-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "
                          "X,1\n\nYQ==\n-----END K-----\n");
    CHECK(pem_next(&text, &b) && b.encrypted);
    CHECK_INT(pem_decode(&b, out), 1);
}

static void a_bundle_is_taken_and_what_is_no_certificate_passed_over(void)
{
    struct trust t = {0};
    CHECK_INT(trust_add_pem(&t, STR(NAMED_KEY ROOT_PEM "-----BEGIN CERTIFICATE-----\nYQ==\n"
                                    "-----END CERTIFICATE-----\n" RSA_PEM), "bundle.pem"), 2);
    CHECK_INT(t.anchors.len, 2);
    CHECK_TEXT(t.source, "bundle.pem");
    const br_x509_trust_anchor *root = &t.anchors.at[0].x, *rsa = &t.anchors.at[1].x;
    CHECK_INT(root->flags, BR_X509_TA_CA);
    CHECK_INT(root->pkey.key_type, BR_KEYTYPE_EC);
    CHECK_INT(root->dn.data[0], 0x30);
    CHECK_INT(rsa->pkey.key_type, BR_KEYTYPE_RSA);
    CHECK_INT(rsa->pkey.key.rsa.nlen, 256);
    trust_release(&t);
    CHECK_INT(t.anchors.len, 0);
}

static void a_certificate_that_is_there_twice_is_kept_once(void)
{
    struct trust t = {0};
    CHECK_INT(trust_add_pem(&t, STR(ROOT_PEM ROOT_PEM), "/etc/ssl/certs"), 2);
    CHECK_INT(trust_add_pem(&t, STR(ROOT_PEM), "/etc/ssl/certs"), 1);
    CHECK_INT(t.anchors.len, 1);
    CHECK_TEXT(t.source, "/etc/ssl/certs");
    trust_release(&t);
}

static void a_text_without_certificates_changes_nothing(void)
{
    struct trust t = {0};
    CHECK_INT(trust_add_pem(&t, STR(NAMED_KEY), "a.key"), 0);
    CHECK_INT(trust_add_pem(&t, STR(""), "empty"), 0);
    CHECK_TEXT(t.source, "");
    trust_release(&t);
}

/* One line without its end, labels of other tools, trailing data of OpenSSL's TRUSTED form, and
 * DER. */
static void every_usual_form_is_taken(void)
{
    struct trust t = {0};
    struct str pem = STR(OLD_PEM);
    CHECK_INT(trust_add_pem(&t, str_sub(pem, 0, pem.len - 1), "a"), 1);
    struct pem_block block;
    unsigned char der[2048];
    CHECK(pem_next(&pem, &block));
    size_t len = pem_decode(&block, der);
    memcpy(der + len, "\x30\x00", 2);
    CHECK_INT(trust_add_pem(&t, (struct str){(const char *)der, len + 2}, "b"), 1);
    struct buf text;
    buf_init(&text, 4096);
    buf_text(&text, "-----BEGIN TRUSTED CERTIFICATE-----\n");
    buf_str(&text, block.base64);
    buf_text(&text, "-----END TRUSTED CERTIFICATE-----\n");
    CHECK_INT(trust_add_pem(&t, buf_slice(&text), "c"), 1);
    buf_release(&text);
    CHECK_TEXT(t.source, "a, b, c");
    CHECK_INT(t.anchors.len, 1);
    trust_release(&t);
}

static void many_sources_are_named_as_far_as_there_is_room(void)
{
    struct trust t = {0};
    char name[64];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "/a/folder/certificate%d.pem", i);
        CHECK_INT(trust_add_pem(&t, STR(ROOT_PEM), name), 1);
    }
    CHECK_INT(strlen(t.source), sizeof t.source - 1);
    trust_release(&t);
}

static const br_x509_trust_anchor *anchor_named(const struct trust *t, struct str name)
{
    for (size_t i = 0; i < t->anchors.len; i++) {
        const br_x509_trust_anchor *x = &t->anchors.at[i].x;
        if (memmem(x->dn.data, x->dn.len, name.ptr, name.len) != NULL)
            return x;
    }
    return NULL;
}

static void those_built_in_are_mozillas(void)
{
    struct trust t = {0};
    size_t added = trust_add_built_in(&t);
    CHECK(added > 100 && added < 200);
    CHECK_INT(t.anchors.len, added);
    CHECK(str_starts(str_of(t.source), STR("built in, as of 20")));
    const br_x509_trust_anchor *x1 = anchor_named(&t, STR("ISRG Root X1"));
    const br_x509_trust_anchor *x2 = anchor_named(&t, STR("ISRG Root X2"));
    CHECK(x1 != NULL && x2 != NULL);
    CHECK_INT(x1->pkey.key_type, BR_KEYTYPE_RSA);
    CHECK_INT(x1->pkey.key.rsa.nlen, 512);
    CHECK_INT(x1->pkey.key.rsa.elen, 3);
    CHECK_INT(x2->pkey.key_type, BR_KEYTYPE_EC);
    CHECK_INT(x2->pkey.key.ec.curve, 24); /* P-384 */
    /* Distrusted from 2024-12-01 on: what it had signed has run out. */
    CHECK(anchor_named(&t, STR("Entrust Root Certification Authority - G2")) == NULL);
    /* A user's own is added to them. */
    CHECK_INT(trust_add_pem(&t, STR(ROOT_PEM), "own.pem"), 1);
    CHECK(strstr(t.source, ", own.pem") != NULL);
    trust_release(&t);
}

static void a_pin_is_taken_as_other_tools_write_it(void)
{
    struct trust t = {0};
    struct err err;
    CHECK(trust_add_pin(&t, STR(" " NAMED_PIN "\n"), &err));
    CHECK_INT(t.pin_count, 1);
    static const char *const wrong[] = {"", "sha256//", "sha256//YQ==", "sha1//YQ==", "sha256//*"};
    for (size_t i = 0; i < 5; i++) {
        CHECK(!trust_add_pin(&t, str_of(wrong[i]), &err));
        CHECK_INT(err.kind, ERR_USAGE);
    }
    for (int i = 1; i < TRUST_PINS_MAX; i++)
        CHECK(trust_add_pin(&t, STR(NAMED_PIN), &err));
    CHECK(!trust_add_pin(&t, STR(NAMED_PIN), &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    trust_release(&t);
}

TESTS({"base64 is decoded strictly", base64_is_decoded_strictly},
      {"blocks are found among other text", blocks_are_found_among_other_text},
      {"a block without an end is none", a_block_without_an_end_is_none},
      {"old heads are passed over", old_heads_are_passed_over},
      {"a bundle is taken and what is no certificate passed over",
       a_bundle_is_taken_and_what_is_no_certificate_passed_over},
      {"a certificate that is there twice is kept once", a_certificate_that_is_there_twice_is_kept_once},
      {"a text without certificates changes nothing", a_text_without_certificates_changes_nothing},
      {"every usual form is taken", every_usual_form_is_taken},
      {"many sources are named as far as there is room", many_sources_are_named_as_far_as_there_is_room},
      {"those built in are Mozilla's", those_built_in_are_mozillas},
      {"a pin is taken as other tools write it", a_pin_is_taken_as_other_tools_write_it})
