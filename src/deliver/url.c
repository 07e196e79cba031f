/* Parses the address of a server: scheme, host, port, path, or a Unix socket. Only what can be
 * sent as it stands is accepted, and nothing of an invalid address is shown, as it may hold a
 * secret. */
#include "deliver/url.h"
#include "deliver/address.h"
#include "base/ascii.h"

enum {
    HOST_MAX = 254,        /* RFC 1035: 253 and a final dot */
    SOCKET_PATH_MAX = 107, /* sun_path, with its NUL */
    PORT_HTTP = 80,
    PORT_HTTP_OTHER = 8080,
    PORT_HTTPS = 443,
};

enum scheme { SCHEME_NONE, SCHEME_HTTP, SCHEME_HTTPS, SCHEME_UNIX };

static bool refuse(struct err *err, const char *why)
{
    /* The text itself is not shown: it may hold a secret in a place where we did not look for one. */
    return err_set(err, ERR_USAGE, 0, "not a valid server address: %s", why);
}

static bool is_name(struct str host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        if (!ascii_is_alnum(c) && c != '-' && c != '.' && c != '_') {
            return false;
        }
    }
    return host.len > 0 && host.len <= HOST_MAX && host.ptr[0] != '.';
}

/* An address, and perhaps the interface's name behind a %. */
static bool is_v6(struct str host)
{
    struct address a;
    struct str zone = str_sub(host, str_find(host, '%'), host.len);
    bool zone_good = zone.len == 0 || (zone.len < 32 && is_name(str_sub(zone, 1, zone.len)));
    return zone_good && str_find(host, ':') < host.len && address_parse(&a, host);
}

static bool take_port(struct str text, uint16_t *out, struct err *err)
{
    uint64_t port = 0;
    if (text.len > 0 && (!str_u64(text, &port) || port == 0 || port > UINT16_MAX)) {
        return refuse(err, "the port after the colon must be 1 to 65535");
    }
    *out = (uint16_t)port;
    return true;
}

static bool bracketed_host_port(struct str text, struct str *host, uint16_t *port, struct err *err)
{
    size_t close = str_find(text, ']');
    struct str inside = str_sub(text, 1, close - 1);
    struct str behind = str_sub(text, close + 1, text.len);
    if (close == text.len || !is_v6(inside)) {
        return refuse(err, "only an IPv6 address may be in brackets");
    }
    if (behind.len > 0 && behind.ptr[0] != ':') {
        return refuse(err, "only a colon and a port may follow ]");
    }
    if (!take_port(str_sub(behind, 1, behind.len), port, err)) {
        return false;
    }
    *host = inside;
    return true;
}

bool url_host_port(struct str text, struct str *host, uint16_t *port, struct err *err)
{
    if (text.len > 0 && text.ptr[0] == '[') {
        return bracketed_host_port(text, host, port, err);
    }
    size_t colon = str_find(text, ':');
    if (colon != str_find_last(text, ':')) {
        return refuse(err, "an IPv6 address is written in brackets, as in http://[::1]:4040");
    }
    struct str name = str_sub(text, 0, colon);
    if (name.len == 0) {
        return refuse(err, "the host is missing");
    }
    if (!is_name(name)) {
        return refuse(err, "the host is neither a name nor an IP address; write international names "
                           "in their xn-- form");
    }
    if (!take_port(str_sub(text, colon + 1, text.len), port, err)) {
        return false;
    }
    *host = name;
    return true;
}

static bool take_scheme(struct str *text, enum scheme *out, struct err *err)
{
    static const struct {
        struct str prefix;
        enum scheme scheme;
    } known[] = {
        {{"http://", 7}, SCHEME_HTTP},
        {{"https://", 8}, SCHEME_HTTPS},
        {{"unix://", 7}, SCHEME_UNIX},
        {{"unix:", 5}, SCHEME_UNIX},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (ascii_starts(*text, known[i].prefix)) {
            *text = str_sub(*text, known[i].prefix.len, text->len);
            *out = known[i].scheme;
            return true;
        }
    }
    *out = SCHEME_NONE;
    size_t colon = str_find(*text, ':');
    if (str_eq(str_sub(*text, colon, 3), STR("://")) && colon < str_find(*text, '/')) {
        return refuse(err, "the scheme must be http://, https:// or unix:");
    }
    return true;
}

bool url_has_scheme(struct str text)
{
    enum scheme scheme;
    text = str_trim(text);
    return take_scheme(&text, &scheme, NULL) && scheme != SCHEME_NONE;
}

static bool unix_url(struct url *out, struct str path, struct err *err)
{
    bool has_form = path.len > 1 && (path.ptr[0] == '/' || path.ptr[0] == '@');
    if (!has_form || str_find(path, '\0') < path.len) {
        return refuse(err, "unix: needs an absolute path, as in unix:///run/agent.sock, or the name of "
                           "an abstract socket, as in unix:@agent");
    }
    if (path.len > SOCKET_PATH_MAX) {
        return refuse(err, "a Unix socket's path has at most 107 bytes");
    }
    *out = (struct url){.is_unix = true, .host = path};
    return true;
}

/* Where the host and port end. */
static size_t authority_end(struct str text)
{
    size_t end = str_find(text, '/');
    size_t query = str_find(text, '?');
    size_t fragment = str_find(text, '#');
    end = query < end ? query : end;
    return fragment < end ? fragment : end;
}

static bool take_path(struct str text, struct str *out, struct err *err)
{
    text = str_sub(text, 0, str_find(text, '#'));
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_visible(text.ptr[i])) {
            return refuse(err, "the path contains a blank or another byte that must be percent-escaped");
        }
    }
    while (str_find(text, '?') == text.len && str_ends(text, STR("/"))) {
        text.len--;
    }
    *out = text;
    return true;
}

static bool is_plain_port(uint16_t port, uint16_t default_port)
{
    return port == PORT_HTTP || port == PORT_HTTP_OTHER ||
           (port != 0 && port == default_port && port != PORT_HTTPS);
}

bool url_parse(struct url *out, struct str text, uint16_t default_port, struct err *err)
{
    enum scheme scheme;
    struct url url = {0};
    text = str_trim(text);
    if (!take_scheme(&text, &scheme, err)) {
        return false;
    }
    if (scheme == SCHEME_UNIX) {
        return unix_url(out, text, err);
    }
    size_t end = authority_end(text);
    struct str authority = str_sub(text, 0, end);
    if (str_find(authority, '@') < authority.len) {
        return refuse(err, "a user or password in an address is visible to all who can list "
                           "processes; use --token-file, --token or the environment");
    }
    if (!url_host_port(authority, &url.host, &url.port, err) ||
        !take_path(str_sub(text, end, text.len), &url.path, err)) {
        return false;
    }
    url.tls = scheme == SCHEME_HTTPS ||
              (scheme == SCHEME_NONE && !host_is_loopback(url.host) &&
               !is_plain_port(url.port, default_port));
    if (url.port == 0) {
        uint16_t plain = default_port != 0 ? default_port : PORT_HTTP;
        url.port = url.tls ? PORT_HTTPS : plain;
    }
    *out = url;
    return true;
}
