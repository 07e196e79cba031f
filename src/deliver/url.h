/*
 * url: the address of a back end, taken apart.
 *
 * Forms: http://host[:port][/path], https://…, host[:port][/path] (https, but http for a loopback address or a
 * port that is known to be plain), unix:///path.sock and unix:@name. Parts point into the text. User and password
 * before an @ are refused with a sentence that names the options for secrets. A fragment (#…) is dropped.
 *
 * Ports known to be plain: 80, 8080, and the back end's own default when that is not 443.
 *
 * Source: RFC 3986; unix(7) for the length of a socket's path.
 */
#ifndef DELIVER_URL_H
#define DELIVER_URL_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct url {
    bool tls;
    bool is_unix;
    struct str host; /* IPv6 without brackets; of a Unix socket its path */
    uint16_t port;   /* 0 for a Unix socket */
    struct str path; /* with its query; without a final slash; may be empty */
};

/* default_port: where none is written, and the scheme is http; https has 443 then. */
bool url_parse(struct url *out, struct str text, uint16_t default_port, struct err *err);

/* http://, https:// or unix:. */
bool url_has_scheme(struct str text);

/* "host", "host:port", "[v6]:port". The port is 0 when none is written. */
bool url_host_port(struct str text, struct str *host, uint16_t *port, struct err *err);

#endif
