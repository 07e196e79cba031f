/* src/deliver/client and paced: connections, proxies, redirects, against servers in memory. TLS is played. */
#include "deliver/client.h"
#include "base/version.h"
#include "deliver/paced.h"
#include "memory_stream.h"
#include "test.h"

#define SECOND_NS UINT64_C(1000000000)
#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

enum { SERVERS_MAX = 8 };

/* The world as the client sees it: the servers it dials, one after the other, and a clock. */
struct world {
    struct client client;
    struct memory_stream servers[SERVERS_MAX];
    size_t count, next;
    char dials[1000]; /* "host:port " of each */
    uint64_t mono_ns, wall_ns;
    bool refuse_tls, refuse_first, resume_tls;
    char tls_hosts[200];
    struct http_response answer;
    struct err err;
};

static uint64_t mono(void *context)
{
    return ((struct world *)context)->mono_ns;
}

static uint64_t wall(void *context)
{
    return ((struct world *)context)->wall_ns;
}

static void random_bytes(void *context, void *to, size_t len)
{
    (void)context;
    memset(to, 0xa5, len);
}

static bool dial(void *context, struct str host, uint16_t port, uint64_t deadline_ns,
                 struct stream *out, struct err *err)
{
    struct world *w = context;
    size_t used = strlen(w->dials);
    (void)deadline_ns;
    snprintf(w->dials + used, sizeof w->dials - used, "%.*s:%u ", (int)host.len, host.ptr, port);
    if (w->next == w->count) {
        return err_set(err, ERR_NETWORK, ECONNREFUSED, "cannot connect to %.*s: refused",
                       (int)host.len, host.ptr);
    }
    *out = memory_stream_of(&w->servers[w->next++]);
    if (str_eq(host, STR("disguised"))) { /* a name, or figures that only a resolver reads */
        memcpy(out->peer, "\xa9\xfe\xa9\xfe", 4);
        out->peer_len = 4;
    }
    return true;
}

/* The handshake that is played: "<tls HOST>" goes out, and from then on all is as below. The trust that the settings
 * carry is the world, for want of another way to it. */
bool tls_open(struct stream *under, struct str host, const struct tls_settings *settings,
              struct tls_session *session, uint64_t deadline_ns, struct stream *out,
              struct err *err)
{
    struct world *w = (struct world *)(uintptr_t)settings->trust;
    char hello[300];
    CHECK(settings->seed[0] == 0xa5 && settings->seed[31] == 0xa5);
    CHECK(settings->wall_ns == w->wall_ns && deadline_ns <= w->mono_ns + 10 * SECOND_NS);
    snprintf(hello, sizeof hello, "<tls %.*s%s%s>", (int)host.len, host.ptr,
             session->any ? " again" : "", session->second ? " second" : "");
    (void)under->write(under->context, hello, strlen(hello), deadline_ns, err);
    if (w->refuse_tls) {
        under->close(under->context);
        return err_set(err, ERR_NETWORK, 1, "TLS with h: expired yesterday");
    }
    if (w->refuse_first && !session->second) {
        session->second = session->again = true;
        under->close(under->context);
        return err_set(err, ERR_NETWORK, 1, "TLS with h: not by the first");
    }
    session->resumed = session->any && w->resume_tls;
    session->any = true;
    *out = *under;
    return true;
}

void tls_session_forget(struct tls_session *session)
{
    *session = (struct tls_session){0};
}

bool tls_failed_by_config(const struct err *err)
{
    return err->number == 1;
}

static void begin(struct world *w, struct proxies proxies)
{
    *w = (struct world){.mono_ns = 1000 * SECOND_NS, .wall_ns = 1700000000 * SECOND_NS};
    client_init(&w->client, &(struct client_settings){
                                .dialer = {dial, w},
                                .clock = {mono, wall, w},
                                .random = random_bytes,
                                .tls = {.trust = (const struct trust *)(void *)w},
                                .proxies = proxies,
                            });
}

static struct memory_stream *serves(struct world *w, const char *says)
{
    memory_init(&w->servers[w->count], says);
    return &w->servers[w->count++];
}

static void end(struct world *w)
{
    client_release(&w->client);
    for (size_t i = 0; i < w->count; i++) {
        CHECK(i >= w->next || w->servers[i].closed);
        memory_release(&w->servers[i]);
    }
    http_response_release(&w->answer);
}

static bool send_to(struct world *w, const char *address, struct http_request *request)
{
    struct url url = {0};
    w->err = (struct err){0};
    CHECK(url_parse(&url, str_of(address), 80, NULL));
    http_response_release(&w->answer);
    return client_send(&w->client, &url, request, w->mono_ns + 60 * SECOND_NS, &w->answer, &w->err);
}

static struct http_request post(void)
{
    struct http_request request = {.method = "POST", .target = STR("/up"), .body = STR("data")};
    (void)http_add(&request, STR("Authorization"), STR("Bearer SECRET-1"), true);
    (void)http_add(&request, STR("X-Plain"), STR("1"), false);
    return request;
}

static bool post_to(struct world *w, const char *address)
{
    struct http_request request = post();
    bool ok = send_to(w, address, &request);
    CHECK_INT(request.header_count, 2);
    CHECK_STR(request.target, "/up");
    return ok;
}

static bool heard(const struct memory_stream *m, const char *part)
{
    return memmem(m->heard.ptr, m->heard.len, part, strlen(part)) != NULL;
}

static const struct proxies no_proxies;

#define CHECK_HEARD(world, i, part) CHECK(heard(&(world)->servers[i], part))
#define CHECK_SAYS(world, part)                                                                    \
    do {                                                                                           \
        if (strstr((world)->err.text, part) == NULL) {                                             \
            CHECK_TEXT((world)->err.text, part);                                                   \
        }                                                                                          \
        CHECK(strstr((world)->err.text, "SECRET") == NULL);                                        \
    } while (0)

/* ---- addresses ---- */

static void address(const char *url_text, const char *target, const char *want_host,
                    const char *want_target)
{
    struct url url = {0};
    struct err err = {0};
    struct buf text;
    struct http_request request = {.method = "GET", .target = str_of(target)};
    buf_init(&text, 10000);
    CHECK(url_parse(&url, str_of(url_text), 0, NULL));
    CHECK(client_address(&url, &request, &text, &err));
    CHECK_STR(request.host, want_host);
    CHECK_STR(request.target, want_target);
    buf_release(&text);
}

static void the_urls_path_stands_before_the_target(void)
{
    address("http://h", "/a?x=1", "h", "/a?x=1");
    address("http://h/p/", "/a?x=1", "h", "/p/a?x=1");
    address("http://h/p?t=2", "/a?x=1", "h", "/p/a?t=2&x=1");
    address("http://h/p?t=2", "", "h", "/p?t=2");
    address("http://h/p/?t=2", "/a", "h", "/p/a?t=2");
    address("http://h/p", "a", "h", "/p/a");
    address("http://h", "", "h", "/");
    address("http://h", "?x", "h", "/?x");
    address("http://h?t", "", "h", "/?t");
}

static void the_host_has_its_port_when_it_is_not_the_usual_one(void)
{
    address("http://h:80", "/", "h", "/");
    address("http://h:443", "/", "h:443", "/");
    address("https://h:443", "/", "h", "/");
    address("https://h:80", "/", "h:80", "/");
    address("http://h.example.:81", "/", "h.example:81", "/");
    address("http://[2001:db8::1]:81", "/", "[2001:db8::1]:81", "/");
    address("http://[fe80::1%eth0]", "/", "[fe80::1]", "/");
    address("unix:/run/x.sock", "/a", "localhost", "/a");
}

/* ---- connections ---- */

static void a_connection_is_used_again_for_15_seconds(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, OK_EMPTY OK_EMPTY OK_EMPTY)->step = sizeof OK_EMPTY - 1;
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "http://h:81"));
    w.mono_ns += 14 * SECOND_NS;
    CHECK(post_to(&w, "http://h:81"));
    CHECK_TEXT(w.dials, "h:81 ");
    w.mono_ns += 15 * SECOND_NS;
    CHECK(post_to(&w, "http://h:81"));
    CHECK_TEXT(w.dials, "h:81 h:81 ");
    CHECK_INT(w.client.connects, 2);
    CHECK(w.servers[0].closed && !w.servers[1].closed);
    end(&w);
}

static void another_server_has_a_connection_of_its_own(void)
{
    struct world w;
    begin(&w, no_proxies);
    for (int i = 0; i < 4; i++) {
        serves(&w, OK_EMPTY OK_EMPTY)->step = sizeof OK_EMPTY - 1; /* each would have another answer */
    }
    CHECK(post_to(&w, "http://h:81"));
    CHECK(post_to(&w, "http://h:82"));
    CHECK(post_to(&w, "http://i:82"));
    CHECK(post_to(&w, "https://i:82"));
    CHECK_TEXT(w.dials, "h:81 h:82 i:82 i:82 ");
    CHECK_HEARD(&w, 3, "<tls i>POST /up HTTP/1.1\r\nHost: i:82\r\n");
    end(&w);
}

static void what_can_be_read_from_an_idle_connection_is_its_end(void)
{
    struct world w;
    begin(&w, no_proxies);
    struct memory_stream *first = serves(&w, OK_EMPTY "HTTP/1.1 408 Idle\r\n\r\n");
    first->step = sizeof OK_EMPTY - 1;
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "http://h"));
    first->speaks_at = 1;
    size_t before = first->heard.len;
    CHECK(post_to(&w, "http://h"));
    CHECK_INT(w.answer.status, 200);
    CHECK_INT(first->heard.len, before);
    CHECK_TEXT(w.dials, "h:80 h:80 ");
    end(&w);
}

static void a_stale_connection_is_replaced_once(void)
{
    static const int how[] = {0, ECONNRESET};
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        begin(&w, no_proxies);
        serves(&w, OK_EMPTY)->ends_with = how[i];
        serves(&w, OK_EMPTY)->ends_with = how[i];
        CHECK(post_to(&w, "http://h"));
        CHECK(post_to(&w, "http://h"));
        CHECK_TEXT(w.dials, "h:80 h:80 ");
        /* The new one ends, too: there is no third. */
        serves(&w, "");
        CHECK(!post_to(&w, "http://h"));
        CHECK_TEXT(w.dials, "h:80 h:80 h:80 ");
        CHECK(!w.client.config && !w.answer.began);
        end(&w);
    }
}

static void a_silent_or_half_told_one_is_not_tried_again(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, OK_EMPTY)->ends_with = ETIMEDOUT;
    CHECK(post_to(&w, "http://h"));
    CHECK(!post_to(&w, "http://h"));
    CHECK_SAYS(&w, "http://h: nothing came for 10 s");
    CHECK_INT(w.err.number, ETIMEDOUT);
    CHECK_TEXT(w.dials, "h:80 ");
    serves(&w, OK_EMPTY "HTTP/1.1 20")->step = sizeof OK_EMPTY - 1;
    CHECK(post_to(&w, "http://h"));
    CHECK(!post_to(&w, "http://h"));
    CHECK_SAYS(&w, "in the middle of the response's headers");
    CHECK_TEXT(w.dials, "h:80 h:80 ");
    end(&w);
}

static void an_early_answer_ends_the_connection(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")->speaks_at = 1;
    serves(&w, OK_EMPTY);
    char *body = calloc(1, 1000000);
    struct http_request request = post();
    request.body = (struct str){body, 1000000};
    CHECK(send_to(&w, "http://h", &request));
    CHECK_INT(w.answer.status, 413);
    CHECK(w.servers[0].closed && w.servers[0].heard.len < 100000);
    free(body);
    end(&w);
}

/* A server that answers and reads no more, without a cut: the write is stuck, the answer is there. */
static void a_write_that_is_stuck_looks_for_an_answer(void)
{
    struct world w;
    begin(&w, no_proxies);
    struct memory_stream *m = serves(&w, "HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
    m->mono_ns = &w.mono_ns;
    m->stuck_at = 50000;
    m->speaks_stuck = true;
    m->stuck_with = ETIMEDOUT;
    uint64_t before = w.mono_ns;
    char *body = calloc(1, 1000000);
    struct http_request request = post();
    request.body = (struct str){body, 1000000};
    CHECK(send_to(&w, "http://h", &request));
    CHECK_INT(w.answer.status, 401);
    CHECK(w.mono_ns - before < SECOND_NS);
    free(body);
    end(&w);
}

/* Its first frame is its settings: 18 bytes, of type 4. */
static void a_port_of_grpc_is_told_as_such(void)
{
    struct world w;
    begin(&w, no_proxies);
    struct memory_stream *m = serves(&w, "");
    m->says = (struct str){"\x00\x00\x12\x04\x00\x00\x00\x00\x00", 9};
    CHECK(!post_to(&w, "http://h:4317"));
    CHECK_SAYS(&w, "is HTTP/2 alone, as gRPC is; give the port that speaks HTTP/1.1 (of OpenTelemetry usually 4318)");
    CHECK(w.client.config);
    end(&w);
}

static void a_write_that_is_stuck_ends_after_10_seconds(void)
{
    struct world w;
    begin(&w, no_proxies);
    struct memory_stream *m = serves(&w, "");
    m->mono_ns = &w.mono_ns;
    m->stuck_at = 50;
    m->stuck_with = ETIMEDOUT;
    m->ends_with = ETIMEDOUT;
    uint64_t before = w.mono_ns;
    CHECK(!post_to(&w, "http://h"));
    CHECK_SAYS(&w, "http://h: the server read nothing for 10 s");
    CHECK(w.mono_ns - before < 11 * SECOND_NS && w.answer.sent);
    end(&w);
}

static void trickled_bytes_do_not_outlive_the_deadline(void)
{
    struct world w;
    begin(&w, no_proxies);
    struct memory_stream *m = serves(&w, "HTTP/1.1 200 OK\r\nX: a\r\n");
    m->mono_ns = &w.mono_ns;
    m->tick_ns = SECOND_NS;
    m->step = 1;
    m->endless = true;
    m->repeats_from = 17;
    CHECK(!post_to(&w, "http://h"));
    CHECK_INT(m->reads, 60); /* one a second */
    CHECK_SAYS(&w, "the time limit was reached");
    CHECK_INT(w.err.number, ETIMEDOUT);
    end(&w);
}

/* ---- TLS ---- */

static void sessions_belong_to_one_server(void)
{
    struct world w;
    begin(&w, no_proxies);
    w.resume_tls = true;
    for (int i = 0; i < 4; i++) {
        serves(&w, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
    CHECK(post_to(&w, "https://h"));
    CHECK(post_to(&w, "https://h"));
    CHECK_INT(w.client.resumptions, 1);
    CHECK(post_to(&w, "https://h:444"));
    CHECK(post_to(&w, "https://i:444"));
    CHECK_INT(w.client.resumptions, 1);
    CHECK_HEARD(&w, 0, "<tls h>");
    CHECK_HEARD(&w, 1, "<tls h again>");
    CHECK_HEARD(&w, 2, "<tls h>");
    CHECK_HEARD(&w, 3, "<tls i>");
    end(&w);
}

static void a_full_handshake_is_no_resumption(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "https://h"));
    CHECK(post_to(&w, "https://h"));
    CHECK_INT(w.client.resumptions, 0);
    CHECK_INT(w.client.connects, 2);
    end(&w);
}

static void who_refuses_the_first_engine_is_asked_by_the_second(void)
{
    struct world w;
    begin(&w, no_proxies);
    w.refuse_first = true;
    serves(&w, "");
    for (int i = 0; i < 2; i++) {
        serves(&w, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
    CHECK(post_to(&w, "https://h"));
    CHECK_INT(w.err.kind, ERR_NONE);
    CHECK(!w.client.config);
    CHECK(post_to(&w, "https://h")); /* at once: that is known now */
    CHECK_INT(w.client.connects, 3);
    CHECK_HEARD(&w, 0, "<tls h>");
    CHECK_HEARD(&w, 1, "<tls h second>");
    CHECK_HEARD(&w, 2, "<tls h again second>");
    end(&w);
}

static void the_second_engine_is_asked_once(void)
{
    struct world w;
    begin(&w, no_proxies);
    w.refuse_first = w.refuse_tls = true;
    serves(&w, "");
    serves(&w, "");
    CHECK(!post_to(&w, "https://h"));
    CHECK_INT(w.client.connects, 1); /* whoever refuses by a reason of its own is not asked again */
    w.refuse_tls = false;
    CHECK(!post_to(&w, "https://h"));
    CHECK_INT(w.client.connects, 2);
    CHECK_TEXT(w.err.text, "cannot connect to h: refused");
    end(&w);
}

static void a_certificate_is_a_matter_of_configuration(void)
{
    struct world w;
    begin(&w, no_proxies);
    w.refuse_tls = true;
    serves(&w, "");
    CHECK(!post_to(&w, "https://h"));
    CHECK(w.client.config);
    CHECK_TEXT(w.err.text, "TLS with h: expired yesterday");
    CHECK(!post_to(&w, "https://h"));
    CHECK(!w.client.config); /* now nobody listens */
    CHECK_TEXT(w.err.text, "cannot connect to h: refused");
    end(&w);
}

/* ---- proxies ---- */

static const struct proxies both = {{"http://us%65r:p%40s%73@proxy:3128", 33},
                                    {"http://us%65r:p%40s%73@proxy:3128", 33},
                                    {"", 0}};

/* printf user:p@ss | base64 */
#define CREDENTIALS "Proxy-Authorization: Basic dXNlcjpwQHNz\r\n"

static void https_goes_through_a_tunnel(void)
{
    struct world w;
    begin(&w, both);
    serves(&w, "HTTP/1.0 200 Connection established\r\nContent-Length: 3\r\n\r\n" OK_EMPTY)->step = 1;
    CHECK(post_to(&w, "https://origin.example."));
    CHECK_TEXT(w.dials, "proxy:3128 ");
    CHECK_STR(buf_slice(&w.servers[0].heard),
              "CONNECT origin.example:443 HTTP/1.1\r\n"
              "Host: origin.example:443\r\n"
              "User-Agent: pillion/" PILLION_VERSION "\r\nAccept: */*\r\n" CREDENTIALS "\r\n"
              "<tls origin.example.>"
              "POST /up HTTP/1.1\r\nHost: origin.example\r\n"
              "User-Agent: pillion/" PILLION_VERSION "\r\nAccept: */*\r\n"
              "Authorization: Bearer SECRET-1\r\nX-Plain: 1\r\nContent-Length: 4\r\n\r\ndata");
    end(&w);
}

static void http_asks_the_proxy_for_the_whole_address(void)
{
    struct world w;
    begin(&w, both);
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "http://[2001:db8::1]:81/p?q"));
    CHECK_TEXT(w.dials, "proxy:3128 ");
    CHECK_HEARD(&w, 0, "POST http://[2001:db8::1]:81/p/up?q HTTP/1.1\r\n"
                       "Host: [2001:db8::1]:81\r\n");
    CHECK_HEARD(&w, 0, CREDENTIALS);
    end(&w);
}

static void sockets_and_this_machine_need_no_proxy(void)
{
    struct world w;
    begin(&w, both);
    serves(&w, OK_EMPTY);
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "unix:/run/x.sock"));
    CHECK(post_to(&w, "http://127.0.0.1:4040"));
    CHECK_TEXT(w.dials, "/run/x.sock:0 127.0.0.1:4040 ");
    CHECK_HEARD(&w, 0, "POST /up HTTP/1.1\r\nHost: localhost\r\n");
    end(&w);
}

static void a_proxy_that_refuses_is_named(void)
{
    static const struct {
        const char *says, *sentence;
        bool config;
    } cases[] = {
        {"HTTP/1.1 407 Who\r\nContent-Length: 2\r\n\r\nno",
         "the proxy proxy:3128 requires a valid user and password (407 Who)", true},
        {"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
         "the proxy proxy:3128 does not connect to h:443: 403 No", true},
        {"HTTP/1.1 502 Bad\r\n\r\n", "the proxy proxy:3128 does not connect to h:443: 502 Bad", false},
        {"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", "429 Slow", false},
        {"", "https://h through the proxy proxy:3128: the connection was closed", false},
        {"HTTP/1.1 200 OK\r\n\r\nhello", "the proxy proxy:3128 speaks where the server should", false},
        {"SSH-2.0", "through the proxy proxy:3128: the response is not HTTP", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        begin(&w, both);
        serves(&w, cases[i].says);
        CHECK(!post_to(&w, "https://h"));
        CHECK_SAYS(&w, cases[i].sentence);
        CHECK_INT(w.client.config, cases[i].config);
        CHECK_INT(w.err.kind, ERR_NETWORK);
        CHECK(!heard(&w.servers[0], "SECRET") && w.servers[0].closed);
        CHECK(strstr(w.err.text, "p@ss") == NULL && strstr(w.err.text, "p%40s") == NULL);
        end(&w);
    }
}

static void a_407_to_plain_http_is_the_proxys_too(void)
{
    struct world w;
    begin(&w, both);
    serves(&w, "HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n");
    CHECK(!post_to(&w, "http://h"));
    CHECK_SAYS(&w, "the proxy proxy:3128 requires a valid user");
    CHECK(w.client.config);
    end(&w);
}

static void a_proxy_that_does_not_listen_is_named(void)
{
    struct world w;
    begin(&w, both);
    CHECK(!post_to(&w, "https://h"));
    CHECK_TEXT(w.err.text, "the proxy proxy:3128: cannot connect to proxy: refused");
    CHECK(!w.client.config);
    end(&w);
}

static void a_proxy_that_cannot_be_is_a_matter_of_configuration(void)
{
    struct world w;
    struct proxies socks = {.https = STR("socks5://s:1080")};
    begin(&w, socks);
    CHECK(!post_to(&w, "https://h"));
    CHECK_SAYS(&w, "SOCKS");
    CHECK(w.client.config);
    CHECK_TEXT(w.dials, "");
    end(&w);
}

/* ---- redirects ---- */

#define TO(status, location)                                                                       \
    "HTTP/1.1 " status " x\r\nLocation: " location "\r\nContent-Length: 0\r\n\r\n"

static void a_redirect_on_the_same_server_keeps_everything(void)
{
    static const struct {
        const char *location, *line;
    } cases[] = {
        {TO("307", "/b/"), "POST /b/ HTTP"},
        {TO("308", "c?x=2#there"), "POST /p/c?x=2 HTTP"},
        {TO("308", "?x=2"), "POST /p/up?x=2 HTTP"},
        {TO("307", "http://H:80/b"), "POST /b HTTP"},
        {TO("307", "//h/b"), "POST /b HTTP"},
        {TO("307", "HTTP://h"), "POST / HTTP"},
        {TO("307", "http://h?y"), "POST /?y HTTP"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        begin(&w, no_proxies);
        char says[300];
        snprintf(says, sizeof says, "%s%s", cases[i].location, OK_EMPTY);
        serves(&w, says)->step = strlen(cases[i].location);
        serves(&w, OK_EMPTY);
        CHECK(post_to(&w, "http://h/p?t"));
        CHECK_INT(w.answer.status, 200);
        size_t last = w.next - 1; /* "H" is another host to a connection, not to a secret */
        struct memory_stream *m = &w.servers[last];
        CHECK(heard(m, cases[i].line) && heard(m, "Bearer SECRET-1"));
        CHECK(heard(m, "\r\n\r\ndata") && heard(m, "X-Plain"));
        end(&w);
    }
}

static void another_server_gets_no_secret(void)
{
    static const char *const locations[] = {TO("307", "http://other/x"), TO("308", "http://h:81/x"),
                                            TO("307", "https://h:8443/x"), TO("307", "//h.other/x")};
    for (size_t i = 0; i < 4; i++) {
        struct world w;
        begin(&w, no_proxies);
        serves(&w, locations[i]);
        serves(&w, OK_EMPTY);
        CHECK(post_to(&w, "http://h"));
        CHECK(!heard(&w.servers[1], "SECRET"));
        CHECK_HEARD(&w, 1, "X-Plain: 1");
        CHECK_HEARD(&w, 1, "\r\n\r\ndata");
        end(&w);
    }
}

static void a_given_host_is_for_the_first_server_alone(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, TO("307", "http://other/x"));
    serves(&w, OK_EMPTY);
    struct http_request request = post();
    CHECK(http_add(&request, STR("Host"), STR("virtual"), false));
    CHECK(send_to(&w, "http://h", &request));
    CHECK_HEARD(&w, 0, "Host: virtual\r\n");
    CHECK(!heard(&w.servers[0], "Host: h\r\n") && !heard(&w.servers[1], "virtual"));
    CHECK_HEARD(&w, 1, "Host: other\r\n");
    end(&w);
}

static void a_secret_that_was_dropped_stays_so(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, TO("307", "http://other/x"));
    serves(&w, TO("307", "http://h/x"));
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "http://h"));
    CHECK_TEXT(w.dials, "h:80 other:80 h:80 ");
    CHECK(!heard(&w.servers[2], "SECRET"));
    end(&w);
}

static void to_https_on_the_same_host_the_secret_goes_along(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, TO("308", "https://h/x"));
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "http://h"));
    CHECK_TEXT(w.dials, "h:80 h:443 ");
    CHECK_HEARD(&w, 1, "<tls h>POST /x HTTP/1.1\r\nHost: h\r\n");
    CHECK_HEARD(&w, 1, "SECRET-1");
    end(&w);
}

static void redirects_that_are_not_followed_say_where_they_lead(void)
{
    static const struct {
        const char *url, *says, *sentence;
    } cases[] = {
        {"https://h", TO("307", "http://h/x"), "from https to http"},
        {"http://h", TO("301", "https://h/x"),
         "http://h: answers 301 and points to https://h/x; following it would drop the request"},
        {"http://h", TO("302", "/login"), "answers 302 and points to /login"},
        {"http://h", TO("303", "/x"), "answers 303"},
        {"http://h", TO("307", ""), "points to nowhere"},
        {"http://h", TO("307", "#x"), "not the address of a web server"},
        {"http://h", TO("307", "ftp://h/x"), "not the address of a web server"},
        {"http://h", TO("307", "javascript:alert(1)"), "not the address of a web server"},
        {"http://h", TO("307", "http://u:SECRET-P@"), "not the address of a web server"},
        {"http://h", TO("307", "http://h:99999/"), "not the address of a web server"},
        {"http://h", TO("307", "http://h/\rX: y"), "points to nowhere"},
        {"unix:/run/x", TO("307", "http://h/x"), "from a Unix socket"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        begin(&w, no_proxies);
        serves(&w, cases[i].says);
        CHECK(!post_to(&w, cases[i].url));
        if (strstr(w.err.text, cases[i].sentence) == NULL) {
            CHECK_TEXT(w.err.text, cases[i].sentence);
        }
        CHECK(w.client.config && w.err.kind == ERR_NETWORK);
        CHECK_INT(w.next, 1);
        end(&w);
    }
}

/* Clouds give credentials there, without a password. */
static void no_redirect_leads_to_a_metadata_service(void)
{
    static const char *const hosts[] = {"169.254.169.254", "169.254.170.2", "169.254.0.1:8080", "[fe80::1%25eth0]",
                                        "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[fe80::1]", "[febf::1]"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct world w;
        char says[200];
        begin(&w, no_proxies);
        snprintf(says, sizeof says, TO("307", "http://%s/latest"), hosts[i]);
        serves(&w, says);
        serves(&w, OK_EMPTY);
        CHECK(!post_to(&w, "http://h"));
        CHECK(w.client.config && w.err.kind == ERR_NETWORK);
        CHECK_INT(w.next, 1);
        if (strchr(hosts[i], '%') == NULL) {
            CHECK_SAYS(&w, "link-local or a cloud's metadata service: no redirect is followed there; give the final "
                           "address");
        }
        end(&w);
    }
}

static void nor_one_to_a_name_of_it(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, TO("307", "http://disguised/latest"));
    serves(&w, OK_EMPTY);
    CHECK(!post_to(&w, "http://h"));
    CHECK_SAYS(&w, "http://disguised: a redirect leads here, to an address that is link-local or a cloud's metadata "
                   "service: no redirect is followed there; give the final address");
    CHECK(w.client.config);
    CHECK_INT(w.servers[1].heard.len, 0);
    end(&w);
}

static void who_asks_for_a_link_local_address_gets_it(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, TO("307", "//169.254.1.1/b"))->step = sizeof TO("307", "//169.254.1.1/b") - 1;
    serves(&w, OK_EMPTY);
    serves(&w, OK_EMPTY);
    (void)post_to(&w, "http://169.254.1.1");
    CHECK_INT(w.answer.status, 200);
    CHECK(post_to(&w, "http://disguised"));
    end(&w);
}

/* Whoever sends asks for the answer only when there is one. */
static void a_failure_leaves_nothing_to_release(void)
{
    struct world w;
    begin(&w, no_proxies);
    serves(&w, "HTTP/1.1 301 x\r\nLocation: /x\r\nContent-Length: 4\r\n\r\nmore");
    CHECK(!post_to(&w, "http://h"));
    CHECK(w.answer.body.ptr == NULL && w.answer.body.len == 0);
    end(&w);
}

static void the_fourth_redirect_is_one_too_many(void)
{
    struct world w;
    begin(&w, no_proxies);
    for (int i = 0; i < 5; i++) {
        serves(&w, "HTTP/1.1 308 x\r\nLocation: http://h/a\r\n\r\n");
    }
    CHECK(!post_to(&w, "http://h"));
    CHECK_SAYS(&w, "redirected three times before");
    CHECK(w.client.config);
    CHECK_INT(w.next, 4);
    end(&w);
}

static void who_stays_takes_a_redirect_as_an_answer(void)
{
    struct world w;
    begin(&w, no_proxies);
    w.client.settings.stays = true;
    serves(&w, "HTTP/1.1 307 x\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n");
    serves(&w, OK_EMPTY);
    CHECK(post_to(&w, "http://h"));
    CHECK_INT(w.answer.status, 307);
    CHECK_TEXT(w.dials, "h:80 ");
    end(&w);
}

static void a_redirect_by_a_proxy_is_asked_of_the_proxy(void)
{
    struct world w;
    begin(&w, both);
    serves(&w, TO("307", "b") OK_EMPTY)->step = sizeof TO("307", "b") - 1;
    CHECK(post_to(&w, "http://h:81/p"));
    CHECK_TEXT(w.dials, "proxy:3128 ");
    CHECK_HEARD(&w, 0, "POST http://h:81/p/b HTTP/1.1\r\n");
    end(&w);
}

static void what_must_not_be_sent_is_not_even_dialed(void)
{
    struct world w;
    begin(&w, no_proxies);
    struct http_request request = post();
    CHECK(http_add(&request, STR("X-Evil"), STR("SECRET\r\nHost: y"), true));
    CHECK(!send_to(&w, "http://h", &request));
    CHECK_SAYS(&w, "X-Evil");
    CHECK(w.client.config && w.err.kind == ERR_USAGE);
    CHECK_TEXT(w.dials, "");
    end(&w);
}

TESTS({"the URL's path stands before the target", the_urls_path_stands_before_the_target},
      {"the host has its port when it is not the usual one",
       the_host_has_its_port_when_it_is_not_the_usual_one},
      {"a connection is used again for 15 seconds", a_connection_is_used_again_for_15_seconds},
      {"another server has a connection of its own", another_server_has_a_connection_of_its_own},
      {"what can be read from an idle connection is its end",
       what_can_be_read_from_an_idle_connection_is_its_end},
      {"a stale connection is replaced once", a_stale_connection_is_replaced_once},
      {"a silent or half-told one is not tried again",
       a_silent_or_half_told_one_is_not_tried_again},
      {"an early answer ends the connection", an_early_answer_ends_the_connection},
      {"a write that is stuck looks for an answer", a_write_that_is_stuck_looks_for_an_answer},
      {"a port of gRPC is told as such", a_port_of_grpc_is_told_as_such},
      {"a write that is stuck ends after 10 seconds", a_write_that_is_stuck_ends_after_10_seconds},
      {"trickled bytes do not outlive the deadline", trickled_bytes_do_not_outlive_the_deadline},
      {"sessions belong to one server", sessions_belong_to_one_server},
      {"a full handshake is no resumption", a_full_handshake_is_no_resumption},
      {"who refuses the first engine is asked by the second", who_refuses_the_first_engine_is_asked_by_the_second},
      {"the second engine is asked once", the_second_engine_is_asked_once},
      {"a certificate is a matter of configuration", a_certificate_is_a_matter_of_configuration},
      {"https goes through a tunnel", https_goes_through_a_tunnel},
      {"http asks the proxy for the whole address", http_asks_the_proxy_for_the_whole_address},
      {"sockets and this machine need no proxy", sockets_and_this_machine_need_no_proxy},
      {"a proxy that refuses is named", a_proxy_that_refuses_is_named},
      {"a 407 to plain http is the proxy's, too", a_407_to_plain_http_is_the_proxys_too},
      {"a proxy that does not listen is named", a_proxy_that_does_not_listen_is_named},
      {"a proxy that cannot be is a matter of configuration",
       a_proxy_that_cannot_be_is_a_matter_of_configuration},
      {"a redirect on the same server keeps everything",
       a_redirect_on_the_same_server_keeps_everything},
      {"another server gets no secret", another_server_gets_no_secret},
      {"a given Host is for the first server alone",
       a_given_host_is_for_the_first_server_alone},
      {"a secret that was dropped stays so", a_secret_that_was_dropped_stays_so},
      {"to https on the same host the secret goes along",
       to_https_on_the_same_host_the_secret_goes_along},
      {"redirects that are not followed say where they lead",
       redirects_that_are_not_followed_say_where_they_lead},
      {"a failure leaves nothing to release", a_failure_leaves_nothing_to_release},
      {"no redirect leads to a metadata service", no_redirect_leads_to_a_metadata_service},
      {"nor one to a name of it", nor_one_to_a_name_of_it},
      {"who asks for a link-local address gets it", who_asks_for_a_link_local_address_gets_it},
      {"the fourth redirect is one too many", the_fourth_redirect_is_one_too_many},
      {"who stays takes a redirect as an answer", who_stays_takes_a_redirect_as_an_answer},
      {"a redirect by a proxy is asked of the proxy", a_redirect_by_a_proxy_is_asked_of_the_proxy},
      {"what must not be sent is not even dialed", what_must_not_be_sent_is_not_even_dialed})
