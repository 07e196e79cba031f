/* Finding the address, and asking. The index is what proves it: a page that names itself and has a link to the
 * goroutines. Whatever else answers, or does not, is not asked again, for it may write a line into its log each time,
 * or serve one client at a time. */
#include "runtime/go/endpoint.h"
#include "base/time.h"
#include "base/version.h"
#include "runtime/common/outside.h"

#include <errno.h>
#include <stdio.h>

#define PREFIX "/debug/pprof"

enum {
    FIND_MS = 1000,
    INDEX_MAX = 256 << 10,
    SOCKETS_MAX = 256,
    TEXT_MAX = 4 << 20,
    REQUEST_MAX = 512,
    PIECE = 16384,
    SAID_MAX = 160,
};

/* ---- HTTP ---- */

static bool read_to_end(const struct stream *stream, struct buf *answer, uint64_t deadline_ns, struct err *why)
{
    for (ptrdiff_t got = 1; got != 0; answer->len += (size_t)got) {
        char *room = buf_room(answer, PIECE);
        if (room == NULL) {
            return err_set(why, ERR_LIMIT, 0, "its answer is longer than %zu MB", answer->max >> 20);
        }
        got = stream->read(stream->context, room, PIECE, deadline_ns, why);
        if (got < 0) {
            return false;
        }
    }
    return true;
}

/* "HTTP/1.0 200 OK"; 0: it is none. */
static unsigned status_of(struct str answer)
{
    uint64_t status;
    struct str line = str_sub(answer, 0, str_find(answer, '\r'));
    bool is = str_starts(line, STR("HTTP/1.")) && str_u64(str_sub(line, 9, 3), &status);
    return is ? (unsigned)status : 0;
}

/* Where the body begins; answer.len: nowhere. */
static size_t body_at(struct str answer)
{
    const char *end = answer.len > 0 ? memmem(answer.ptr, answer.len, "\r\n\r\n", 4) : NULL;
    return end != NULL ? (size_t)(end - answer.ptr) + 4 : answer.len;
}

/* What may have a length has to have as much; chunks are no part of HTTP/1.0. */
static bool is_whole(struct str head, size_t body)
{
    for (struct str rest = head; rest.len > 0;) {
        struct str value = str_cut(&rest, '\n'), name = str_cut(&value, ':');
        uint64_t length;
        if (name.len == 14 && strncasecmp(name.ptr, "content-length", 14) == 0 &&
            (!str_u64(str_trim(value), &length) || length != body)) {
            return false;
        }
        if (name.len == 17 && strncasecmp(name.ptr, "transfer-encoding", 17) == 0) {
            return false;
        }
    }
    return true;
}

/* What it says, without what stands before it. */
static bool read_answer(struct buf *body, struct err *why)
{
    struct str answer = buf_slice(body);
    unsigned status = status_of(answer);
    size_t start = body_at(answer);
    struct str said = str_trim(str_sub(answer, start, SAID_MAX));
    if (status != 200) {
        return status == 0 ? err_set(why, ERR_NETWORK, 0, "it does not speak HTTP")
                           : err_set(why, ERR_NETWORK, (int)status, "it says %u: %.*s", status,
                                     (int)str_find(said, '\n'), said.ptr);
    }
    if (!is_whole(str_sub(answer, 0, start), answer.len - start)) {
        return err_set(why, ERR_NETWORK, EPROTO, "its answer is cut off");
    }
    body->len -= start;
    memmove(body->ptr, body->ptr + start, body->len);
    return true;
}

static void write_request(const struct go_endpoint *at, const char *what, char out[static REQUEST_MAX])
{
    bool is_below = what[0] != '/';
    snprintf(out, REQUEST_MAX,
             "GET %s%s%s HTTP/1.0\r\nHost: localhost:%u\r\nUser-Agent: pillion/" PILLION_VERSION "\r\n"
             "Accept: */*\r\n\r\n", is_below ? at->prefix : "", is_below ? "/" : "", what, at->port);
}

static uint64_t within(const struct process_port *port, uint64_t timeout_ms)
{
    return port->now_ns(port->context) + timeout_ms * NS_PER_MS;
}

bool go_endpoint_begin(const struct process_port *port, const struct go_endpoint *at, const char *what,
                       struct stream *stream, uint64_t timeout_ms, struct err *why)
{
    char request[REQUEST_MAX];
    uint64_t deadline_ns = within(port, timeout_ms);
    write_request(at, what, request);
    if (!port->dial(port->context, at->port, at->is_v6, deadline_ns, stream, why)) {
        return false;
    }
    bool good = stream_write(stream, str_of(request), deadline_ns, why);
    if (!good) {
        stream->close(stream->context);
    }
    return good;
}

bool go_endpoint_more(const struct process_port *port, const struct stream *stream, struct buf *body, size_t most,
                      uint64_t timeout_ms, struct err *why)
{
    uint64_t deadline_ns = within(port, timeout_ms);
    struct err cause = {0};
    ptrdiff_t got = 1;
    while (got > 0 && body->len < most &&
           (port->now_ns(port->context) < deadline_ns || stream->readable(stream->context))) {
        char *room = buf_room(body, PIECE);
        got = room != NULL ? stream->read(stream->context, room, PIECE, deadline_ns, &cause) : 0;
        body->len += got > 0 ? (size_t)got : 0;
    }
    if (got >= 0 || cause.number == ETIMEDOUT) {
        return got != 0;
    }
    *why = cause;
    return false;
}

bool go_endpoint_rest(const struct process_port *port, struct stream *stream, struct buf *body, uint64_t timeout_ms,
                      struct err *why)
{
    bool good = read_to_end(stream, body, within(port, timeout_ms), why);
    stream->close(stream->context);
    return good && read_answer(body, why);
}

bool go_endpoint_end(const struct process_port *port, struct stream *stream, struct buf *body, uint64_t timeout_ms,
                     struct err *why)
{
    buf_clear(body);
    return go_endpoint_rest(port, stream, body, timeout_ms, why);
}

bool go_endpoint_get(const struct process_port *port, const struct go_endpoint *at, const char *what, struct buf *body,
                     uint64_t timeout_ms, struct err *why)
{
    struct stream stream;
    char request[REQUEST_MAX];
    if (at->socket[0] == '\0') {
        return go_endpoint_begin(port, at, what, &stream, timeout_ms, why) &&
               go_endpoint_end(port, &stream, body, timeout_ms, why);
    }
    write_request(at, what, request);
    return port->ask(port->context, at->socket, str_of(request), body, timeout_ms, why) && read_answer(body, why);
}

/* ---- finding ---- */

static bool has(const struct buf *page, const char *what)
{
    return page->len > 0 && memmem(page->ptr, page->len, what, strlen(what)) != NULL;
}

static bool is_index(const struct process_port *port, struct go_endpoint *at)
{
    struct buf page;
    struct err why;
    buf_init(&page, INDEX_MAX);
    bool is = go_endpoint_get(port, at, "", &page, FIND_MS, &why) && has(&page, "/debug/pprof/") &&
              has(&page, "goroutine?debug=");
    at->has_leaks = is && has(&page, "goroutineleak?debug=");
    buf_release(&page);
    return is;
}

/* Not asked before, and now it is. */
static bool is_first_time(struct go_search *search, uint64_t inode)
{
    for (size_t i = 0; i < search->count; i++) {
        if (search->asked[i] == inode) {
            return false;
        }
    }
    if (search->count == GO_ENDPOINT_ASKED_MAX) {
        return false;
    }
    search->asked[search->count++] = inode;
    return true;
}

static bool find_by_tcp(const struct process_port *port, struct go_search *search, struct go_endpoint *out)
{
    struct outside_socket all[SOCKETS_MAX];
    size_t count = port->shares_network(port->context) ? outside_listening(port, all, SOCKETS_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        *out = (struct go_endpoint){.port = all[i].port, .is_v6 = all[i].is_v6, .prefix = PREFIX};
        if (port->owns(port->context, all[i].inode) && is_first_time(search, all[i].inode) && is_index(port, out)) {
            return true;
        }
    }
    return false;
}

/* `0000000000000000: 00000002 00000000 00010000 0001 01 32117 /run/app.sock` */
static bool read_unix(struct str line, uint64_t *inode, struct str *path)
{
    enum { FLAGS = 3, TYPE = 4, INODE = 6, WORDS };
    struct str word[WORDS];
    uint64_t flags;
    for (size_t i = 0; i < WORDS; i++) {
        line = str_trim(line);
        word[i] = str_cut(&line, ' ');
    }
    *path = str_trim(line);
    return str_hex(word[FLAGS], &flags) && (flags & 0x10000) != 0 && str_eq(word[TYPE], STR("0001")) &&
           str_u64(word[INODE], inode) && path->len > 0 && path->ptr[0] == '/' && path->len < GO_ENDPOINT_PATH_MAX;
}

static bool find_by_unix(const struct process_port *port, struct go_search *search, struct go_endpoint *out)
{
    struct buf text;
    bool found = false;
    buf_init(&text, TEXT_MAX);
    struct str rest = port->text(port->context, "net/unix", &text, NULL) ? buf_slice(&text) : (struct str){0};
    while (!found && rest.len > 0) {
        uint64_t inode;
        struct str path;
        if (read_unix(str_cut(&rest, '\n'), &inode, &path) && port->owns(port->context, inode) &&
            is_first_time(search, inode)) {
            *out = (struct go_endpoint){.prefix = PREFIX};
            snprintf(out->socket, sizeof out->socket, "%.*s", (int)path.len, path.ptr);
            found = port->listens(port->context, out->socket) && is_index(port, out);
        }
    }
    buf_release(&text);
    return found;
}

bool go_endpoint_find(const struct process_port *port, struct go_search *search, struct go_endpoint *out)
{
    return find_by_tcp(port, search, out) || find_by_unix(port, search, out);
}

/* ---- given ---- */

static bool is_loopback(struct str host)
{
    return str_eq(host, STR("127.0.0.1")) || str_eq(host, STR("localhost")) || str_eq(host, STR("[::1]"));
}

static bool malformed(struct str address, const char *what, struct err *why)
{
    return err_set(why, ERR_USAGE, 0, "--go-pprof %.*s: %s, as http://127.0.0.1:6060, or unix:/run/app.sock",
                   (int)(address.len < SAID_MAX ? address.len : SAID_MAX), address.ptr, what);
}

static bool read_address(struct str address, struct go_endpoint *out, struct err *why)
{
    struct str rest = address, prefix = STR(PREFIX);
    *out = (struct go_endpoint){0};
    if (str_starts(address, STR("unix:"))) {
        rest = str_sub(address, 5, address.len);
        snprintf(out->socket, sizeof out->socket, "%.*s", (int)rest.len, rest.ptr);
        if (rest.len == 0 || rest.ptr[0] != '/' || rest.len >= sizeof out->socket) {
            return malformed(address, "the path of a socket is wanted", why);
        }
    } else {
        uint64_t port;
        rest = str_starts(address, STR("http://")) ? str_sub(address, 7, address.len) : address;
        size_t slash = str_find(rest, '/'), colon = str_find_last(str_sub(rest, 0, slash), ':');
        struct str path = str_sub(rest, slash, rest.len);
        if (!is_loopback(str_sub(rest, 0, colon)) || !str_u64(str_sub(rest, colon + 1, slash - colon - 1), &port) ||
            port == 0 || port > UINT16_MAX) {
            return malformed(address, "a port of this network namespace's loopback is wanted", why);
        }
        out->port = (uint16_t)port;
        out->is_v6 = rest.ptr[0] == '[';
        prefix = path.len > 1 ? path : prefix;
    }
    prefix.len -= str_ends(prefix, STR("/"));
    snprintf(out->prefix, sizeof out->prefix, "%.*s", (int)prefix.len, prefix.ptr);
    return prefix.len < sizeof out->prefix || malformed(address, "a shorter path is wanted", why);
}

static bool is_its_own(const struct process_port *port, struct go_endpoint *at)
{
    struct outside_socket all[SOCKETS_MAX];
    if (at->socket[0] != '\0') {
        return port->listens(port->context, at->socket);
    }
    size_t count = port->shares_network(port->context) ? outside_listening(port, all, SOCKETS_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        if (all[i].port == at->port && port->owns(port->context, all[i].inode)) {
            at->is_v6 = at->is_v6 && all[i].is_v6;
            return true;
        }
    }
    return false;
}

bool go_endpoint_given(const struct process_port *port, const char *addresses, struct go_endpoint *out, struct err *why)
{
    for (struct str rest = str_of(addresses); rest.len > 0;) {
        struct str one = str_trim(str_cut(&rest, ','));
        if (!read_address(one, out, why)) {
            return false;
        }
        if (is_its_own(port, out)) {
            (void)is_index(port, out); /* for what it has; handlers may stand there without one */
            return true;
        }
    }
    return false;
}
