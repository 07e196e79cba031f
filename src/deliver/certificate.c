/* Parses X.509 certificates as far as trust needs them: names, validity, key, extensions,
 * signature. Input is hostile DER; what is malformed, or uses what is not understood and critical,
 * is refused with the reason. */
#include "deliver/certificate.h"

#include <arpa/inet.h>

#include "base/utf8.h"
#include "deliver/der.h"

enum {
    VALUES_MAX = 64,      /* parts of a name, entries of a list: more are not checked */
    NAME_DNS = DER_CONTEXT | 2,
    NAME_ADDRESS = DER_CONTEXT | 7,
};

/* The values of object identifiers. */
#define OID_RSA STR("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")
#define OID_EC STR("\x2a\x86\x48\xce\x3d\x02\x01")
#define OID_P256 STR("\x2a\x86\x48\xce\x3d\x03\x01\x07")
#define OID_P384 STR("\x2b\x81\x04\x00\x22")
#define OID_P521 STR("\x2b\x81\x04\x00\x23")
#define OID_COMMON_NAME STR("\x55\x04\x03")
#define OID_BASIC_CONSTRAINTS STR("\x55\x1d\x13")
#define OID_ALT_NAME STR("\x55\x1d\x11")
#define OID_NAME_CONSTRAINTS STR("\x55\x1d\x1e")
#define OID_EXTENDED_USAGE STR("\x55\x1d\x25")
#define OID_ANY_USAGE STR("\x55\x1d\x25\x00")
#define OID_SERVER_AUTH STR("\x2b\x06\x01\x05\x05\x07\x03\x01")

/* Those that BearSSL understands, or passes over although they are critical (x509_minimal.t0). */
static const struct str understood[] = {
    {"\x55\x1d\x13", 3}, {"\x55\x1d\x0f", 3}, {"\x55\x1d\x11", 3}, {"\x55\x1d\x20", 3},
    {"\x55\x1d\x23", 3}, {"\x55\x1d\x0e", 3}, {"\x55\x1d\x12", 3}, {"\x55\x1d\x09", 3},
    {"\x55\x1d\x1f", 3}, {"\x55\x1d\x2e", 3}, {"\x2b\x06\x01\x05\x05\x07\x01\x01", 8},
    {"\x2b\x06\x01\x05\x05\x07\x01\x0b", 8},
};

static bool is_understood(struct str oid)
{
    for (size_t i = 0; i < sizeof understood / sizeof understood[0]; i++) {
        if (str_eq(oid, understood[i])) {
            return true;
        }
    }
    return false;
}

/* ---- Dates */

static uint64_t days_to(unsigned year, unsigned month, unsigned day)
{
    /* Years that begin in March, so that the leap day is a year's last. */
    uint64_t y = month <= 2 ? year - 1 : year;
    unsigned m = month <= 2 ? month + 9 : month - 3;
    uint64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    return days < 719468 ? 0 : days - 719468; /* 1970-01-01 */
}

static unsigned two_digits(struct str text, size_t at)
{
    uint64_t value = 99;
    return str_u64(str_sub(text, at, 2), &value) ? (unsigned)value : 99;
}

/* YYMMDDhhmmssZ, of 1950 to 2049, or YYYYMMDDhhmmssZ (RFC 5280, 4.1.2.5). */
static uint64_t take_date(struct der *d)
{
    struct der_element e;
    if (!der_next(d, &e) || (e.tag != DER_UTC_TIME && e.tag != DER_GENERALIZED_TIME) ||
        e.value.len != (e.tag == DER_UTC_TIME ? 13 : 15) || !str_ends(e.value, STR("Z"))) {
        d->bad = true;
        return 0;
    }
    unsigned century = two_digits(e.value, 0), start = 2;
    if (e.tag == DER_UTC_TIME) {
        century = century < 50 ? 20 : 19;
        start = 0;
    }
    unsigned part[6]; /* year of the century to second */
    for (unsigned i = 0; i < 6; i++) {
        part[i] = two_digits(e.value, start + 2 * i);
    }
    if (part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 || part[3] > 23 ||
        part[4] > 59 || part[5] > 60) {
        d->bad = true;
        return 0;
    }
    return days_to(century * 100 + part[0], part[1], part[2]) * 86400 + part[3] * 3600 +
           part[4] * 60 + part[5];
}

/* ---- Keys */

/* A bit string of whole bytes. */
static struct str take_bits(struct der *d)
{
    struct str bits = der_take(d, DER_BITS);
    if (bits.len == 0 || bits.ptr[0] != 0) {
        d->bad = true;
        return (struct str){NULL, 0};
    }
    return str_sub(bits, 1, bits.len);
}

static void read_rsa(struct der *info, struct public_key *key)
{
    struct der bits = der_of(take_bits(info));
    struct der numbers = der_of(der_take(&bits, DER_SEQUENCE));
    key->modulus = der_number(&numbers);
    key->exponent = der_number(&numbers);
    bool whole = !numbers.bad && numbers.left.len == 0 && key->modulus.len > 0 &&
                 key->exponent.len > 0;
    key->kind = whole ? KEY_RSA : KEY_OTHER;
}

static void read_ec(struct der *info, struct str curve, struct public_key *key)
{
    key->point = take_bits(info);
    key->curve = str_eq(curve, OID_P256)   ? 23
                 : str_eq(curve, OID_P384) ? 24
                 : str_eq(curve, OID_P521) ? 25
                                           : 0;
    static const unsigned char point_bytes[] = {65, 97, 133}; /* uncompressed */
    bool whole = key->curve != 0 && key->point.len == point_bytes[key->curve - 23] &&
                 key->point.ptr[0] == 4;
    key->kind = whole ? KEY_EC : KEY_OTHER;
}

static void read_key(struct der *d, struct certificate *out)
{
    struct der_element whole;
    if (!der_next(d, &whole) || whole.tag != DER_SEQUENCE) {
        d->bad = true;
        return;
    }
    out->key_info = whole.whole;
    struct der info = der_of(whole.value);
    struct der algorithm = der_of(der_take(&info, DER_SEQUENCE));
    struct str oid = der_take(&algorithm, DER_OID);
    out->key.oid = oid;
    if (str_eq(oid, OID_RSA)) {
        read_rsa(&info, &out->key);
    } else if (str_eq(oid, OID_EC)) {
        read_ec(&info, der_take_if(&algorithm, DER_OID), &out->key);
    }
    d->bad |= info.bad || algorithm.bad;
}

/* ---- Extensions */

static bool allows_serving(struct str value)
{
    struct der outer = der_of(value);
    struct der usages = der_of(der_take(&outer, DER_SEQUENCE));
    for (unsigned i = 0; i < VALUES_MAX && usages.left.len > 0 && !usages.bad; i++) {
        struct str usage = der_take(&usages, DER_OID);
        if (str_eq(usage, OID_SERVER_AUTH) || str_eq(usage, OID_ANY_USAGE)) {
            return true;
        }
    }
    return false;
}

static bool says_authority(struct str value)
{
    struct der outer = der_of(value);
    struct der constraints = der_of(der_take(&outer, DER_SEQUENCE));
    struct str flag = der_take_if(&constraints, DER_BOOLEAN);
    return flag.len == 1 && flag.ptr[0] != 0;
}

static void read_extension(struct der *list, struct certificate *out)
{
    struct der extension = der_of(der_take(list, DER_SEQUENCE));
    struct str oid = der_take(&extension, DER_OID);
    struct str critical = der_take_if(&extension, DER_BOOLEAN);
    struct str value = der_take(&extension, DER_OCTETS);
    list->bad |= extension.bad;
    if (list->bad) {
        return;
    }
    if (critical.len == 1 && critical.ptr[0] != 0 && !is_understood(oid) &&
        out->critical_oid.len == 0) {
        out->critical_oid = oid;
    }
    if (str_eq(oid, OID_BASIC_CONSTRAINTS)) {
        out->is_authority = says_authority(value);
    } else if (str_eq(oid, OID_EXTENDED_USAGE)) {
        out->may_serve = allows_serving(value);
    } else if (str_eq(oid, OID_ALT_NAME)) {
        struct der outer = der_of(value);
        out->names = der_take(&outer, DER_SEQUENCE);
    } else if (str_eq(oid, OID_NAME_CONSTRAINTS)) {
        out->constraints = value;
    }
}

static void read_extensions(struct der *d, struct certificate *out)
{
    struct der outer = der_of(der_take_if(d, DER_CONTEXT_CONSTRUCTED | 3));
    struct der list = der_of(der_take_if(&outer, DER_SEQUENCE));
    while (list.left.len > 0 && !list.bad) { /* each takes at least two bytes */
        read_extension(&list, out);
    }
    d->bad |= outer.bad || list.bad;
}

static struct str take_name(struct der *d)
{
    struct der_element e;
    if (!der_next(d, &e) || e.tag != DER_SEQUENCE) {
        d->bad = true;
        return (struct str){NULL, 0};
    }
    return e.whole;
}

bool certificate_parse(struct str der, struct certificate *out, struct err *err)
{
    struct certificate c = {.may_serve = true};
    struct der outer = der_of(der);
    struct der whole = der_of(der_take(&outer, DER_SEQUENCE));
    struct der body = der_of(der_take(&whole, DER_SEQUENCE));
    bool has_version = der_has(&body, DER_CONTEXT_CONSTRUCTED | 0);
    (void)der_take_if(&body, DER_CONTEXT_CONSTRUCTED | 0);
    (void)der_take(&body, DER_INTEGER); /* serial number */
    (void)der_take(&body, DER_SEQUENCE);
    c.issuer = take_name(&body);
    struct der dates = der_of(der_take(&body, DER_SEQUENCE));
    c.not_before_s = take_date(&dates);
    c.not_after_s = take_date(&dates);
    c.subject = take_name(&body);
    c.is_authority = !has_version && str_eq(c.issuer, c.subject);
    read_key(&body, &c);
    (void)der_take_if(&body, DER_CONTEXT | 1); /* unique identifiers of version 2 */
    (void)der_take_if(&body, DER_CONTEXT | 2);
    read_extensions(&body, &c);
    struct der signature = der_of(der_take(&whole, DER_SEQUENCE));
    c.signature_oid = der_take(&signature, DER_OID);
    if (outer.bad || whole.bad || body.bad || dates.bad || signature.bad) {
        return err_set(err, ERR_MALFORMED, 0, "a certificate of %zu bytes is no X.509", der.len);
    }
    *out = c;
    return true;
}

/* ---- Whom it is for */

static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte + 32) : byte;
}

static bool same_name(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) {
            return false;
        }
    }
    return a.len > 0;
}

static bool name_matches(struct str pattern, struct str host)
{
    if (!str_starts(pattern, STR("*."))) {
        return same_name(pattern, host);
    }
    struct str suffix = str_sub(pattern, 1, pattern.len);
    size_t dot = str_find(host, '.');
    bool two_labels = str_find(str_sub(suffix, 1, suffix.len), '.') + 1 < suffix.len;
    return two_labels && dot > 0 && same_name(suffix, str_sub(host, dot, host.len));
}

bool address_of(struct str host, unsigned char out[static 16], size_t *len)
{
    char text[INET6_ADDRSTRLEN];
    if (host.len == 0 || host.len >= sizeof text || memchr(host.ptr, '\0', host.len) != NULL) {
        return false;
    }
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, out) == 1) {
        *len = 4;
        return true;
    }
    *len = 16;
    return inet_pton(AF_INET6, text, out) == 1;
}

/* The next part of a name: its kind and its text. */
static bool next_part(struct der *parts, struct str *oid, struct str *text)
{
    struct der set = der_of(der_take_if(parts, DER_SET));
    struct der pair = der_of(der_take_if(&set, DER_SEQUENCE));
    struct der_element e;
    *oid = der_take_if(&pair, DER_OID);
    if (oid->len == 0 || !der_next(&pair, &e)) {
        return false;
    }
    *text = e.value;
    return true;
}

/* The last common name: the most specific one. Without any, the last part of the name. */
static struct str common_name(struct str name)
{
    struct der outer = der_of(name);
    struct der parts = der_of(der_take(&outer, DER_SEQUENCE));
    struct str oid, text, common = {NULL, 0}, last = {NULL, 0};
    for (unsigned i = 0; i < VALUES_MAX && next_part(&parts, &oid, &text); i++) {
        last = text;
        if (str_eq(oid, OID_COMMON_NAME)) {
            common = text;
        }
    }
    return common.len > 0 ? common : last;
}

bool certificate_is_for(const struct certificate *c, struct str host)
{
    unsigned char address[16];
    size_t len;
    bool is_address = address_of(host, address, &len);
    struct der names = der_of(c->names);
    struct der_element e;
    while (der_next(&names, &e)) {
        struct str bytes = {(const char *)address, len};
        if (is_address ? e.tag == NAME_ADDRESS && str_eq(e.value, bytes)
                       : e.tag == NAME_DNS && name_matches(e.value, host)) {
            return true;
        }
    }
    return false;
}

/* ---- For whom it may sign: RFC 5280, 4.2.1.10 */

/* A constraint of four or sixteen bytes and as many of a mask. */
static bool covers_address(struct str base, struct str address)
{
    bool same = base.len == 2 * address.len;
    for (size_t i = 0; same && i < address.len; i++) {
        same = ((address.ptr[i] ^ base.ptr[i]) & base.ptr[address.len + i]) == 0;
    }
    return same;
}

/* A name and all below it; with a dot in front only those below it, as OpenSSL reads it. */
static bool covers_name(struct str base, struct str name)
{
    if (base.len == 0 || base.len > name.len) {
        return base.len == 0;
    }
    size_t at = name.len - base.len;
    bool whole = at == 0 || base.ptr[0] == '.' || name.ptr[at - 1] == '.';
    return whole && same_name(base, str_sub(name, at, name.len));
}

/* One of the two lists: are there any of this kind, and is one of them for this name? */
static bool look_through(struct str list, unsigned char kind, struct str name, bool *any, bool *covered)
{
    struct der subtrees = der_of(list);
    struct der_element e;
    *any = *covered = false;
    while (subtrees.left.len > 0 && !subtrees.bad) { /* each takes at least two bytes */
        struct der subtree = der_of(der_take(&subtrees, DER_SEQUENCE));
        if (!der_next(&subtree, &e)) {
            return false;
        }
        if (e.tag == kind) {
            bool is_address = kind == NAME_ADDRESS;
            *any = true;
            *covered |= is_address ? covers_address(e.value, name) : covers_name(e.value, name);
            subtrees.bad |= is_address && e.value.len != 8 && e.value.len != 32;
        }
    }
    return !subtrees.bad;
}

static bool permits(struct str constraints, unsigned char kind, struct str name)
{
    struct der outer = der_of(constraints);
    struct der lists = der_of(der_take(&outer, DER_SEQUENCE));
    struct str permitted = der_take_if(&lists, DER_CONTEXT_CONSTRUCTED | 0);
    struct str excluded = der_take_if(&lists, DER_CONTEXT_CONSTRUCTED | 1);
    bool any, covered;
    bool good = look_through(permitted, kind, name, &any, &covered) && (!any || covered);
    good = good && look_through(excluded, kind, name, &any, &covered) && !covered;
    return good && !outer.bad && !lists.bad;
}

bool certificate_is_within(const struct certificate *c, struct str constraints, struct str host)
{
    unsigned char bytes[16];
    size_t len;
    struct der names = der_of(c->names);
    struct der_element e;
    while (der_next(&names, &e)) {
        if ((e.tag == NAME_DNS || e.tag == NAME_ADDRESS) && !permits(constraints, e.tag, e.value)) {
            return false;
        }
    }
    /* The certificate's "*" may stand for a host that is excluded. */
    return address_of(host, bytes, &len)
               ? permits(constraints, NAME_ADDRESS, (struct str){(const char *)bytes, len})
               : permits(constraints, NAME_DNS, host);
}

/* ---- For sentences */

struct text {
    char *out;
    size_t used;
};

/* Foreign: control characters and what is no UTF-8 become '?'. False when it does not fit. */
static bool add(struct text *t, struct str bytes)
{
    if (t->used + bytes.len >= CERTIFICATE_TEXT_MAX) {
        return false;
    }
    bool valid = utf8_valid(bytes);
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.ptr[i];
        bool shown = byte >= 0x20 && byte != 0x7f && (byte < 0x80 || valid);
        t->out[t->used++] = shown ? (char)byte : '?';
    }
    t->out[t->used] = '\0';
    return true;
}

void certificate_name_text(struct str name, char out[static CERTIFICATE_TEXT_MAX])
{
    struct text t = {out, 0};
    struct str text = common_name(name);
    out[0] = '\0';
    if (text.len == 0) {
        (void)add(&t, STR("without a name"));
    } else if (!add(&t, text)) {
        (void)add(&t, STR("a long name"));
    }
}

static bool add_address(struct text *t, struct str bytes)
{
    char text[INET6_ADDRSTRLEN];
    int family = bytes.len == 4 ? AF_INET : AF_INET6;
    return (bytes.len == 4 || bytes.len == 16) &&
           inet_ntop(family, bytes.ptr, text, sizeof text) != NULL && add(t, str_of(text));
}

void certificate_names_text(const struct certificate *c, char out[static CERTIFICATE_TEXT_MAX])
{
    enum { MORE = 6 }; /* ", ..." */
    struct text t = {out, 0};
    out[0] = '\0';
    struct der names = der_of(c->names);
    struct der_element e;
    while (der_next(&names, &e)) {
        if (e.tag != NAME_DNS && e.tag != NAME_ADDRESS) {
            continue;
        }
        size_t before = t.used;
        bool fits = (before == 0 || add(&t, STR(", "))) &&
                    (e.tag == NAME_DNS ? add(&t, e.value) : add_address(&t, e.value)) &&
                    t.used + MORE < CERTIFICATE_TEXT_MAX;
        if (!fits) {
            t.used = before;
            (void)add(&t, before == 0 ? STR("...") : STR(", ..."));
            return;
        }
    }
}
