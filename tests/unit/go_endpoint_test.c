/*
 * Finding the address of a Go program and asking it, without a Go program: a process with sockets in memory, whose
 * answers are those of real ones (Go 1.19 to 1.26) and of servers that are something else. How often each socket was
 * connected to is counted.
 */
#include "runtime/go/endpoint.h"
#include "base/version.h"
#include "memory_stream.h"
#include "test.h"

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define LISTENS(number, address, inode) \
    "   " number ": " address " 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 " inode \
    " 1 0000000000000000 100 0 0 10 0\n"
#define INDEX "HTTP/1.0 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html><head>" \
              "<title>/debug/pprof/</title></head>" \
              "<tr><td>4</td><td><a href='goroutine?debug=1'>goroutine</a></td></tr>"

enum { SERVERS = 4, OTHERS_INODE = 99 };

struct server {
    uint16_t port;     /* 0: at `socket` */
    const char *socket;
    const char *says;
    int ends_with;
    unsigned asked;
};

struct played {
    struct process_port port;
    const char *tcp, *tcp6, *unix_text;
    struct server servers[SERVERS];
    struct memory_stream stream;
    uint64_t now_ns;
    bool is_elsewhere;
    bool was_v6;
};

static bool read_text(void *context, const char *name, struct buf *out, struct err *err)
{
    struct played *p = context;
    const char *text = strcmp(name, "net/tcp") == 0    ? p->tcp
                       : strcmp(name, "net/tcp6") == 0 ? p->tcp6
                       : strcmp(name, "net/unix") == 0 ? p->unix_text
                                                       : NULL;
    buf_clear(out);
    buf_text(out, text != NULL ? text : "");
    return text != NULL || err_set(err, ERR_IO, 0, "there is no %s", name);
}

static bool owns(void *context, uint64_t inode)
{
    (void)context;
    return inode != OTHERS_INODE;
}

static bool shares_network(void *context)
{
    return !((struct played *)context)->is_elsewhere;
}

static uint64_t now_ns(void *context)
{
    return ((struct played *)context)->now_ns;
}

static struct server *server_of(struct played *p, uint16_t port, const char *socket)
{
    for (size_t i = 0; i < SERVERS; i++) {
        struct server *s = &p->servers[i];
        if (s->says != NULL && s->port == port && (port != 0 || strcmp(s->socket, socket) == 0)) {
            s->asked++;
            return s;
        }
    }
    CHECK(!"nobody listens there");
    return &p->servers[0];
}

static bool dial(void *context, uint16_t port, bool is_v6, uint64_t deadline_ns, struct stream *out, struct err *err)
{
    struct played *p = context;
    (void)deadline_ns;
    (void)err;
    struct server *s = server_of(p, port, NULL);
    memory_release(&p->stream);
    memory_init(&p->stream, s->says);
    p->stream.step = 7;
    p->stream.ends_with = s->ends_with;
    p->was_v6 = is_v6;
    *out = memory_stream_of(&p->stream);
    return true;
}

static bool listens(void *context, const char *path)
{
    struct played *p = context;
    for (size_t i = 0; i < SERVERS; i++) {
        if (p->servers[i].socket != NULL && strcmp(p->servers[i].socket, path) == 0) {
            return true;
        }
    }
    return false;
}

static bool ask_socket(void *context, const char *path, struct str request, struct buf *answer, uint64_t timeout_ms,
                       struct err *err)
{
    struct played *p = context;
    (void)err;
    CHECK(timeout_ms > 0 && str_starts(request, STR("GET /")));
    buf_clear(answer);
    buf_text(answer, server_of(p, 0, path)->says);
    return true;
}

static struct played *set_up(const char *tcp, const char *tcp6, const char *unix_text)
{
    struct played *p = calloc(1, sizeof *p);
    p->tcp = tcp;
    p->tcp6 = tcp6;
    p->unix_text = unix_text;
    p->port = (struct process_port){.pid = 7,
                                    .text = read_text,
                                    .owns = owns,
                                    .shares_network = shares_network,
                                    .now_ns = now_ns,
                                    .dial = dial,
                                    .listens = listens,
                                    .ask = ask_socket,
                                    .context = p};
    memory_init(&p->stream, "");
    return p;
}

static void tear_down(struct played *p)
{
    CHECK(p->stream.heard.len == 0 || p->stream.closed);
    memory_release(&p->stream);
    free(p);
}

/* ---- finding ---- */

static void the_one_that_shows_the_index_is_found(void)
{
    struct played *p = set_up(HEAD LISTENS("0", "0100007F:1F90", "11") LISTENS("1", "00000000:17AC", "12")
                              LISTENS("2", "0100007F:1F91", "99"), HEAD, "");
    struct go_search search = {.count = 0};
    struct go_endpoint at;
    p->servers[0] = (struct server){.port = 8080, .says = "HTTP/1.1 404 Not Found\r\n\r\n404 page not found\n"};
    p->servers[1] = (struct server){.port = 6060, .says = INDEX};
    p->servers[2] = (struct server){.port = 8081, .says = INDEX}; /* another process's */
    CHECK(go_endpoint_find(&p->port, &search, &at));
    CHECK_INT(at.port, 6060);
    CHECK_TEXT(at.prefix, "/debug/pprof");
    CHECK_INT(p->servers[2].asked, 0);
    CHECK_STR(buf_slice(&p->stream.heard), "GET /debug/pprof/ HTTP/1.0\r\nHost: localhost:6060\r\nUser-Agent: pillion/"
                                           PILLION_VERSION "\r\nAccept: */*\r\n\r\n");
    tear_down(p);
}

static void what_is_none_is_asked_once(void)
{
    static const struct {
        const char *says;
        int ends_with;
    } all[] = {
        {"", 0}, {"", ETIMEDOUT}, {"", ECONNRESET}, {"+PONG\r\n", 0}, {"\x15\x03\x01\x00\x02\x02\x46", 0},
        {"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0},
        {"HTTP/1.1 301 Moved\r\nLocation: http://other/debug/pprof/\r\n\r\n", 0},
        {"\x00\x00\x12\x04\x00\x00\x00\x00\x00", 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n<a href='goroutine?debug=1'>/debug/pprof/", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n/debug/pprof/ goroutine?debug=1", 0},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct played *p = set_up(HEAD LISTENS("0", "0100007F:1F90", "11"), HEAD, "");
        struct go_search search = {.count = 0};
        struct go_endpoint at;
        p->servers[0] = (struct server){.port = 8080, .says = all[i].says, .ends_with = all[i].ends_with};
        for (unsigned n = 0; n < 5; n++) {
            CHECK(!go_endpoint_find(&p->port, &search, &at));
        }
        CHECK_INT(p->servers[0].asked, 1);
        CHECK(p->stream.closed);
        tear_down(p);
    }
}

/* It may begin to listen later, or anew. */
static void what_listens_later_is_asked_then(void)
{
    struct played *p = set_up(HEAD LISTENS("0", "0100007F:1F90", "11"), HEAD, "");
    struct go_search search = {.count = 0};
    struct go_endpoint at;
    p->servers[0] = (struct server){.port = 8080, .says = "HTTP/1.0 404 Not Found\r\n\r\n"};
    CHECK(!go_endpoint_find(&p->port, &search, &at));
    p->tcp6 = HEAD LISTENS("0", "00000000000000000000000000000000:17AC", "12");
    p->servers[1] = (struct server){.port = 6060, .says = INDEX};
    CHECK(go_endpoint_find(&p->port, &search, &at));
    CHECK(at.is_v6 && p->was_v6);
    CHECK_INT(p->servers[0].asked, 1);
    tear_down(p);
}

static void another_networks_sockets_are_let_alone(void)
{
    struct played *p = set_up(HEAD LISTENS("0", "0100007F:17AC", "11"), HEAD, "");
    struct go_search search = {.count = 0};
    struct go_endpoint at;
    struct err why = {0};
    p->is_elsewhere = true;
    p->servers[0] = (struct server){.port = 6060, .says = INDEX};
    CHECK(!go_endpoint_find(&p->port, &search, &at));
    CHECK(!go_endpoint_given(&p->port, "http://127.0.0.1:6060", &at, &why));
    CHECK_INT(p->servers[0].asked, 0);
    tear_down(p);
}

static void no_more_than_so_many_are_asked(void)
{
    struct buf tcp;
    buf_init(&tcp, 1 << 16);
    buf_text(&tcp, HEAD);
    for (unsigned i = 0; i < GO_ENDPOINT_ASKED_MAX + 20; i++) {
        buf_printf(&tcp, LISTENS("0", "0100007F:1F90", "%u"), 1000 + i);
    }
    struct played *p = set_up(buf_cstr(&tcp), HEAD, "");
    struct go_search search = {.count = 0};
    struct go_endpoint at;
    p->servers[0] = (struct server){.port = 8080, .says = "no"};
    CHECK(!go_endpoint_find(&p->port, &search, &at));
    CHECK(!go_endpoint_find(&p->port, &search, &at));
    CHECK_INT(p->servers[0].asked, GO_ENDPOINT_ASKED_MAX);
    buf_release(&tcp);
    tear_down(p);
}

static void unix_sockets_are_asked_too(void)
{
    struct played *p = set_up(HEAD, HEAD, "Num       RefCount Protocol Flags    Type St Inode Path\n"
                              "0000000000000000: 00000003 00000000 00000000 0001 03 30 /run/connected.sock\n"
                              "0000000000000000: 00000002 00000000 00010000 0005 01 31 /run/packets.sock\n"
                              "0000000000000000: 00000002 00000000 00010000 0001 01 32 @abstract\n"
                              "0000000000000000: 00000002 00000000 00010000 0001 01 99 /run/other.sock\n"
                              "0000000000000000: 00000002 00000000 00010000 0001 01 33 /run/gone.sock\n"
                              "0000000000000000: 00000002 00000000 00010000 0001 01 34 /run/my app.sock\n");
    struct go_search search = {.count = 0};
    struct go_endpoint at;
    p->servers[0] = (struct server){.socket = "/run/my app.sock", .says = INDEX};
    p->servers[1] = (struct server){.socket = "/run/other.sock", .says = INDEX};
    CHECK(go_endpoint_find(&p->port, &search, &at));
    CHECK_TEXT(at.socket, "/run/my app.sock");
    CHECK_INT(p->servers[1].asked, 0);
    tear_down(p);
}

/* ---- given ---- */

static void given_ones_are_read(void)
{
    static const struct {
        const char *text, *socket, *prefix;
        unsigned port;
    } all[] = {
        {"http://127.0.0.1:6060", "", "/debug/pprof", 6060},
        {"http://localhost:6060/", "", "/debug/pprof", 6060},
        {"localhost:6060/own/pprof/", "", "/own/pprof", 6060},
        {"http://127.0.0.1:1, http://127.0.0.1:6060/p", "", "/p", 6060},
        {"unix:/run/app.sock", "/run/app.sock", "/debug/pprof", 0},
    };
    struct played *p = set_up(HEAD LISTENS("0", "0100007F:17AC", "11"), HEAD, "");
    struct go_endpoint at;
    struct err why = {0};
    p->servers[0] = (struct server){.socket = "/run/app.sock", .says = INDEX "<a href='goroutineleak?debug=1'>"};
    p->servers[1] = (struct server){.port = 6060, .says = INDEX};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        CHECK(go_endpoint_given(&p->port, all[i].text, &at, &why));
        CHECK_TEXT(at.socket, all[i].socket);
        CHECK_TEXT(at.prefix, all[i].prefix);
        CHECK_INT(at.port, all[i].port);
        CHECK_INT(at.has_leaks, all[i].port == 0);
    }
    CHECK(!go_endpoint_given(&p->port, "http://127.0.0.1:6061", &at, &why)); /* not its own */
    CHECK_INT(why.kind, ERR_NONE);
    tear_down(p);
}

static void malformed_ones_are_told(void)
{
    static const char *const all[] = {"https://127.0.0.1:6060", "http://10.0.0.1:6060", "http://localhost",
                                      "unix:run/app.sock", "unix:", "http://localhost:0", "http://localhost:70000",
                                      "http://:6060", "http://169.254.169.254:80/latest"};
    struct played *p = set_up(HEAD, HEAD, "");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct go_endpoint at;
        struct err why = {0};
        CHECK(!go_endpoint_given(&p->port, all[i], &at, &why));
        CHECK_INT(why.kind, ERR_USAGE);
        CHECK(strstr(why.text, "--go-pprof") != NULL);
    }
    tear_down(p);
}

/* ---- asking ---- */

static void answers_are_its_body(void)
{
    struct played *p = set_up(HEAD, HEAD, "");
    struct go_endpoint at = {.port = 6060, .prefix = "/debug/pprof"};
    struct buf body;
    struct err why = {0};
    buf_init(&body, 1 << 16);
    p->servers[0] = (struct server){.port = 6060, .says = "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nheap"};
    CHECK(go_endpoint_get(&p->port, &at, "heap", &body, 1000, &why));
    CHECK_STR(buf_slice(&body), "heap");
    CHECK(go_endpoint_get(&p->port, &at, "/debug/vars", &body, 1000, &why));
    CHECK(strstr(buf_cstr(&p->stream.heard), "GET /debug/vars HTTP/1.0\r\n") != NULL);
    p->servers[0].says = "HTTP/1.0 500 Internal Server Error\r\nX-Go-Pprof: 1\r\n\r\nCould not enable CPU "
                         "profiling: cpu profiling already in use\n";
    CHECK(!go_endpoint_get(&p->port, &at, "profile", &body, 1000, &why));
    CHECK_TEXT(why.text, "it says 500: Could not enable CPU profiling: cpu profiling already in use");
    CHECK_INT(why.number, 500);
    p->servers[0].says = "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nheap";
    CHECK(!go_endpoint_get(&p->port, &at, "heap", &body, 1000, &why));
    CHECK_TEXT(why.text, "its answer is cut off");
    body.max = 20;
    CHECK(!go_endpoint_get(&p->port, &at, "heap", &body, 1000, &why));
    CHECK_INT(why.kind, ERR_LIMIT);
    buf_release(&body);
    tear_down(p);
}

TESTS({"the one that shows the index is found", the_one_that_shows_the_index_is_found},
      {"what is none is asked once", what_is_none_is_asked_once},
      {"what listens later is asked then", what_listens_later_is_asked_then},
      {"another network's sockets are let alone", another_networks_sockets_are_let_alone},
      {"no more than so many are asked", no_more_than_so_many_are_asked},
      {"unix sockets are asked, too", unix_sockets_are_asked_too},
      {"given ones are read", given_ones_are_read},
      {"malformed ones are told", malformed_ones_are_told},
      {"answers are its body", answers_are_its_body})
