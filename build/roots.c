/*
 * roots CERTDATA DATE: the table of built-in authorities, from Mozilla's certdata.txt, on standard output.
 *
 * A root is taken when Mozilla trusts it for TLS servers. One that is trusted only for what it signed
 * until a day before DATE (YYYYMMDD, the day of the source package) is left out: BearSSL cannot hold
 * that day against a certificate, and what was signed before it lasts 398 days at most. What BearSSL
 * could not verify with is left out, too, and what may sign for some names only: the table has no place for them.
 *
 * The table, little-endian: u32 count, u32 DATE; for each u16 length of the name and the name in DER; u8 kind:
 * 1 RSA: u16 and u8 lengths of modulus and exponent, both; 2 EC: u8 curve (TLS's number), u8 length of the point, it.
 * src/deliver/trust.c reads it in place.
 *
 * Source: the comments in certdata.txt; nss/lib/ckfw/builtins/README.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "deliver/certificate.h"

enum { BYTES_MAX = 1 << 14, OBJECTS_MAX = 1024, TABLE_MAX = 70000, RSA_BYTES_MAX = 512 };

struct bytes {
    unsigned char at[BYTES_MAX];
    size_t len;
};

struct object {
    struct bytes issuer, serial, value;
    char distrust_after[16]; /* YYMMDD; empty: never */
    int is_certificate, is_trust, serves;
};

static struct object objects[OBJECTS_MAX];
static size_t object_count;

static void fail(const char *what)
{
    fprintf(stderr, "roots: %s\n", what);
    exit(1);
}

/* Lines of \ooo until END. */
static void read_octal(FILE *in, struct bytes *out)
{
    char line[256];
    out->len = 0;
    while (fgets(line, sizeof line, in) != NULL && strncmp(line, "END", 3) != 0) {
        for (char *at = line; *at == '\\'; at += 4) {
            if (out->len == sizeof out->at || strlen(at) < 4) {
                fail("a value is too long or cut");
            }
            out->at[out->len++] = (unsigned char)strtoul((char[]){at[1], at[2], at[3], 0}, NULL, 8);
        }
    }
}

static int has(const char *line, const char *start)
{
    return strncmp(line, start, strlen(start)) == 0;
}

static void read_line(FILE *in, const char *line)
{
    static struct bytes date;
    struct object *o = object_count > 0 ? &objects[object_count - 1] : NULL;
    if (has(line, "CKA_CLASS ")) {
        if (object_count == OBJECTS_MAX) {
            fail("too many objects");
        }
        o = &objects[object_count++];
        o->is_certificate = strstr(line, "CKO_CERTIFICATE") != NULL;
        o->is_trust = strstr(line, "CKO_NSS_TRUST") != NULL;
    } else if (o == NULL) {
        return;
    } else if (has(line, "CKA_ISSUER MULTILINE_OCTAL")) {
        read_octal(in, &o->issuer);
    } else if (has(line, "CKA_SERIAL_NUMBER MULTILINE_OCTAL")) {
        read_octal(in, &o->serial);
    } else if (has(line, "CKA_VALUE MULTILINE_OCTAL")) {
        read_octal(in, &o->value);
    } else if (has(line, "CKA_NSS_SERVER_DISTRUST_AFTER MULTILINE_OCTAL")) {
        read_octal(in, &date);
        memcpy(o->distrust_after, date.at, 6);
    } else if (has(line, "CKA_TRUST_SERVER_AUTH ")) {
        o->serves = strstr(line, "CKT_NSS_TRUSTED_DELEGATOR") != NULL;
    }
}

static int same(const struct bytes *a, const struct bytes *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static int is_trusted(const struct object *certificate, const char *date)
{
    if (certificate->distrust_after[0] != '\0' &&
        strncmp(certificate->distrust_after, date + 2, 6) < 0) {
        return 0;
    }
    for (size_t i = 0; i < object_count; i++) {
        const struct object *o = &objects[i];
        if (o->is_trust && o->serves && same(&o->issuer, &certificate->issuer) &&
            same(&o->serial, &certificate->serial)) {
            return 1;
        }
    }
    return 0;
}

static void put(struct buf *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        buf_byte(out, (char)(value >> (8 * i)));
    }
}

static int put_root(struct buf *out, const struct certificate *c)
{
    const struct public_key *key = &c->key;
    if (c->constraints.len > 0 || key->kind == KEY_OTHER ||
        (key->kind == KEY_RSA && key->modulus.len > RSA_BYTES_MAX)) {
        return 0;
    }
    put(out, c->subject.len, 2);
    buf_str(out, c->subject);
    if (key->kind == KEY_RSA) {
        put(out, 1, 1);
        put(out, key->modulus.len, 2);
        put(out, key->exponent.len, 1);
        buf_str(out, key->modulus);
        buf_str(out, key->exponent);
    } else {
        put(out, 2, 1);
        put(out, key->curve, 1);
        put(out, key->point.len, 1);
        buf_str(out, key->point);
    }
    return 1;
}

static uint32_t put_roots(struct buf *out, const char *date)
{
    uint32_t count = 0;
    for (size_t i = 0; i < object_count; i++) {
        struct object *o = &objects[i];
        struct certificate c;
        struct str der = {(const char *)o->value.at, o->value.len};
        if (o->is_certificate && is_trusted(o, date) && certificate_parse(der, &c, NULL)) {
            count += (uint32_t)put_root(out, &c);
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    char line[1024];
    FILE *in = argc == 3 && strlen(argv[2]) == 8 ? fopen(argv[1], "r") : NULL;
    if (in == NULL) {
        fail("usage: roots certdata.txt YYYYMMDD");
    }
    while (fgets(line, sizeof line, in) != NULL) {
        read_line(in, line);
    }
    fclose(in);
    struct buf roots, head;
    buf_init(&roots, TABLE_MAX);
    buf_init(&head, 8);
    uint32_t count = put_roots(&roots, argv[2]);
    put(&head, count, 4);
    put(&head, strtoul(argv[2], NULL, 10), 4);
    if (roots.failed || count < 50) {
        fail("the table is larger than 70 KB, or there are hardly any roots");
    }
    if (fwrite(head.ptr, 1, head.len, stdout) != head.len ||
        fwrite(roots.ptr, 1, roots.len, stdout) != roots.len || fflush(stdout) != 0) {
        fail("cannot write");
    }
    return 0;
}
