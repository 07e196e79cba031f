/*
 * client: requests to one server, through whatever stands before it.
 *
 * Opens connections (through a proxy where the environment names one), shakes hands, keeps a connection for
 * the next request when that comes within 15 s, tries a stale one again at once, and follows up to three
 * redirects (307 and 308 alone, never from https to http; another host gets no secret header).
 *
 *     client_init(&c, &settings)
 *     client_send(&c, &url, &request, deadline_ns, &response, &err)   any number of times, by one thread
 *     client_reach(&c, &url, deadline_ns, &err)                     sends no request
 *     client_release(&c)
 *
 * Limits: 3 s to connect to each address, 10 s for a handshake, 10 s without progress; the deadline for all.
 *
 * What counts as which: 301, 302 and 303 fail with their Location in the sentence (most often http was written where
 * https is meant: a client that follows would turn a POST into a GET). Another host is one whose name differs, or
 * whose port does, unless both are the usual ones of http and https. To another host that is link-local or a cloud's
 * metadata service, by its address or by what its name stands for, no redirect is followed. A kept connection is used
 * only when nothing can be read from it: what can is its end, or a response to nothing. One that is cut before the
 * first byte of a response is tried again on a new connection, once; one that is silent is not, the server may be at
 * work.
 * A proxy's 407 fails also where the request went to it in plain http.
 *
 * Errors: ERR_NETWORK with a sentence that names the server or the proxy. `config` is true when trying again soon
 * does not help: a certificate, a redirect that may not be followed, a proxy that refuses (4xx but 408 and 429), an
 * address or a header that cannot be (ERR_USAGE, ERR_UNSUPPORTED). `out` holds no memory after a failure.
 */
#ifndef DELIVER_CLIENT_H
#define DELIVER_CLIENT_H

#include "deliver/http.h"
#include "deliver/proxy.h"
#include "deliver/tls.h"
#include "deliver/url.h"

enum { CLIENT_HOST_MAX = 256, CLIENT_REDIRECTS_MAX = 3 };

/* What the last request or the last try to connect was at. */
enum client_stage {
    CLIENT_ADDRESS, /* nothing was sent */
    CLIENT_CONNECT,
    CLIENT_PROXY,
    CLIENT_TLS,
    CLIENT_RESPONSE,
};

struct client_settings {
    struct dialer dialer;
    struct clock clock;
    void (*random)(void *context, void *to, size_t len);
    void *random_context;
    struct tls_settings tls; /* seed and wall_ns are filled in here */
    struct proxies proxies;
    uint64_t stall_ns; /* without progress; 0: 10 s */
    bool stays;        /* redirects are answers like others: none is followed */
};

struct client {
    struct client_settings settings;
    struct stream kept;
    bool has_kept;
    uint64_t kept_since_ns;
    struct str kept_host;      /* whose it is */
    uint16_t kept_port;
    char kept_name[CLIENT_HOST_MAX];
    bool kept_tls;
    struct tls_session session;
    char session_host[CLIENT_HOST_MAX];   /* whose it is */
    uint16_t session_port;
    bool config; /* of the last failure */
    enum client_stage stage;
    uint64_t connects, resumptions; /* so far */
};

void client_init(struct client *client, const struct client_settings *settings);

/* What stands in the request for this URL: host, and the URL's path before the target. The texts lie in `text`. */
bool client_address(const struct url *url, struct http_request *request, struct buf *text, struct err *err);

/* The URL's path stands before the target given, its host is the request's: as client_address does, on a copy. The
 * request can be sent again. */
bool client_send(struct client *client, const struct url *url, struct http_request *request,
                 uint64_t deadline_ns, struct http_response *out, struct err *err);

/* Connects as client_send would, through the proxy and by TLS, and ends the connection: is there a way? */
bool client_reach(struct client *client, const struct url *url, uint64_t deadline_ns, struct err *err);

void client_release(struct client *client);

#endif
