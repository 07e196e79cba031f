/*
 * endpoint: what a Go program tells over HTTP, by its own net/http/pprof.
 *
 * Concept. A program that imports the package answers GET below /debug/pprof/ wherever it serves its default mux. Where
 * that is, is seen from outside: it listens there. A socket is asked for the index once in the life of a search, and
 * for nothing more unless what comes back is that index: what else listens there (a queue, a database, TLS) sees one
 * connection, in which a line of HTTP was said and for whose end it was not waited longer than ENDPOINT_FIND_MS.
 *
 * Call order. go_endpoint_find again and again until it is true, with a search that is zero at first; or
 * go_endpoint_given once; then go_endpoint_get.
 *
 * Where. TCP on loopback or all addresses, in our network namespace, and Unix sockets with a path; each must be open in
 * the process itself. HTTP/1.0: the end of an answer is the end of the connection.
 *
 * Limits. GO_ENDPOINT_ASKED_MAX sockets of a process are asked. An answer has its buffer's maximum.
 *
 * Sources: Go, src/net/http/pprof/pprof.go; proc_pid_net(5): net/unix, where flag 0x10000 is a socket that listens.
 */
#ifndef RUNTIME_GO_ENDPOINT_H
#define RUNTIME_GO_ENDPOINT_H

#include "base/iface.h"

enum { GO_ENDPOINT_ASKED_MAX = 64, GO_ENDPOINT_PATH_MAX = 108, GO_ENDPOINT_PREFIX_MAX = 128 };

struct go_endpoint {
    char socket[GO_ENDPOINT_PATH_MAX]; /* a path; "": TCP */
    uint16_t port;
    bool is_v6;
    char prefix[GO_ENDPOINT_PREFIX_MAX]; /* "/debug/pprof" */
    bool has_leaks; /* its index names goroutineleak */
};

struct go_search {
    uint64_t asked[GO_ENDPOINT_ASKED_MAX]; /* inodes */
    size_t count;
};

/* False: there is none now. */
bool go_endpoint_find(const struct process_port *port, struct go_search *search, struct go_endpoint *out);

/* The one of these ("http://127.0.0.1:6060", "http://localhost:81/own/pprof", "unix:/run/app.sock", commas between)
 * that this process listens at; the path, if none is said, is /debug/pprof. False: none (now), or, with `why`, one is
 * malformed. */
bool go_endpoint_given(const struct process_port *port, const char *addresses, struct go_endpoint *out,
                       struct err *why);

/* Replaces `body` by what it answers to "heap", "goroutine?debug=2", or to "/debug/vars" from its root. False with the
 * reason, the program's own words where it has some; `why->number` is the status. */
bool go_endpoint_get(const struct process_port *port, const struct go_endpoint *at, const char *what, struct buf *body,
                     uint64_t timeout_ms, struct err *why);

/* The same of TCP, when the answer will take long: sends the question; and, later, takes the answer, and closes the
 * connection in any case. */
bool go_endpoint_begin(const struct process_port *port, const struct go_endpoint *at, const char *what,
                       struct stream *stream, uint64_t timeout_ms, struct err *why);
bool go_endpoint_end(const struct process_port *port, struct stream *stream, struct buf *body, uint64_t timeout_ms,
                     struct err *why);

/* And of an answer that comes bit by bit: appends what is there, and what comes until the time is over, but no more
 * once `body` has `most` bytes. False: it has ended or, with the reason, broken off. go_endpoint_rest takes the rest,
 * and does what go_endpoint_end does with all of it. */
bool go_endpoint_more(const struct process_port *port, const struct stream *stream, struct buf *body, size_t most,
                      uint64_t timeout_ms, struct err *why);
bool go_endpoint_rest(const struct process_port *port, struct stream *stream, struct buf *body, uint64_t timeout_ms,
                      struct err *why);

#endif
