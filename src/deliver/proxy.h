/*
 * proxy: which proxy a server is reached through.
 *
 * From the environment as curl and Go read it: https_proxy and HTTPS_PROXY, http_proxy (lower case only), all_proxy
 * and ALL_PROXY, no_proxy and NO_PROXY; lower case wins. Loopback and link-local addresses and
 * metadata.google.internal are never proxied. A proxy is written http://[USER[:PASSWORD]@]HOST:PORT; without a
 * port, which curl and Go take to be different ones, it is refused.
 *
 * Source: curl(1) and net/http of Go, by their documentation.
 */
#ifndef DELIVER_PROXY_H
#define DELIVER_PROXY_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct proxies {
    struct str https, http; /* URLs as they were written; empty: none */
    struct str exempt;      /* names, addresses, networks */
};

/* `get` gives a variable's text, empty when it is not set. */
void proxies_from(struct proxies *out, struct str (*get)(void *context, const char *name),
                  void *context);

struct proxy {
    struct str host;
    uint16_t port;
    struct str user, password; /* as written: percent-encoded */
};

/* False with err->kind ERR_NONE: no proxy for this host; with another: the proxy's URL is wrong or of a kind
 * that is not known (SOCKS, https). */
bool proxy_for(const struct proxies *proxies, bool tls, struct str host, uint16_t port,
               struct proxy *out, struct err *err);

#endif
