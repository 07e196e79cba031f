/* What went wrong in TLS, in words with a remedy: BearSSL's error numbers, a server's alerts,
 * and the reasons for which a certificate was refused. Nothing that a server sent is shown
 * unchecked. */
#include "deliver/tls_error.h"

#include <errno.h>
#include <stdio.h>

#include "base/time.h"

enum { ALERT = BR_ERR_RECV_FATAL_ALERT, RECORD_ALERT = 0x15, RECORD_HANDSHAKE = 0x16 };

struct cause {
    int code;
    bool passes; /* trying again may help */
    const char *text;
};

/* What needs no figures. Codes of BearSSL without a row mean that the server does not follow the
 * protocol. */
static const struct cause causes[] = {
    {BR_ERR_BAD_MAC, true,
     "a record was damaged on its way: something between here and the server changes what is sent"},
    {BR_ERR_BAD_FINISHED, true,
     "both sides saw different handshakes: something between here and the server changes what is "
     "sent"},
    {TLS_MESSAGE_TOO_LONG, false,
     "a message of its handshake has more than 16 KB: shorten its chain, or the list of authorities whose client "
     "certificates it takes"},
    {TLS_CHANGES_KEYS, true,
     "the server changes the keys of a connection (KeyUpdate, or a new handshake), which is not spoken here"},
    {BR_ERR_NO_RANDOM, true, "no random bytes are available"},
    {BR_ERR_BAD_SIGNATURE, false, "the server does not have the key of its certificate"},
    {BR_ERR_WRONG_KEY_USAGE, false,
     "the server's certificate may not be used for the kind of handshake that it chose: it needs a "
     "certificate whose keyUsage has digitalSignature"},
    {BR_ERR_X509_EMPTY_CHAIN, false, "the server sent no certificate"},
    {BR_ERR_X509_TIME_UNKNOWN, false,
     "this machine's clock is not set, so certificates cannot be dated: set the clock"},
    {ALERT + BR_ALERT_UNSUPPORTED_CERTIFICATE, false,
     "the server does not accept this kind of client certificate"},
    {ALERT + BR_ALERT_CERTIFICATE_REVOKED, false,
     "the client certificate is revoked: get a new one"},
    {ALERT + BR_ALERT_CERTIFICATE_EXPIRED, false,
     "the client certificate has expired, says the server: get a new one"},
    {ALERT + BR_ALERT_INSUFFICIENT_SECURITY, false,
     "the server requires stronger ciphers than AES-GCM and ChaCha20-Poly1305"},
    {ALERT + BR_ALERT_INTERNAL_ERROR, true, "the server had an internal error"},
    {ALERT + BR_ALERT_USER_CANCELED, true, "the server gave up the handshake"},
    {ALERT + BR_ALERT_DECRYPT_ERROR, false,
     "the server could not verify this side's signature: does the client certificate belong to its "
     "key?"},
    {ALERT + 112, false, "the server does not know this name (unrecognized_name): check the host"},
    {ALERT + 116, false, "the server requires a client certificate: give one with its key"},
    {ALERT + BR_ALERT_NO_APPLICATION_PROTOCOL, false,
     "the server speaks only HTTP/2 or another protocol, and HTTP/1.1 is spoken here: allow "
     "http/1.1 there, or put a proxy in front"},
};

static const struct cause *cause_of(int code)
{
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (causes[i].code == code) {
            return &causes[i];
        }
    }
    return NULL;
}

static bool say(struct err *err, const struct tls_failure *f, bool passes, const char *text)
{
    return err_set(err, ERR_NETWORK, passes ? ECONNABORTED : EPROTONOSUPPORT, "TLS with %.*s: %s",
                   (int)(f->host.len < 80 ? f->host.len : 80), f->host.ptr, text);
}

/* ---- Certificates */

static void date_text(uint64_t seconds, char out[static TIME_TEXT_MAX])
{
    uint64_t last = UINT64_MAX / NS_PER_S; /* of the year 2554; a certificate may say 9999 */
    time_iso_seconds((seconds < last ? seconds : last) * NS_PER_S, out);
}

static void say_dates(const struct tls_failure *f, const struct peer_facts *c, char *out,
                      size_t room)
{
    char date[TIME_TEXT_MAX], now[TIME_TEXT_MAX];
    bool early = f->settings->wall_ns / NS_PER_S < c->not_before_s;
    date_text(early ? c->not_before_s : c->not_after_s, date);
    date_text(f->settings->wall_ns / NS_PER_S, now);
    snprintf(out, room, "the certificate of %s %s %s, and this machine's clock says %s (UTC): %s",
             c->subject, early ? "is valid only from" : "expired", date, now,
             early ? "set the clock, or wait" : "renew it on the server, or set the clock");
}

/* Whom would the missing link be? */
static void say_untrusted(const struct tls_failure *f, const struct peer_facts *c, char *out,
                          size_t room)
{
    const struct trust *trust = f->settings->trust;
    size_t known = trust != NULL ? trust->anchors.len : 0;
    if (known == 0) {
        snprintf(out, room, "no authority is known that could have signed the certificate of %s: "
                 "give a file of authorities with --ca-file", c->subject);
    } else if (c->self_signed && f->peer->relied == 1) {
        snprintf(out, room, "the certificate of %s is signed by itself and not among the %zu known "
                 "authorities (%.100s): give it with --ca-file", c->subject, known, trust->source);
    } else {
        snprintf(out, room, "the authority \"%s\" is unknown, of %zu known ones (%.100s): give its "
                 "certificate with --ca-file%s", c->issuer, known, trust->source,
                 f->peer->relied == 1 ? ", or let the server send the intermediate ones" : "");
    }
}

static const char *extension_name(const char *oid)
{
    return strcmp(oid, "2.5.29.30") == 0   ? " (nameConstraints)"
           : strcmp(oid, "2.5.29.37") == 0 ? " (extendedKeyUsage)"
           : strcmp(oid, "2.5.29.36") == 0 ? " (policyConstraints)"
                                           : "";
}

static const char *algorithm_name(const char *oid)
{
    return strcmp(oid, "1.3.101.112") == 0             ? " Ed25519"
           : strcmp(oid, "1.3.101.113") == 0           ? " Ed448"
           : strcmp(oid, "1.2.840.113549.1.1.10") == 0 ? " RSA-PSS"
                                                       : "";
}

static void say_unsupported(const struct tls_failure *f, const struct peer_facts *c, char *out,
                            size_t room)
{
    const char *takes = TLS13 ? "RSA of 2048 to 8192 bits or ECDSA with P-256, P-384 or P-521, and SHA-256, SHA-384 or "
                                "SHA-512 are"
                              : "RSA of 2048 to 4096 bits (PKCS#1 v1.5) or ECDSA with P-256, P-384 or P-521, and "
                                "SHA-256, SHA-384 or SHA-512 are";
    if (f->code == BR_ERR_X509_WEAK_PUBLIC_KEY) {
        snprintf(out, room,
                 "the RSA key of %s has fewer than 2048 bits: the server needs a longer one",
                 c->subject);
    } else {
        snprintf(out, room, "the key of %s or its signature (%s%s) is of an unknown kind here: %s", c->subject, c->oid,
                 algorithm_name(c->oid), takes);
    }
}

static void say_chain(const struct tls_failure *f, const struct peer_facts *c, char *out,
                      size_t room)
{
    switch (f->code) {
    case BR_ERR_X509_NOT_CA:
    case BR_ERR_X509_FORBIDDEN_KEY_USAGE:
        snprintf(out, room, "the certificate of %s may not sign others: the server sends a wrong "
                 "chain",
                 c->subject);
        return;
    case BR_ERR_X509_CRITICAL_EXTENSION:
        snprintf(out, room, "the certificate of %s has a critical extension, %s%s, that is not "
                 "known here: give it or what it signed with --ca-file, or pin the server's key",
                 c->subject, c->oid,
                 extension_name(c->oid));
        return;
    case BR_ERR_X509_BAD_SIGNATURE:
        snprintf(out, room, "the signature by %s is wrong: the server sends a wrong or damaged "
                 "chain",
                 c->subject);
        return;
    default:
        snprintf(out, room, "a certificate of the server is malformed (%d)", f->code);
    }
}

static void say_names(const struct peer_facts *leaf, char *out, size_t room)
{
    if (leaf->names[0] == '\0') {
        snprintf(out, room, "the certificate of %s has no host in its subjectAltName, and the common name does not "
                 "count: get one that has this host there, or pin its key", leaf->subject);
    } else {
        snprintf(out, room, "the certificate is for %s, not for this host: use such a name, or get "
                 "a certificate for it", leaf->names);
    }
}

static void say_certificate(const struct tls_failure *f, char *out, size_t room)
{
    const struct peer_facts *c = &f->peer->blamed;
    switch (f->code) {
    case BR_ERR_X509_EXPIRED:
        say_dates(f, c, out, room);
        return;
    case BR_ERR_X509_BAD_SERVER_NAME:
        say_names(&f->peer->leaf, out, room);
        return;
    case BR_ERR_X509_NOT_TRUSTED:
        say_untrusted(f, c, out, room);
        return;
    case BR_ERR_X509_UNSUPPORTED:
    case BR_ERR_X509_LIMIT_EXCEEDED:
    case BR_ERR_X509_WRONG_KEY_TYPE:
    case BR_ERR_X509_WEAK_PUBLIC_KEY:
        say_unsupported(f, c, out, room);
        return;
    case PEER_NO_SERVER:
        snprintf(out, room, "the certificate of %s may not be a server's (extendedKeyUsage): it "
                 "needs serverAuth",
                 c->subject);
        return;
    case PEER_NOT_PINNED:
        snprintf(out, room, "the key of %s is none of the %zu pinned ones: is this the server, or "
                 "did its key change?", f->peer->leaf.subject, f->settings->trust->pin_count);
        return;
    case PEER_OUTSIDE:
        snprintf(out, room, "the authority \"%s\" may not sign for all names of the certificate (%s) and this host "
                 "(its nameConstraints): get one of another authority, or pin the server's key", c->subject,
                 f->peer->leaf.names);
        return;
    case PEER_UNREADABLE:
        snprintf(out, room, "a certificate of the server cannot be read, or has a kind of key that is not known here: "
                 "RSA and ECDSA are");
        return;
    case PEER_TOO_LONG:
        snprintf(out, room, "the server's certificate has more than %d bytes", PEER_LEAF_MAX);
        return;
    default:
        say_chain(f, c, out, room);
    }
}

static bool is_of_certificate(int code)
{
    return (code >= BR_ERR_X509_INVALID_VALUE && code <= BR_ERR_X509_NOT_TRUSTED) ||
           (code >= PEER_NO_SERVER && code <= PEER_UNREADABLE);
}

/* ---- Versions, ciphers, alerts */

static bool is_tls(const struct tls_failure *f)
{
    return f->first_len == 3 && f->first[1] == 3 &&
           (f->first[0] == RECORD_ALERT || f->first[0] == RECORD_HANDSHAKE);
}

static const char *version_text(const struct tls_failure *f)
{
    if (!is_tls(f)) {
        return "the server does not speak TLS on this port: is it http, or another port?";
    }
    return TLS13 ? "the server speaks only TLS 1.1 or older, and TLS 1.2 and 1.3 are spoken here: allow one of them "
                   "there"
                 : "the server speaks only TLS 1.1 or older, and TLS 1.2 is spoken here: allow 1.2 there";
}

/* handshake_failure says nothing about why; what happened before does. */
static const char *refusal_text(const struct tls_failure *f)
{
    if (f->asked_for_certificate) {
        return f->settings->identity == NULL
                   ? "the server requires a client certificate: give one with its key"
                   : "the server refused the handshake after it got the client certificate: is it "
                       "one that it accepts?";
    }
    if (is_tls(f) && f->first[2] < 3) {
        return version_text(f);
    }
    return f->speaks_13
        ? "the server has no cipher or kind of key in common with this side (TLS 1.2 and 1.3, ECDHE, AES-GCM or "
          "ChaCha20-Poly1305, RSA or ECDSA certificate): allow one of them there. A certificate with a key of the kind "
          "Ed25519 or RSASSA-PSS is not known here: give the server one with an ECDSA or RSA key"
        : "the server has no cipher in common with this side (TLS 1.2, ECDHE, AES-GCM or "
          "ChaCha20-Poly1305, RSA or ECDSA certificate): allow one of them there. Extended Master Secret, which FIPS "
          "hosts demand, Ed25519 and RSA-PSS keys are not spoken here";
}

static const char *alert_text(const struct tls_failure *f, char *out, size_t room)
{
    int alert = f->code - ALERT;
    switch (alert) {
    case BR_ALERT_HANDSHAKE_FAILURE:
        return refusal_text(f);
    case BR_ALERT_PROTOCOL_VERSION: /* one that only speaks older ones would have chosen its own, not refused ours */
        return f->speaks_13 ? version_text(f)
                            : "the server requires TLS 1.3, and TLS 1.2 is spoken here: allow 1.2 there, or "
               "put a proxy or collector in front";
    case BR_ALERT_BAD_CERTIFICATE:
    case BR_ALERT_CERTIFICATE_UNKNOWN:
    case BR_ALERT_UNKNOWN_CA:
    case BR_ALERT_ACCESS_DENIED:
        snprintf(out, room, "the server refuses the client certificate (alert %d%s): use one of an "
                 "authority that it trusts", alert, alert == BR_ALERT_UNKNOWN_CA ? ", unknown "
                 "authority" : "");
        return out;
    default:
        snprintf(out, room, "the server ended the handshake with alert %d", alert);
        return out;
    }
}

bool tls_error(struct err *err, const struct tls_failure *f)
{
    char text[ERR_TEXT_MAX];
    const struct cause *cause = cause_of(f->code);
    if (cause != NULL) {
        return say(err, f, cause->passes, cause->text);
    }
    if (f->peer != NULL && is_of_certificate(f->code)) {
        say_certificate(f, text, sizeof text);
        return say(err, f, false, text);
    }
    if (f->code >= ALERT && f->code < ALERT + 256) {
        return say(err, f, false, alert_text(f, text, sizeof text));
    }
    if (f->code == BR_ERR_UNSUPPORTED_VERSION || (f->first_len == 3 && !is_tls(f))) {
        return say(err, f, false, version_text(f));
    }
    snprintf(text, sizeof text, "the server does not follow TLS (error %d)", f->code);
    return say(err, f, true, text);
}
