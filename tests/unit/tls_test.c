/* src/deliver/tls as far as one side alone can be tried, and identities; real servers are in
 * tests/live/test_tls.py. */
#include "certificates.h"
#include "deliver/tls.h"
#include "deliver/tls_private.h"
#include "flight.h"
#include "test.h"

#include <errno.h>
#include <psa/crypto.h>

/* The second engine's keys, the same each time. */
psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context, uint8_t *to, size_t room,
                                             size_t *len)
{
    (void)context;
    memset(to, 7, room);
    *len = room;
    return PSA_SUCCESS;
}

/* ---- A server that says what it is told to, whatever it hears */

struct server {
    const char *says;
    size_t len, said, at_once; /* bytes per read */
    char heard[4096];
    size_t heard_len, takes;   /* how much it takes before its side is broken */
    int read_errno;            /* after what it says; 0: an end */
    size_t ready;              /* what of it can be read now; 0: all */
    bool endless;              /* says it again and again */
    unsigned busy;             /* so many writes come at a bad time */
    unsigned closed;
};

static size_t left_of(const struct server *s)
{
    return (s->ready > 0 ? s->ready : s->len) - s->said;
}

static ptrdiff_t server_read(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct server *s = context;
    if (s->endless && left_of(s) == 0)
        s->said = 0;
    size_t left = left_of(s);
    (void)deadline_ns;
    if (left == 0 && s->read_errno != 0) {
        err_set(err, ERR_NETWORK, s->read_errno, "nothing came");
        return -1;
    }
    len = len < left ? len : left;
    len = s->at_once > 0 && len > s->at_once ? s->at_once : len;
    if (len > 0)
        memcpy(to, s->says + s->said, len);
    s->said += len;
    return (ptrdiff_t)len;
}

static ptrdiff_t server_write(void *context, const void *from, size_t len, uint64_t deadline_ns,
                              struct err *err)
{
    struct server *s = context;
    (void)deadline_ns;
    if (s->busy > 0) {
        s->busy--;
        err_set(err, ERR_NETWORK, EAGAIN, "the server stopped reading and responded");
        return -1;
    }
    if (s->heard_len >= s->takes) {
        err_set(err, ERR_NETWORK, EPIPE, "writing failed");
        return -1;
    }
    len = len < 7 ? len : 7; /* in pieces */
    memcpy(s->heard + s->heard_len, from, len);
    s->heard_len += len;
    return (ptrdiff_t)len;
}

static bool server_readable(void *context)
{
    struct server *s = context;
    return left_of(s) > 0 || s->read_errno != 0;
}

static void server_close(void *context)
{
    struct server *s = context;
    s->closed++;
}

static struct tls_settings settings_of(unsigned char seed)
{
    struct tls_settings settings = {.verify = false};
    memset(settings.seed, seed, sizeof settings.seed);
    settings.wall_ns = UINT64_C(1796083200) * 1000000000;
    return settings;
}

/* What comes of a handshake with it; it never succeeds. */
static struct err shaken(struct server *s, const char *host)
{
    struct tls_settings settings = settings_of(7);
    struct stream under = {server_read, server_write, server_readable, server_close, s}, out;
    struct err err = {0};
    s->takes = s->takes > 0 ? s->takes : sizeof s->heard - 8;
    CHECK(!tls_open(&under, str_of(host), &settings, NULL, 1, &out, &err));
    CHECK_INT(s->closed, 1);
    return err;
}

static struct err answered(const char *bytes, size_t len)
{
    struct server s = {.says = bytes, .len = len};
    struct err whole = shaken(&s, "h.example");
    s = (struct server){.says = bytes, .len = len, .at_once = 1};
    struct err pieces = shaken(&s, "h.example");
    CHECK_TEXT(pieces.text, whole.text);
    return whole;
}

#define ANSWERED(bytes) answered("" bytes, sizeof(bytes) - 1)
#define ALERT(version, number) "\x15\x03" version "\x00\x02\x02" number

/* ---- What is said */

/* Finds an extension of the ClientHello; its value. RFC 5246, 7.4.1.2. */
static struct str extension(const struct server *s, unsigned wanted)
{
    size_t at = 5 + 4 + 2 + 32;
    const unsigned char *b = (const unsigned char *)s->heard;
    at += 1 + b[at];                            /* session */
    at += 2 + (size_t)(b[at] << 8 | b[at + 1]); /* suites */
    at += 1 + b[at] + 2;                        /* compression; length of extensions */
    while (at + 4 <= s->heard_len) {
        unsigned type = (unsigned)(b[at] << 8 | b[at + 1]);
        size_t len = (size_t)(b[at + 2] << 8 | b[at + 3]);
        if (type == wanted)
            return (struct str){s->heard + at + 4, len};
        at += 4 + len;
    }
    return (struct str){NULL, 0};
}

static void the_hello_offers_what_is_good_and_nothing_else(void)
{
    struct server s = {0};
    (void)shaken(&s, "h.example");
    /* handshake record, TLS 1.2 at most, no session, six suites: ChaCha20, AES-128-GCM,
     * AES-256-GCM, each ECDSA, RSA */
    CHECK(memcmp(s.heard, "\x16\x03\x03", 3) == 0);
    CHECK(memcmp(s.heard + 5, "\x01", 1) == 0 && memcmp(s.heard + 9, "\x03\x03", 2) == 0);
    CHECK(memcmp(s.heard + 43, "\x00\x00\x0c\xcc\xa9\xcc\xa8\xc0\x2b\xc0\x2f\xc0\x2c\xc0\x30\x01\x00", 17) == 0);
    CHECK(str_eq(extension(&s, 16), STR("\x00\x09\x08http/1.1")));
    /* SHA-256, -384, -512 with ECDSA (3) and RSA (1) */
    CHECK(str_eq(extension(&s, 13), STR("\x00\x0c\x04\x03\x05\x03\x06\x03\x04\x01\x05\x01\x06\x01")));
    /* P-256, -384, -521, X25519 */
    CHECK(str_eq(extension(&s, 10), STR("\x00\x08\x00\x17\x00\x18\x00\x19\x00\x1d")));
}

static void a_name_is_sent_without_its_dot_and_an_address_is_not(void)
{
    struct server s = {0};
    (void)shaken(&s, "h.example");
    CHECK(str_eq(extension(&s, 0), STR("\x00\x0c\x00\x00\x09h.example")));
    s = (struct server){0};
    (void)shaken(&s, "h.example.");
    CHECK(str_eq(extension(&s, 0), STR("\x00\x0c\x00\x00\x09h.example")));
    s = (struct server){0};
    (void)shaken(&s, "10.1.2.3");
    CHECK(extension(&s, 0).ptr == NULL && extension(&s, 16).ptr != NULL);
    s = (struct server){0};
    (void)shaken(&s, "2001:db8::1");
    CHECK(extension(&s, 0).ptr == NULL);
}

static void randomness_comes_from_the_seed_alone(void)
{
    struct server first = {0}, second = {0}, other = {0};
    struct tls_settings settings = settings_of(8);
    struct stream under = {server_read, server_write, server_readable, server_close, &other}, out;
    (void)shaken(&first, "h");
    (void)shaken(&second, "h");
    CHECK(first.heard_len > 100 && first.heard_len == second.heard_len &&
          memcmp(first.heard, second.heard, first.heard_len) == 0);
    other.takes = sizeof other.heard - 8;
    CHECK(!tls_open(&under, STR("h"), &settings, NULL, 1, &out, NULL));
    CHECK(memcmp(first.heard + 11, other.heard + 11, 32) != 0);
}

/* ---- What is answered */

static void check_says(struct err err, bool config, const char *text)
{
    CHECK_TEXT(err.text, text);
    CHECK(tls_failed_by_config(&err) == config);
}

static void each_refusal_has_its_remedy(void)
{
    check_says(ANSWERED(ALERT("\x03", "\x46")), true,
               "TLS with h.example: the server requires TLS 1.3, and TLS 1.2 is spoken here: allow "
               "1.2 there, or put a "
               "proxy or collector in front");
    /* Go's alert is in a record of version 1.0 before a version was agreed upon */
    check_says(ANSWERED(ALERT("\x01", "\x46")), true,
               "TLS with h.example: the server requires TLS 1.3, and TLS 1.2 is spoken here: allow "
               "1.2 there, or put a "
               "proxy or collector in front");
    check_says(ANSWERED(ALERT("\x03", "\x28")), true,
               "TLS with h.example: the server has no cipher in common with this side (TLS 1.2, "
               "ECDHE, AES-GCM or "
               "ChaCha20-Poly1305, RSA or ECDSA certificate): allow one of them there. Extended Master Secret, "
               "which FIPS hosts demand, Ed25519 and RSA-PSS keys are not spoken here");
    check_says(ANSWERED(ALERT("\x02", "\x28")), true,
               "TLS with h.example: the server speaks only TLS 1.1 or older, and TLS 1.2 and 1.3 are spoken here: "
               "allow one of them there");
    check_says(ANSWERED(ALERT("\x03", "\x78")), true,
               "TLS with h.example: the server speaks only HTTP/2 or another protocol, and "
               "HTTP/1.1 is spoken here: allow "
               "http/1.1 there, or put a proxy in front");
    check_says(ANSWERED(ALERT("\x03", "\x70")), true,
               "TLS with h.example: the server does not know this name (unrecognized_name): check "
               "the host");
    check_says(ANSWERED(ALERT("\x03", "\x50")), false, "TLS with h.example: the server had an "
                                                       "internal error");
    check_says(ANSWERED(ALERT("\x03", "\x6d")), true,
               "TLS with h.example: the server ended the handshake with alert 109");
}

static void what_is_no_tls_is_said_to_be_none(void)
{
    static const char none[] = "TLS with h.example: the server does not speak TLS on this port: is "
                               "it http, or another "
                               "port?";
    check_says(ANSWERED("HTTP/1.1 400 Bad Request\r\n\r\n"), true, none);
    check_says(ANSWERED("SSH-2.0-x\r\n"), true, none);
    check_says(ANSWERED("\x00\x00\x00\x00\x00\x00"), true, none);
}

static void a_server_that_breaks_the_protocol_is_told_from_one_that_cannot(void)
{
    /* A ServerHello for a suite that was not offered. */
    struct err err = ANSWERED("\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03"
                              "01234567890123456789012345678901"
                              "\x00\x00\x2f\x00");
    check_says(err, false, "TLS with h.example: the server does not follow TLS (error 16)");
}

static void an_end_and_a_failure_of_the_connection_pass(void)
{
    struct err err = ANSWERED("");
    check_says(err, false, "TLS with h.example: the server closed the connection during the "
                           "handshake");
    CHECK_INT(err.number, ECONNRESET);
    err = ANSWERED("\x16\x03\x03\x00\x2a\x02");
    CHECK_INT(err.number, ECONNRESET);
    struct server s = {.read_errno = ETIMEDOUT};
    err = shaken(&s, "h.example");
    check_says(err, false, "TLS with h.example: nothing came");
    CHECK_INT(err.number, ETIMEDOUT);
}

static void an_alert_is_heard_although_sending_failed(void)
{
    static const char alert[] = ALERT("\x03", "\x46");
    struct server s = {.says = alert, .len = sizeof alert - 1, .takes = 20};
    struct err err = shaken(&s, "h.example");
    CHECK(strstr(err.text, "requires TLS 1.3") != NULL);
    s = (struct server){.takes = 20};
    err = shaken(&s, "h.example");
    check_says(err, false, "TLS with h.example: writing failed");
    CHECK_INT(err.number, EPIPE);
}

/* A record without content is allowed; one after the other would never end. */
static void a_server_that_keeps_sending_nothing_is_left(void)
{
    struct server s = {.says = "\x16\x03\x03\x00\x00", .len = 5, .endless = true};
    struct err err = shaken(&s, "h.example");
    check_says(err, false, "TLS with h.example: the server keeps sending and says nothing");
}

static void hosts_have_a_length(void)
{
    char name[300];
    memset(name, 'a', sizeof name);
    for (size_t len = 255; len <= 257; len++) {
        struct server s = {.takes = 4000};
        struct tls_settings settings = settings_of(1);
        struct stream under = {server_read, server_write, server_readable, server_close, &s}, out;
        struct err err;
        CHECK(!tls_open(&under, (struct str){name, len}, &settings, NULL, 1, &out, &err));
        CHECK_INT(err.kind, len == 255 ? ERR_NETWORK : ERR_USAGE);
        CHECK_INT(s.closed, 1);
    }
    struct server s = {0};
    CHECK_INT(shaken(&s, "").kind, ERR_USAGE);
    s = (struct server){0};
    CHECK_INT(shaken(&s, ".").kind, ERR_USAGE);
}

/* ---- A whole connection, heard again (flight.h) */

struct bench {
    struct server server;
    struct trust trust;
    struct tls_session session;
    struct stream stream;
    struct err err;
    bool open;
};

static struct bench *set_up(const struct flight *f, size_t len, size_t at_once)
{
    struct bench *b = calloc(1, sizeof *b);
    struct tls_settings settings = settings_of(7);
    b->server = (struct server){.says = f->says, .len = len, .at_once = at_once};
    b->server.takes = sizeof b->server.heard - 8;
    b->session.second = f->second;
    struct stream under = {server_read, server_write, server_readable, server_close, &b->server};
    trust_add_pem(&b->trust, STR(ROOT_PEM), "ca.pem");
    settings.trust = &b->trust;
    settings.verify = true;
    b->open = tls_open(&under, STR("a.example.com."), &settings, &b->session, 1, &b->stream, &b->err);
    return b;
}

/* The plain bytes of a read, as text; its end and its failure in words. */
static const char *read_text(struct bench *b)
{
    static char text[256];
    ptrdiff_t got = b->stream.read(b->stream.context, text, sizeof text - 1, 1, &b->err);
    if (got <= 0)
        return got == 0 ? "(end)" : "(failed)";
    text[got] = '\0';
    return text;
}

static void tear_down(struct bench *b)
{
    if (b->open)
        b->stream.close(b->stream.context);
    CHECK_INT(b->server.closed, 1);
    tls_session_forget(&b->session);
    trust_release(&b->trust);
    free(b);
}

/* By each engine. */
#define EACH_FLIGHT(f) (const struct flight *f = flights; f < flights + 2; f++)

static void connection_gives_its_bytes(const struct flight *f, size_t at_once)
{
    struct bench *b = set_up(f, f->len, at_once);
    CHECK(b->open && b->session.any == !f->second && !b->session.resumed);
    CHECK_TEXT(read_text(b), FLIGHT_PLAIN);
    CHECK(f->second == (b->session.ticket != NULL));
    CHECK_TEXT(read_text(b), "(end)");
    CHECK_TEXT(read_text(b), "(end)");
    if (!f->second) { /* by 1.3 one side may go on */
        CHECK_INT(b->stream.write(b->stream.context, "x", 1, 1, &b->err), -1);
        CHECK_TEXT(b->err.text, "TLS with a.example.com: the server ended the connection");
    }
    tear_down(b);
}

static void a_connection_gives_its_bytes_and_its_end(void)
{
    static const size_t at_once[] = {0, 1, 5, 100};
    for EACH_FLIGHT(f)
        for (size_t i = 0; i < 4; i++)
            connection_gives_its_bytes(f, at_once[i]);
}

static void a_cut_at_any_byte_is_no_end(void)
{
    for EACH_FLIGHT(f)
        for (size_t len = 0; len < f->len; len += len < f->handshake ? 61 : 1) {
            struct bench *b = set_up(f, len, 0);
            CHECK(b->open == (len >= f->handshake));
            if (b->open && len >= f->farewell)
                CHECK_TEXT(read_text(b), FLIGHT_PLAIN);
            if (b->open)
                CHECK_TEXT(read_text(b), "(failed)");
            CHECK_INT(b->err.number, ECONNRESET);
            CHECK(!tls_failed_by_config(&b->err));
            tear_down(b);
        }
}

static void changed_byte_is_noticed(struct flight f, size_t at)
{
    char *changed = malloc(f.len);
    memcpy(changed, f.says, f.len);
    changed[at] ^= 0x10;
    f.says = changed;
    struct bench *b = set_up(&f, f.len, 0);
    const char *text = b->open ? read_text(b) : "(failed)";
    if (strcmp(text, FLIGHT_PLAIN) == 0)
        text = read_text(b);
    if (strcmp(text, "(failed)") != 0)
        printf("# byte %zu: %s\n", at, text);
    CHECK_TEXT(text, "(failed)");
    CHECK_INT(b->err.kind, ERR_NETWORK);
    tear_down(b);
    free(changed);
}

static void a_changed_byte_changes_nothing_unnoticed(void)
{
    for EACH_FLIGHT(f)
        for (size_t at = 0; at < f->len; at += at < f->handshake ? 37 : 3)
            changed_byte_is_noticed(*f, at);
}

static void readable_is_what_a_read_would_give_at_once(void)
{
    for EACH_FLIGHT(f) {
        struct bench *b = set_up(f, f->len, 0);
        struct server *s = &b->server;
        CHECK(b->open && s->said == f->handshake);
        for (s->ready = f->handshake; s->ready < f->farewell; s->ready++)
            CHECK(!b->stream.readable(b->stream.context));
        CHECK(b->stream.readable(b->stream.context));
        CHECK_INT(s->said, f->farewell);
        CHECK(b->stream.readable(b->stream.context)); /* what waits in the engine */
        CHECK_TEXT(read_text(b), FLIGHT_PLAIN);
        CHECK(!b->stream.readable(b->stream.context));
        s->ready = f->len;
        CHECK(b->stream.readable(b->stream.context)); /* the end */
        CHECK_TEXT(read_text(b), "(end)");
        tear_down(b);
    }
}

static void a_failure_found_by_readable_is_kept_for_the_read(void)
{
    for EACH_FLIGHT(f) {
        struct bench *b = set_up(f, f->farewell, 0);
        CHECK(b->stream.readable(b->stream.context));
        b->server.read_errno = EIO;
        CHECK_TEXT(read_text(b), FLIGHT_PLAIN);
        CHECK(b->stream.readable(b->stream.context));
        CHECK_TEXT(read_text(b), "(failed)");
        CHECK_INT(b->err.number, EIO);
        CHECK_TEXT(b->err.text, "nothing came");
        tear_down(b);
    }
}

static void writing_goes_out_whole(const struct flight *f)
{
    struct bench *b = set_up(f, f->farewell, 0);
    struct server *s = &b->server;
    size_t before = s->heard_len;
    CHECK_INT(b->stream.write(b->stream.context, "hello", 5, 1, &b->err), 5);
    /* an application record of 5 bytes, which 1.3 hides among 16, and a tag of 16 */
    CHECK_INT(s->heard_len - before, 5 + (f->second ? 16 : 5) + 16);
    CHECK(memcmp(s->heard + before, f->second ? "\x17\x03\x03\x00\x20" : "\x17\x03\x03\x00\x15", 5) == 0);
    before = s->heard_len;
    b->stream.close(b->stream.context);
    b->open = false;
    CHECK(memcmp(s->heard + before, f->second ? "\x17\x03\x03\x00\x20" : "\x15\x03\x03\x00\x12", 5) == 0);
    tear_down(b);
}

static void what_is_written_goes_out_whole_and_closing_says_farewell(void)
{
    static const char long_text[20000];
    for EACH_FLIGHT(f) {
        writing_goes_out_whole(f);
        struct bench *b = set_up(f, f->farewell, 0);
        b->server.takes = 1000;
        CHECK_INT(b->stream.write(b->stream.context, long_text, sizeof long_text, 1, &b->err), -1);
        CHECK_INT(b->err.number, EPIPE);
        CHECK_INT(b->stream.write(b->stream.context, "x", 1, 1, &b->err), -1);
        size_t before = b->server.heard_len;
        CHECK_TEXT(read_text(b), FLIGHT_PLAIN); /* the answer is heard nevertheless */
        b->stream.close(b->stream.context);
        b->open = false;
        CHECK_INT(b->server.heard_len, before); /* no farewell into half a record */
        tear_down(b);
    }
}

/* A stream that is full says EAGAIN as soon as there is something to read, for it might be a response. */
static void tickets_hold_no_request_up(void)
{
    const struct flight *f = &flights[1];
    struct bench *b = set_up(f, f->len, 0);
    size_t plain = f->farewell - sizeof FLIGHT_PLAIN - 5 - 16;
    for (unsigned busy = 1; busy < 4; busy++) { /* what waits goes out with the write, or while a ticket is taken in */
        tear_down(b);
        b = set_up(f, f->len, 0);
        size_t before = b->server.heard_len;
        b->server.ready = plain;
        b->server.busy = busy;
        CHECK_INT(b->stream.write(b->stream.context, "hello", 5, 1, &b->err), 5);
        CHECK(b->session.ticket != NULL);
        CHECK_INT(b->server.busy, 0);
        CHECK_INT(b->server.heard_len - before, 5 + 16 + 16); /* once */
    }
    b->server.ready = f->len;
    b->server.busy = 1;
    CHECK_INT(b->stream.write(b->stream.context, "hello", 5, 1, &b->err), -1);
    CHECK_INT(b->err.number, EAGAIN);
    CHECK_TEXT(read_text(b), FLIGHT_PLAIN);
    tear_down(b);
}

/* ---- Which engine */

/* Does the other engine get a turn after this answer? */
static bool turns(const char *says, size_t len, bool second)
{
    struct server s = {.says = says, .len = len, .takes = sizeof s.heard - 8};
    struct tls_settings settings = settings_of(7);
    struct stream under = {server_read, server_write, server_readable, server_close, &s}, out;
    struct tls_session session = {.second = second};
    CHECK(!tls_open(&under, STR("h"), &settings, &session, 1, &out, NULL));
    CHECK(session.second == (second || session.again));
    return session.again;
}

static void who_refuses_the_first_engine_gets_the_second(void)
{
    static const char *const refuse[] = {ALERT("\x03", "\x28"), ALERT("\x01", "\x46"), ALERT("\x03", "\x47"),
                                         ALERT("\x03", "\x50")};
    for (size_t i = 0; i < sizeof refuse / sizeof refuse[0]; i++) {
        CHECK(turns(refuse[i], 7, false));
        CHECK(!turns(refuse[i], 7, true));
    }
    CHECK(!turns(ALERT("\x03", "\x78"), 7, false)); /* HTTP/2 alone */
    CHECK(!turns("HTTP/1.1 400 Bad", 16, false));
}

/* Once: it may as well be a server that is restarted. */
static void who_closes_without_a_word_gets_it_once(void)
{
    CHECK(turns("", 0, false));
    CHECK(!turns("\x16\x03", 2, false));
    struct tls_settings settings = settings_of(7);
    struct tls_session session = {0};
    for (int i = 0; i < 4; i++) {
        struct server s = {.takes = sizeof s.heard - 8};
        struct stream under = {server_read, server_write, server_readable, server_close, &s}, out;
        CHECK(!tls_open(&under, STR("h"), &settings, &session, 1, &out, NULL));
        CHECK(session.again == (i % 2 == 0) && session.second == session.again);
    }
}

static void a_session_is_offered_again_and_forgotten_after_a_failure(void)
{
    const struct flight *f = flights;
    struct bench *b = set_up(f, f->len, 0);
    struct tls_settings settings = settings_of(9);
    struct server s = {.takes = 4000};
    struct stream under = {server_read, server_write, server_readable, server_close, &s}, out;
    CHECK(b->session.any);
    CHECK(!tls_open(&under, STR("a.example.com"), &settings, &b->session, 1, &out, &b->err));
    CHECK_INT(s.heard[43], 32); /* the length of the session's id */
    CHECK(memmem(f->says, f->handshake, s.heard + 44, 32) != NULL);
    CHECK(!b->session.any);
    tear_down(b);
}

/* ---- Identities */

static bool identity_is(const char *chain, const char *key, const char *why)
{
    struct err err = {0};
    struct tls_identity *id = tls_identity_new(str_of(chain), str_of(key), &err);
    bool taken = id != NULL;
    if (!taken && (why == NULL || strstr(err.text, why) == NULL)) {
        printf("# %s\n", err.text);
        return false;
    }
    tls_identity_free(id);
    return taken == (why == NULL);
}

static void keys_are_taken_in_every_usual_form(void)
{
    CHECK(identity_is(NAMED_PEM, NAMED_KEY, NULL));
    CHECK(identity_is(NAMED_PEM ROOT_PEM, NAMED_SEC1, NULL));
    CHECK(identity_is(CLIENT_PEM, CLIENT_KEY, NULL));
    CHECK(identity_is(RSA_PEM, RSA_KEY, NULL));
    CHECK(identity_is(NAMED_KEY NAMED_PEM, NAMED_PEM NAMED_KEY, NULL)); /* one file with both */
}

static void what_is_wrong_with_an_identity_is_said(void)
{
    CHECK(identity_is(NAMED_PEM, CLIENT_KEY, "is not that of its certificate"));
    CHECK(identity_is(RSA_PEM, NAMED_KEY, "is not that of its certificate"));
    CHECK(identity_is(NAMED_PEM, RSA_KEY, "is not that of its certificate"));
    CHECK(identity_is(NAMED_PEM, NAMED_LOCKED, "pass phrase"));
    CHECK(identity_is(NAMED_PEM, NAMED_LOCKED8, "pass phrase"));
    CHECK(identity_is(NAMED_PEM, NAMED_PEM, "holds no private key"));
    CHECK(identity_is(NAMED_KEY, NAMED_KEY, "holds no certificate"));
    CHECK(identity_is(NAMED_PEM, "-----BEGIN PRIVATE KEY-----\nYWJj\n-----END PRIVATE KEY-----\n", "cannot be read"));
    CHECK(identity_is("-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n", NAMED_KEY, "does not begin"));
    CHECK(identity_is(ROOT_PEM ROOT_PEM ROOT_PEM ROOT_PEM ROOT_PEM ROOT_PEM ROOT_PEM ROOT_PEM ROOT_PEM, NAMED_KEY,
                      "more than 8"));
}

static void put_base64(struct buf *out, const unsigned char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i + 3 <= len; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            buf_byte(out, digits[bits >> shift & 63]);
    }
}

/* A PKCS#1 key whose modulus has so many bytes: what BearSSL's decoder reads first into its field
 * of 1536. */
static bool crafted_is_refused(size_t modulus, const char *why)
{
    unsigned char der[4096] = {0x30, 0x82, 0, 0, 0x02, 0x01, 0x00, 0x02, 0x82};
    size_t len = 11 + modulus, outer;
    memset(der + 11, 0x5a, modulus);
    der[9] = (unsigned char)(modulus >> 8);
    der[10] = (unsigned char)modulus;
    while (len % 3 != 0) /* so that base64 needs no padding */
        len++;
    outer = len - 4;
    der[2] = (unsigned char)(outer >> 8);
    der[3] = (unsigned char)outer;
    struct buf pem;
    buf_init(&pem, 1 << 14);
    buf_text(&pem, "-----BEGIN RSA PRIVATE KEY-----\n");
    put_base64(&pem, der, len);
    buf_text(&pem, "\n-----END RSA PRIVATE KEY-----\n");
    bool refused = identity_is(NAMED_PEM, buf_cstr(&pem), why);
    buf_release(&pem);
    return refused;
}

static void a_crafted_key_overflows_nothing(void)
{
    CHECK(crafted_is_refused(1500, "cannot be read"));
    for (size_t modulus = 1530; modulus < 1570; modulus++)
        CHECK(crafted_is_refused(modulus, "cannot be read"));
    CHECK(crafted_is_refused(2500, "cannot be read"));
    CHECK(crafted_is_refused(4000, "has more than"));
}

TESTS({"the hello offers what is good and nothing else", the_hello_offers_what_is_good_and_nothing_else},
      {"a name is sent without its dot, and an address is not", a_name_is_sent_without_its_dot_and_an_address_is_not},
      {"randomness comes from the seed alone", randomness_comes_from_the_seed_alone},
      {"each refusal has its remedy", each_refusal_has_its_remedy},
      {"what is no TLS is said to be none", what_is_no_tls_is_said_to_be_none},
      {"a server that breaks the protocol is told from one that cannot",
       a_server_that_breaks_the_protocol_is_told_from_one_that_cannot},
      {"an end and a failure of the connection pass", an_end_and_a_failure_of_the_connection_pass},
      {"an alert is heard although sending failed", an_alert_is_heard_although_sending_failed},
      {"a server that keeps sending nothing is left", a_server_that_keeps_sending_nothing_is_left},
      {"hosts have a length", hosts_have_a_length},
      {"a connection gives its bytes and its end", a_connection_gives_its_bytes_and_its_end},
      {"a cut at any byte is no end", a_cut_at_any_byte_is_no_end},
      {"a changed byte changes nothing unnoticed", a_changed_byte_changes_nothing_unnoticed},
      {"readable is what a read would give at once", readable_is_what_a_read_would_give_at_once},
      {"a failure found by readable is kept for the read",
       a_failure_found_by_readable_is_kept_for_the_read},
      {"what is written goes out whole, and closing says farewell",
       what_is_written_goes_out_whole_and_closing_says_farewell},
      {"who refuses the first engine gets the second", who_refuses_the_first_engine_gets_the_second},
      {"who closes without a word gets it once", who_closes_without_a_word_gets_it_once},
      {"tickets hold no request up", tickets_hold_no_request_up},
      {"a session is offered again, and forgotten after a failure",
       a_session_is_offered_again_and_forgotten_after_a_failure},
      {"keys are taken in every usual form", keys_are_taken_in_every_usual_form},
      {"what is wrong with an identity is said", what_is_wrong_with_an_identity_is_said},
      {"a crafted key overflows nothing", a_crafted_key_overflows_nothing})
