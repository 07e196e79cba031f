/* The second engine: TLS 1.3, and 1.2 with Extended Master Secret, with mbedTLS, behind the same stream as the first.
 * Who the server is, peer.c decides here, too, from the certificates as mbedTLS took them apart; where BearSSL cannot
 * verify a signature of theirs, tls13_chain.c does. */
#include <errno.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "deliver/peer.h"
#include "deliver/tls13_chain.h"

#include <mbedtls/ecp.h>
#include <mbedtls/net_sockets.h>
#include <mbedtls/rsa.h>
#include <mbedtls/ssl.h>
#include <psa/crypto.h>

struct tls13 {
    struct tls_link link;
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
    mbedtls_x509_crt own_chain;
    mbedtls_pk_context own_key;
    struct tls_session *session; /* where tickets go; null: nowhere */
    struct err below;            /* why the stream below failed */
    unsigned receives;           /* in this call */
    bool waits;                  /* may a read wait? */
    bool would_wait;             /* one that may not would have to */
    bool over;                   /* the stream below has ended */
    bool cannot_send;            /* what was sent last did not get out whole: all else is dropped */
    int ended;                   /* by what, as mbedTLS has it; 0: not yet */
};

/* ---- What mbedTLS asks for */

/* As its store of keys takes them, which is one for the process and has no context for a source: os/tls13_random.c. */
static int give_random(void *context, unsigned char *to, size_t len)
{
    (void)context;
    size_t got = 0;
    return mbedtls_psa_external_get_random(NULL, to, len, &got) == PSA_SUCCESS && got == len
               ? 0
               : PSA_ERROR_INSUFFICIENT_ENTROPY;
}

static int send_below(void *context, const unsigned char *from, size_t len)
{
    struct tls13 *t = context;
    if (t->cannot_send) {
        return (int)len;
    }
    ptrdiff_t sent = t->link.under.write(t->link.under.context, from, len, t->link.deadline_ns, &t->below);
    return sent > 0                     ? (int)sent
           : t->below.number == EAGAIN ? MBEDTLS_ERR_SSL_WANT_WRITE
                                       : MBEDTLS_ERR_NET_SEND_FAILED;
}

static int receive_below(void *context, unsigned char *to, size_t len)
{
    struct tls13 *t = context;
    if (!t->waits && !t->link.under.readable(t->link.under.context)) {
        t->would_wait = true;
        return MBEDTLS_ERR_SSL_WANT_READ;
    }
    if (t->receives++ == TLS_RECEIVES_MAX) {
        (void)tls_link_held_up(&t->link, &t->below);
        return MBEDTLS_ERR_NET_RECV_FAILED;
    }
    ptrdiff_t got = tls_link_read(&t->link, to, len, t->link.deadline_ns, &t->below);
    t->over |= got == 0;
    return got >= 0 ? (int)got : MBEDTLS_ERR_NET_RECV_FAILED;
}

/* Before every call of mbedTLS's that may send or receive. */
static void enter(struct tls13 *t, bool waits)
{
    t->below = (struct err){0};
    t->receives = 0;
    t->waits = waits;
    t->would_wait = false;
}

/* ---- Who the server is */

static void show(struct peer *peer, const unsigned char *der, size_t len)
{
    const br_x509_class **x = &peer->vtable;
    (*x)->start_cert(x, (uint32_t)len);
    (*x)->append(x, der, len);
    (*x)->end_cert(x);
}

/* The leaf comes last, and with it those that were sent behind it. */
static int judge(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags)
{
    struct tls13 *t = context;
    const br_x509_class **x = &t->link.peer->vtable;
    if (depth > 0) {
        return 0;
    }
    (*x)->start_chain(x, NULL);
    for (mbedtls_x509_crt *c = certificate; c != NULL && c->raw.len > 0; c = c->next) {
        show(t->link.peer, c->raw.p, c->raw.len);
    }
    *flags = 0;
    if ((*x)->end_chain(x) == 0 && t->link.peer->relied > 0 &&
        mbedtls_x509_crt_check_key_usage(certificate, MBEDTLS_X509_KU_DIGITAL_SIGNATURE) != 0) {
        t->link.peer->verdict = BR_ERR_WRONG_KEY_USAGE; /* BearSSL sees to it for the other engine */
    }
    return t->link.peer->verdict == 0 ? 0 : MBEDTLS_ERR_X509_FATAL_ERROR;
}

static size_t take_length(struct cursor *c, unsigned bytes)
{
    size_t len = 0;
    for (unsigned i = 0; i < bytes; i++) {
        len = len << 8 | cursor_u8(c);
    }
    return len;
}

/* mbedTLS gave up on a certificate before it asked anyone. The peer may know what is wrong with it. */
static unsigned judge_unread(struct tls13 *t)
{
    struct peer *peer = t->link.peer;
    const br_x509_class **x = &peer->vtable;
    bool is_13 = mbedtls_ssl_get_version_number(&t->ssl) == MBEDTLS_SSL_VERSION_TLS1_3;
    size_t most = t->ssl.MBEDTLS_PRIVATE(in_msglen), len = t->ssl.MBEDTLS_PRIVATE(in_hslen);
    struct cursor c = cursor_of(t->ssl.MBEDTLS_PRIVATE(in_msg), len < most ? len : most);
    cursor_skip(&c, is_13 ? 8 : 7); /* the message's head, in 1.3 a context, and the length of all */
    (*x)->start_chain(x, NULL);
    while (c.len > 0) {
        len = take_length(&c, 3);
        const unsigned char *der = cursor_take(&c, len);
        if (der == NULL) {
            break;
        }
        show(peer, der, len);
        cursor_skip(&c, is_13 ? take_length(&c, 2) : 0);
    }
    unsigned verdict = (*x)->end_chain(x);
    return verdict != 0 ? verdict : PEER_UNREADABLE;
}

/* ---- Errors, by BearSSL's numbers */

static bool is_below(int number)
{
    return number == MBEDTLS_ERR_NET_SEND_FAILED || number == MBEDTLS_ERR_NET_RECV_FAILED;
}

static bool is_memory(int number)
{
    return number == MBEDTLS_ERR_SSL_ALLOC_FAILED || number == MBEDTLS_ERR_X509_ALLOC_FAILED ||
           number == PSA_ERROR_INSUFFICIENT_MEMORY;
}

/* What the server sent cannot be read, or was not to its liking; by the state in which that was found. */
static int code_of_state(struct tls13 *t, int number)
{
    bool is_13 = mbedtls_ssl_get_version_number(&t->ssl) == MBEDTLS_SSL_VERSION_TLS1_3;
    switch (t->ssl.MBEDTLS_PRIVATE(state)) {
    case MBEDTLS_SSL_SERVER_CERTIFICATE:
        return t->link.peer->started ? number : (int)judge_unread(t);
    case MBEDTLS_SSL_SERVER_KEY_EXCHANGE:
        return number == MBEDTLS_ERR_ECP_VERIFY_FAILED || number == MBEDTLS_ERR_RSA_VERIFY_FAILED ? BR_ERR_BAD_SIGNATURE
                                                                                                 : number;
    case MBEDTLS_SSL_CERTIFICATE_VERIFY:
        return is_13 ? BR_ERR_BAD_SIGNATURE : number;
    case MBEDTLS_SSL_CLIENT_CERTIFICATE:
    case MBEDTLS_SSL_CLIENT_CERTIFICATE_VERIFY: /* no signature of its key that the server takes */
        return BR_ERR_RECV_FATAL_ALERT + BR_ALERT_UNSUPPORTED_CERTIFICATE;
    default:
        return number;
    }
}

static int code_of(struct tls13 *t, int number)
{
    bool is_alert = t->ssl.MBEDTLS_PRIVATE(in_msgtype) == MBEDTLS_SSL_MSG_ALERT;
    bool shakes = t->link.peer != NULL;
    if (shakes && t->link.peer->verdict != 0) {
        return (int)t->link.peer->verdict;
    }
    switch (number) {
    case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE: /* or one that mbedTLS sent */
        return is_alert ? BR_ERR_RECV_FATAL_ALERT + t->ssl.MBEDTLS_PRIVATE(in_msg)[1] : code_of_state(t, number);
    case MBEDTLS_ERR_SSL_INVALID_MAC:
        return BR_ERR_BAD_MAC;
    case MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION:
        return BR_ERR_UNSUPPORTED_VERSION;
    case MBEDTLS_ERR_SSL_NO_APPLICATION_PROTOCOL:
        return BR_ERR_RECV_FATAL_ALERT + BR_ALERT_NO_APPLICATION_PROTOCOL;
    case MBEDTLS_ERR_SSL_BAD_INPUT_DATA: /* a handshake message longer than its buffer */
    case MBEDTLS_ERR_SSL_FEATURE_UNAVAILABLE:
        return shakes ? TLS_MESSAGE_TOO_LONG : number;
    case MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE:
        return shakes ? number : TLS_CHANGES_KEYS;
    default:
        return shakes ? code_of_state(t, number) : number;
    }
}

static bool explain(struct tls13 *t, int number, struct err *err)
{
    if (is_memory(number)) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a TLS connection");
    }
    return tls_link_explain(&t->link, code_of(t, number), err);
}

/* ---- Sessions */

static void remember(struct tls13 *t)
{
    struct tls_session *to = t->session;
    mbedtls_ssl_session now;
    size_t len = 0;
    mbedtls_ssl_session_init(&now);
    if (to != NULL && mbedtls_ssl_get_session(&t->ssl, &now) == 0) {
        (void)mbedtls_ssl_session_save(&now, NULL, 0, &len);
        unsigned char *ticket = len > 0 ? malloc(len) : NULL;
        if (ticket != NULL && mbedtls_ssl_session_save(&now, ticket, len, &len) == 0) {
            struct tls_session was = *to;
            tls_session_forget(to);
            *to = (struct tls_session){.second = true, .resumed = was.resumed, .judged_late = was.judged_late,
                                       .ticket = ticket, .ticket_len = len};
        } else {
            free(ticket);
        }
    }
    mbedtls_ssl_session_free(&now);
}

/* One that cannot be taken up is forgotten: the handshake is a whole one then. */
static bool take_up(struct tls13 *t)
{
    bool taken = false;
    mbedtls_ssl_session last;
    mbedtls_ssl_session_init(&last);
    if (t->session != NULL && t->session->ticket != NULL &&
        mbedtls_ssl_session_load(&last, t->session->ticket, t->session->ticket_len) == 0) {
        taken = mbedtls_ssl_set_session(&t->ssl, &last) == 0;
    }
    mbedtls_ssl_session_free(&last);
    return taken;
}

/* ---- Plain bytes */

/* Why there are no bytes, or none can go. */
static void say(struct tls13 *t, int number, struct err *err)
{
    if (number == 0 || number == MBEDTLS_ERR_SSL_CONN_EOF) {
        (void)tls_link_cut(&t->link, err);
    } else if (is_below(number)) {
        (void)err_set(err, t->below.kind, t->below.number, "%s", t->below.text);
    } else {
        (void)explain(t, number, err);
    }
}

/* Is it no end and no failure, but one of mbedTLS's own pauses? A ticket is taken on the way. */
static bool goes_on(struct tls13 *t, int number)
{
    if (number == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) {
        remember(t);
        return true;
    }
    return number == MBEDTLS_ERR_SSL_WANT_READ && !t->would_wait;
}

/* An empty record gives 0, as the end does. */
static int read_some(struct tls13 *t, void *to, size_t len, bool waits)
{
    int got;
    enter(t, waits);
    do {
        got = mbedtls_ssl_read(&t->ssl, to, len);
    } while (goes_on(t, got) || (got == 0 && !t->over && mbedtls_ssl_get_bytes_avail(&t->ssl) == 0));
    bool pauses = got == MBEDTLS_ERR_SSL_WANT_READ || got == MBEDTLS_ERR_SSL_WANT_WRITE;
    bool ended = got <= 0 && !pauses && !is_below(got) &&
                 mbedtls_ssl_get_bytes_avail(&t->ssl) == 0;
    if (ended) {
        t->ended = got != 0 ? got : MBEDTLS_ERR_SSL_CONN_EOF;
    }
    return got;
}

static ptrdiff_t tls13_read(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct tls13 *t = context;
    t->link.deadline_ns = deadline_ns;
    int got = t->ended != 0 ? t->ended : read_some(t, to, len, true);
    if (got > 0 || got == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY) {
        return got > 0 ? got : 0;
    }
    say(t, got, err);
    return -1;
}

/* The stream below took nothing, for there is something to read (EAGAIN). Tickets come just then, and are no response:
 * with them the same record goes on. Is there more? */
static bool has_response(struct tls13 *t)
{
    struct err why = t->below;
    (void)read_some(t, NULL, 0, false);
    t->below = why;
    return t->ended != 0 || mbedtls_ssl_get_bytes_avail(&t->ssl) > 0;
}

/* A record that waits may go out while a ticket is taken in: then it must not be written again. */
static int write_some(struct tls13 *t, const void *from, size_t len)
{
    int most = mbedtls_ssl_get_max_out_record_payload(&t->ssl);
    bool waits = false;
    len = most > 0 && len > (size_t)most ? (size_t)most : len;
    for (;;) {
        if (waits && t->ssl.MBEDTLS_PRIVATE(out_left) == 0) {
            return (int)len;
        }
        enter(t, true);
        int sent = mbedtls_ssl_write(&t->ssl, from, len);
        waits = waits || sent == MBEDTLS_ERR_SSL_WANT_WRITE;
        if (sent == MBEDTLS_ERR_SSL_WANT_WRITE && has_response(t)) {
            return MBEDTLS_ERR_NET_SEND_FAILED;
        }
        if (sent != MBEDTLS_ERR_SSL_WANT_WRITE && !goes_on(t, sent)) {
            return sent;
        }
    }
}

/* Takes at most what one record holds, and returns when that is on its way. */
static ptrdiff_t tls13_write(void *context, const void *from, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct tls13 *t = context;
    t->link.deadline_ns = deadline_ns;
    if (len == 0) {
        return 0;
    }
    if (t->cannot_send) {
        (void)err_set(err, ERR_NETWORK, EPIPE, "the connection was given up by an earlier failure");
        return -1;
    }
    int sent = write_some(t, from, len);
    if (sent > 0) {
        return sent;
    }
    t->cannot_send = true;
    say(t, sent, err);
    return -1;
}

/* Bytes below may be half a record, or a ticket, which no read could give: so what is there is taken in first. */
static bool tls13_readable(void *context)
{
    struct tls13 *t = context;
    if (t->ended != 0 || mbedtls_ssl_get_bytes_avail(&t->ssl) > 0) {
        return true;
    }
    int got = read_some(t, NULL, 0, false);
    return got != MBEDTLS_ERR_SSL_WANT_READ && got != MBEDTLS_ERR_SSL_WANT_WRITE &&
           !(is_below(got) && t->below.number == ETIMEDOUT);
}

static void release(struct tls13 *t)
{
    mbedtls_ssl_free(&t->ssl);
    mbedtls_ssl_config_free(&t->config);
    mbedtls_x509_crt_free(&t->own_chain);
    mbedtls_pk_free(&t->own_key);
    tls_link_release(&t->link);
    explicit_bzero(t, sizeof *t);
    free(t);
}

/* Says farewell and does not wait for the server's: it may have gone. */
static void tls13_close(void *context)
{
    struct tls13 *t = context;
    if (!t->cannot_send) {
        enter(t, true);
        (void)mbedtls_ssl_close_notify(&t->ssl);
    }
    release(t);
}

/* ---- The handshake */

static const int suites[] = {
    MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
    MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    0,
};

static const char *const protocols[] = {"http/1.1", NULL};

static bool set_identity(struct tls13 *t, struct err *err)
{
    const struct tls_identity *id = t->link.settings.identity;
    int number = 0;
    if (id == NULL) {
        return true;
    }
    for (size_t i = 0; i < id->chain_count && number == 0; i++) {
        number = mbedtls_x509_crt_parse_der(&t->own_chain, id->chain[i].data, id->chain[i].data_len);
    }
    if (number == 0) {
        number = mbedtls_pk_parse_key(&t->own_key, id->key_der, id->key_len, NULL, 0, give_random, NULL);
    }
    if (number == 0) {
        number = mbedtls_ssl_conf_own_cert(&t->config, &t->own_chain, &t->own_key);
    }
    return number == 0 || err_set(err, ERR_USAGE, 0, "the client certificate or its key cannot be used with TLS 1.3 "
                                  "(error %d)", number);
}

/* OPTIONAL leaves the verdict to `judge`: mbedTLS's own, of the chain and of usages, does not count. */
static int set_up(struct tls13 *t)
{
    mbedtls_ssl_config *c = &t->config;
    mbedtls_ssl_init(&t->ssl);
    mbedtls_ssl_config_init(c);
    mbedtls_x509_crt_init(&t->own_chain);
    mbedtls_pk_init(&t->own_key);
    enter(t, true);
    int number = psa_crypto_init();
    if (number == 0) {
        number = mbedtls_ssl_config_defaults(c, MBEDTLS_SSL_IS_CLIENT, MBEDTLS_SSL_TRANSPORT_STREAM,
                                             MBEDTLS_SSL_PRESET_DEFAULT);
    }
    mbedtls_ssl_conf_rng(c, give_random, NULL);
    mbedtls_ssl_conf_authmode(c, MBEDTLS_SSL_VERIFY_OPTIONAL);
    mbedtls_ssl_conf_verify(c, judge, t);
    mbedtls_ssl_conf_ciphersuites(c, suites);
    mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(c, 1);
    number = number != 0 ? number : mbedtls_ssl_conf_alpn_protocols(c, (const char **)(uintptr_t)protocols);
    number = number != 0 ? number : mbedtls_ssl_setup(&t->ssl, c);
    number = number != 0
                 ? number
                 : mbedtls_ssl_set_hostname(&t->ssl, tls_link_is_address(&t->link) ? NULL : t->link.host);
    mbedtls_ssl_set_bio(&t->ssl, t, send_below, receive_below, NULL);
    return number;
}

/* One state further. */
static int step(struct tls13 *t)
{
    int state = t->ssl.MBEDTLS_PRIVATE(state);
    int number = mbedtls_ssl_handshake_step(&t->ssl);
    t->link.asked_for_certificate |= state == MBEDTLS_SSL_CERTIFICATE_REQUEST && number == 0 &&
                                     t->ssl.MBEDTLS_PRIVATE(in_msg)[0] == MBEDTLS_SSL_HS_CERTIFICATE_REQUEST;
    return number;
}

static int shake(struct tls13 *t)
{
    int number = 0;
    while (number == 0 && !mbedtls_ssl_is_handshake_over(&t->ssl)) {
        number = step(t);
    }
    return number == MBEDTLS_ERR_SSL_WANT_WRITE ? MBEDTLS_ERR_NET_SEND_FAILED : number; /* an alert is to be read */
}

/* A server that refuses may close before it has read all: its alert says more than our broken pipe. By 1.3 it can be
 * read only after the handshake, which goes on as if the rest were sent. */
static int hear_refusal(struct tls13 *t)
{
    struct err why = t->below;
    unsigned char byte;
    enter(t, false);
    t->cannot_send = true;
    int number = shake(t);
    number = number == 0 ? read_some(t, &byte, 1, false) : number;
    t->below = why;
    return number == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE ? number : MBEDTLS_ERR_NET_SEND_FAILED;
}

static bool open_session(struct tls13 *t, struct err *err)
{
    enter(t, true);
    int number = shake(t);
    number = number == MBEDTLS_ERR_NET_SEND_FAILED ? hear_refusal(t) : number;
    if (number == 0) {
        return true;
    }
    if (number == MBEDTLS_ERR_SSL_CONN_EOF) {
        return tls_link_closed(&t->link, err);
    }
    return is_below(number) ? tls_link_lost(&t->link, &t->below, err) : explain(t, number, err);
}

bool tls13_open(struct tls_link *link, struct tls_session *session, struct stream *out, struct err *err)
{
    struct tls13 *t = calloc(1, sizeof *t);
    if (t == NULL) {
        tls_link_release(link);
        return err_set(err, ERR_MEMORY, 0, "no memory for a TLS connection");
    }
    t->link = *link;
    t->session = session;
    int number = set_up(t);
    explicit_bzero(link->settings.seed, sizeof link->settings.seed);
    peer_init(t->link.peer, &t->link.settings, str_of(t->link.host));
    t->link.peer->verify = tls13_chain_verify;
    bool may_resume = take_up(t);
    if ((number != 0 && !explain(t, number, err)) || !set_identity(t, err) || !open_session(t, err) ||
        !(may_resume || t->link.peer->started || explain(t, MBEDTLS_ERR_SSL_INTERNAL_ERROR, err))) {
        link->other_may = t->link.other_may;
        link->is_guess = t->link.is_guess;
        release(t);
        return false;
    }
    if (session != NULL) {
        session->resumed = !t->link.peer->started;
        session->judged_late = t->link.asked_for_certificate &&
                               mbedtls_ssl_get_version_number(&t->ssl) == MBEDTLS_SSL_VERSION_TLS1_3;
    }
    if (mbedtls_ssl_get_version_number(&t->ssl) == MBEDTLS_SSL_VERSION_TLS1_2) {
        remember(t);
    }
    mbedtls_ssl_conf_verify(&t->config, NULL, NULL);
    tls_link_shaken(&t->link);
    *out = (struct stream){.read = tls13_read, .write = tls13_write, .readable = tls13_readable, .close = tls13_close,
                           .context = t};
    return true;
}
