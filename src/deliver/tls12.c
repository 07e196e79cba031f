/* The first engine: TLS 1.2 with BearSSL, handshake, reading, writing, closing, within deadlines.
 * Ciphers and versions are fixed here; who the server is, peer.c decides; errors are put into words
 * by tls_error.c. */
#include <errno.h>
#include <stdlib.h>

#include "deliver/peer.h"

enum { PUMPS_MAX = 256 };

/* Notes that the server asked for a certificate, which no error says, and hands on to what BearSSL
 * has for one. */
struct asked {
    const br_ssl_client_certificate_class *vtable;
    const br_ssl_client_certificate_class **identity; /* null: none */
    struct tls_link *link;
};

struct tls {
    struct tls_link link;
    br_ssl_client_context client;
    unsigned char records[BR_SSL_BUFSIZE_BIDI];
    struct asked asked;
    bool cannot_send; /* what was sent last did not get out whole */
    struct err lost;  /* why nothing more comes in, found while nobody was reading */
};

_Static_assert(sizeof(br_ssl_session_parameters) <= sizeof((struct tls_session *)0)->bytes, "fits");

static br_ssl_engine_context *engine_of(struct tls *t)
{
    return &t->client.eng;
}

static bool is_closed(struct tls *t)
{
    return (br_ssl_engine_current_state(engine_of(t)) & BR_SSL_CLOSED) != 0;
}

/* ---- Records */

/* Sends all records that are ready. */
static bool send_records(struct tls *t, uint64_t deadline_ns, struct err *err)
{
    size_t len;
    const unsigned char *records;
    if (t->cannot_send) {
        return err_set(err, ERR_NETWORK, EPIPE,
                       "the connection was given up by an earlier failure");
    }
    while ((records = br_ssl_engine_sendrec_buf(engine_of(t), &len)) != NULL) {
        ptrdiff_t sent = t->link.under.write(t->link.under.context, records, len, deadline_ns, err);
        if (sent <= 0) {
            t->cannot_send = true;
            return false;
        }
        br_ssl_engine_sendrec_ack(engine_of(t), (size_t)sent);
    }
    return true;
}

/* One read into the engine: as the stream's. The engine wants something. */
static ptrdiff_t receive(struct tls *t, uint64_t deadline_ns, struct err *err)
{
    size_t room;
    unsigned char *to = br_ssl_engine_recvrec_buf(engine_of(t), &room);
    ptrdiff_t got = tls_link_read(&t->link, to, room, deadline_ns, err);
    if (got > 0) {
        br_ssl_engine_recvrec_ack(engine_of(t), (size_t)got);
    }
    return got;
}

static bool wants_records(struct tls *t)
{
    size_t room;
    return br_ssl_engine_recvrec_buf(engine_of(t), &room) != NULL;
}

static bool explain(struct tls *t, struct err *err)
{
    return tls_link_explain(&t->link, br_ssl_engine_last_error(engine_of(t)), err);
}

/* ---- Plain bytes */

/* The engine is closed: by the server in order, or by an error. */
static ptrdiff_t ended(struct tls *t, struct err *err)
{
    if (br_ssl_engine_last_error(engine_of(t)) == BR_ERR_OK) {
        return 0;
    }
    (void)explain(t, err);
    return -1;
}

static ptrdiff_t take_plain(struct tls *t, void *to, size_t len)
{
    size_t have;
    const unsigned char *plain = br_ssl_engine_recvapp_buf(engine_of(t), &have);
    if (plain == NULL) {
        return 0;
    }
    have = have < len ? have : len;
    memcpy(to, plain, have);
    br_ssl_engine_recvapp_ack(engine_of(t), have);
    return (ptrdiff_t)have;
}

static ptrdiff_t tls_read(void *context, void *to, size_t len, uint64_t deadline_ns,
                          struct err *err)
{
    struct tls *t = context;
    t->link.deadline_ns = deadline_ns;
    for (unsigned i = 0; i < TLS_RECEIVES_MAX; i++) {
        ptrdiff_t got = take_plain(t, to, len);
        if (got > 0) {
            return got;
        }
        if (is_closed(t)) {
            return ended(t, err);
        }
        (void)send_records(t, deadline_ns, NULL); /* answers a farewell: may fail */
        if (is_closed(t)) {
            continue;
        }
        if (!wants_records(t)) { /* because what it has to send first cannot be sent */
            bool farewell = engine_of(t)->shutdown_recv != 0;
            return farewell || tls_link_cut(&t->link, err) ? 0 : -1;
        }
        if (t->lost.kind != ERR_NONE) {
            (void)err_set(err, t->lost.kind, t->lost.number, "%s", t->lost.text);
            return -1;
        }
        got = receive(t, deadline_ns, err);
        if (got == 0) {
            (void)tls_link_cut(&t->link, err);
        }
        if (got <= 0) {
            return -1;
        }
    }
    (void)tls_link_held_up(&t->link, err);
    return -1;
}

/* Takes at most what one record holds, and returns when that is on its way. */
static ptrdiff_t tls_write(void *context, const void *from, size_t len, uint64_t deadline_ns,
                           struct err *err)
{
    struct tls *t = context;
    size_t room;
    t->link.deadline_ns = deadline_ns;
    if (len == 0) {
        return 0;
    }
    if (!send_records(t, deadline_ns, err)) {
        return -1;
    }
    unsigned char *plain = br_ssl_engine_sendapp_buf(engine_of(t), &room);
    if (plain == NULL) {
        if (ended(t, err) == 0) {
            (void)err_set(err, ERR_NETWORK, EPIPE,
                          "TLS with %s: the server ended the connection", t->link.host);
        }
        return -1;
    }
    len = len < room ? len : room;
    memcpy(plain, from, len);
    br_ssl_engine_sendapp_ack(engine_of(t), len);
    br_ssl_engine_flush(engine_of(t), 0);
    return send_records(t, deadline_ns, err) ? (ptrdiff_t)len : -1;
}

/* Bytes below may be half a record, which no read could give: so what is there is taken in first.
 */
static bool tls_readable(void *context)
{
    struct tls *t = context;
    size_t have;
    for (unsigned i = 0; i < PUMPS_MAX; i++) {
        if (br_ssl_engine_recvapp_buf(engine_of(t), &have) != NULL || !wants_records(t) ||
            t->lost.kind != ERR_NONE) {
            return true;
        }
        if (!t->link.under.readable(t->link.under.context)) {
            return false;
        }
        struct err why = {0};
        ptrdiff_t got = receive(t, t->link.deadline_ns, &why);
        if (got < 0 && why.number == ETIMEDOUT) {
            return false;
        }
        if (got == 0) {
            (void)tls_link_cut(&t->link, &t->lost);
        } else if (got < 0) {
            t->lost = why;
        }
    }
    return true;
}

static void release(struct tls *t)
{
    tls_link_release(&t->link);
    explicit_bzero(t, sizeof *t); /* keys, and what was read and written */
    free(t);
}

/* Says farewell and does not wait for the server's: it may have gone. */
static void tls_close(void *context)
{
    struct tls *t = context;
    if (!is_closed(t)) {
        br_ssl_engine_close(engine_of(t));
        (void)send_records(t, t->link.deadline_ns, NULL);
    }
    release(t);
}

/* ---- The client's certificate */

static struct asked *asked_of(const br_ssl_client_certificate_class **ctx)
{
    return (struct asked *)(void *)ctx;
}

static void no_names(const br_ssl_client_certificate_class **ctx)
{
    (void)ctx;
}

static void no_name(const br_ssl_client_certificate_class **ctx, size_t len)
{
    (void)ctx;
    (void)len;
}

static void no_name_bytes(const br_ssl_client_certificate_class **ctx, const unsigned char *bytes,
                          size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
}

/* Without a hash that both know there is no signature; BearSSL 0.6 would go on with RSA
 * nevertheless. */
static void choose(const br_ssl_client_certificate_class **ctx, const br_ssl_client_context *client,
                   uint32_t types, br_ssl_client_certificate *out)
{
    struct asked *asked = asked_of(ctx);
    *out = (br_ssl_client_certificate){0};
    asked->link->asked_for_certificate = true;
    if (asked->identity != NULL) {
        (*asked->identity)->choose(asked->identity, client, types, out);
    }
    if (out->hash_id <= 0) {
        *out = (br_ssl_client_certificate){0};
    }
}

static uint32_t exchange_nothing(const br_ssl_client_certificate_class **ctx, unsigned char *bytes,
                                 size_t *len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return 0; /* only for static ECDH, which is not offered */
}

static size_t sign(const br_ssl_client_certificate_class **ctx, int hash, size_t hash_len,
                   unsigned char *bytes, size_t len)
{
    const br_ssl_client_certificate_class **identity = asked_of(ctx)->identity;
    return identity == NULL ? 0 : (*identity)->do_sign(identity, hash, hash_len, bytes, len);
}

static const br_ssl_client_certificate_class asked_class = {
    sizeof(struct asked), no_names, no_name,          no_name_bytes, no_names,
    no_names,             choose,   exchange_nothing, sign,
};

static void set_identity(struct tls *t, const struct tls_identity *id)
{
    if (id != NULL) {
        const br_skey_decoder_context *key = &id->key.decoder;
        if (br_skey_decoder_key_type(key) == BR_KEYTYPE_RSA) {
            br_ssl_client_set_single_rsa(&t->client, id->chain, id->chain_count,
                                         br_skey_decoder_get_rsa(key),
                                         br_rsa_pkcs1_sign_get_default());
        } else {
            br_ssl_client_set_single_ec(&t->client, id->chain, id->chain_count,
                                        br_skey_decoder_get_ec(key), BR_KEYTYPE_SIGN, 0,
                                        br_ec_get_default(), br_ecdsa_sign_asn1_get_default());
        }
        t->asked.identity = t->client.client_auth_vtable;
    }
    t->asked.vtable = &asked_class;
    t->asked.link = &t->link;
    br_ssl_client_set_client_certificate(&t->client, &t->asked.vtable);
}

/* ---- The handshake */

static const uint16_t suites[] = {
    BR_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    BR_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    BR_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    BR_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    BR_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    BR_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
};

static const char *const protocols[] = {"http/1.1"};

/* What is not set here does not exist: BearSSL's full profile also speaks TLS 1.0, 3DES and SHA-1.
 */
static void set_up_engine(struct tls *t)
{
    br_ssl_engine_context *e = engine_of(t);
    br_ssl_client_zero(&t->client);
    br_ssl_engine_set_versions(e, BR_TLS12, BR_TLS12);
    br_ssl_engine_set_suites(e, suites, sizeof suites / sizeof suites[0]);
    br_ssl_engine_set_hash(e, br_sha256_ID, &br_sha256_vtable);
    br_ssl_engine_set_hash(e, br_sha384_ID, &br_sha384_vtable);
    br_ssl_engine_set_hash(e, br_sha512_ID, &br_sha512_vtable);
    br_ssl_engine_set_prf_sha256(e, &br_tls12_sha256_prf);
    br_ssl_engine_set_prf_sha384(e, &br_tls12_sha384_prf);
    br_ssl_engine_set_default_rsavrfy(e);
    br_ssl_engine_set_default_ecdsa(e);
    br_ssl_engine_set_default_aes_gcm(e);
    br_ssl_engine_set_default_chapol(e);
    br_ssl_engine_add_flags(e, BR_OPT_NO_RENEGOTIATION);
    br_ssl_engine_set_protocol_names(e, (const char **)(uintptr_t)protocols, 1);
    br_ssl_engine_set_buffer(e, t->records, sizeof t->records, 1);
}

static void remember(struct tls *t, struct tls_session *session)
{
    br_ssl_session_parameters now;
    if (session == NULL) {
        return;
    }
    br_ssl_engine_get_session_parameters(engine_of(t), &now);
    memcpy(session->bytes, &now, sizeof now);
    session->any = now.session_id_len > 0;
    session->resumed = !t->link.peer->started;
    explicit_bzero(&now, sizeof now);
}

static bool begin(struct tls *t, const struct tls_session *session, struct err *err)
{
    const char *name = tls_link_is_address(&t->link) ? NULL : t->link.host;
    bool resume = session != NULL && session->any;
    if (resume) {
        br_ssl_session_parameters last;
        memcpy(&last, session->bytes, sizeof last);
        br_ssl_engine_set_session_parameters(engine_of(t), &last);
        explicit_bzero(&last, sizeof last);
    }
    br_ssl_engine_inject_entropy(engine_of(t), t->link.settings.seed, sizeof t->link.settings.seed);
    return br_ssl_client_reset(&t->client, name, resume) || explain(t, err);
}

/* A server that refuses may close before it has read all: its alert says more than our broken pipe.
 */
static bool hear_refusal(struct tls *t, uint64_t deadline_ns, struct err *err)
{
    for (unsigned i = 0; i < PUMPS_MAX && wants_records(t); i++) {
        if (!t->link.under.readable(t->link.under.context) || receive(t, deadline_ns, NULL) <= 0) {
            return false;
        }
    }
    return is_closed(t) && explain(t, err);
}

static bool shake(struct tls *t, uint64_t deadline_ns, struct err *err)
{
    for (unsigned i = 0; i < TLS_RECEIVES_MAX; i++) {
        struct err why = {0};
        if (is_closed(t)) {
            return explain(t, err);
        }
        if (!send_records(t, deadline_ns, &why)) {
            (void)tls_link_lost(&t->link, &why, err);
            (void)hear_refusal(t, deadline_ns, err);
            return false;
        }
        unsigned state = br_ssl_engine_current_state(engine_of(t));
        if (state & BR_SSL_SENDAPP) {
            return true;
        }
        if (state & (BR_SSL_CLOSED | BR_SSL_SENDREC)) {
            continue;
        }
        if (!(state & BR_SSL_RECVREC)) {
            return explain(t, err); /* not possible by BearSSL's manual */
        }
        ptrdiff_t got = receive(t, deadline_ns, &why);
        if (got == 0) {
            return tls_link_closed(&t->link, err);
        }
        if (got < 0) {
            return tls_link_lost(&t->link, &why, err);
        }
    }
    return tls_link_held_up(&t->link, err);
}

bool tls12_open(struct tls_link *link, struct tls_session *session, struct stream *out, struct err *err)
{
    struct tls *t = calloc(1, sizeof *t);
    if (t == NULL) {
        tls_link_release(link);
        return err_set(err, ERR_MEMORY, 0, "no memory for a TLS connection");
    }
    t->link = *link;
    explicit_bzero(link->settings.seed, sizeof link->settings.seed);
    set_up_engine(t);
    set_identity(t, t->link.settings.identity);
    peer_init(t->link.peer, &t->link.settings, str_of(t->link.host));
    br_ssl_engine_set_x509(engine_of(t), &t->link.peer->vtable);
    if (!begin(t, session, err) || !shake(t, t->link.deadline_ns, err)) {
        link->other_may = t->link.other_may;
        link->is_guess = t->link.is_guess;
        release(t);
        return false;
    }
    remember(t, session);
    br_ssl_engine_set_x509(engine_of(t), NULL);
    br_ssl_client_set_client_certificate(&t->client, NULL);
    tls_link_shaken(&t->link);
    *out = (struct stream){.read = tls_read, .write = tls_write, .readable = tls_readable, .close = tls_close,
                           .context = t};
    return true;
}
