/* Which proxy a request goes through, by http_proxy, https_proxy, all_proxy and no_proxy as curl
 * reads them. Pure: the environment comes as a function. What is misspelt is an error with the
 * reason. */
#include "deliver/proxy.h"
#include "deliver/address.h"
#include "base/ascii.h"
#include "deliver/url.h"

/* ---- the environment ---- */

static struct str first_of(struct str (*get)(void *context, const char *name), void *context,
                           const char *const names[])
{
    for (size_t i = 0; names[i] != NULL; i++) {
        struct str text = str_trim(get(context, names[i]));
        if (text.len > 0) {
            return text;
        }
    }
    return STR("");
}

void proxies_from(struct proxies *out, struct str (*get)(void *context, const char *name),
                  void *context)
{
    static const char *const https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                        NULL};
    /* Not HTTP_PROXY: a CGI program has it from a request's "Proxy:" header. */
    static const char *const http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const exempt[] = {"no_proxy", "NO_PROXY", NULL};
    *out = (struct proxies){
        .https = first_of(get, context, https),
        .http = first_of(get, context, http),
        .exempt = first_of(get, context, exempt),
    };
}

/* ---- who is exempt ---- */

static struct str without_dot(struct str name)
{
    while (str_ends(name, STR("."))) {
        name.len--;
    }
    return name;
}

/* The clouds' metadata services response for the machine that asks; through a proxy that is another one, and what they
 * say is not for a proxy to hear. */
static bool is_never_proxied(struct str host)
{
    struct address a;
    if (address_parse(&a, host)) {
        return address_is_loopback(&a) || address_is_metadata(&a);
    }
    return host_is_loopback(host) ||
           ascii_same(without_dot(host), STR("metadata.google.internal"));
}

static bool network_holds(struct str entry, size_t slash, struct str host)
{
    struct address network, a;
    uint64_t bits;
    return address_parse(&network, str_sub(entry, 0, slash)) && address_parse(&a, host) &&
           str_u64(str_sub(entry, slash + 1, entry.len), &bits) && bits <= 128 &&
           address_within(&a, &network, (unsigned)bits);
}

/* example.com is itself and what is below it, with and without a dot or *. before it. */
static bool name_holds(struct str entry, struct str host)
{
    if (str_starts(entry, STR("*"))) {
        entry = str_sub(entry, 1, entry.len);
    }
    if (str_starts(entry, STR("."))) {
        entry = str_sub(entry, 1, entry.len);
    }
    entry = without_dot(entry);
    host = without_dot(host);
    if (entry.len == 0 || !ascii_ends(host, entry)) {
        return false;
    }
    return host.len == entry.len || host.ptr[host.len - entry.len - 1] == '.';
}

static bool entry_holds(struct str entry, struct str host, uint16_t port)
{
    struct address wanted, a;
    if (str_eq(entry, STR("*"))) {
        return true;
    }
    size_t slash = str_find(entry, '/');
    if (slash < entry.len) {
        return network_holds(entry, slash, host);
    }
    if (!address_parse(&wanted, entry)) { /* a bare IPv6 address has colons that begin no port */
        size_t colon = str_find_last(entry, ':');
        uint64_t only;
        if (colon < entry.len && str_u64(str_sub(entry, colon + 1, entry.len), &only)) {
            if (only != port) {
                return false;
            }
            entry.len = colon;
        }
        if (str_starts(entry, STR("[")) && str_ends(entry, STR("]"))) {
            entry = str_sub(entry, 1, entry.len - 2);
        }
    }
    if (address_parse(&a, host)) {
        return address_parse(&wanted, entry) && address_eq(&wanted, &a);
    }
    return name_holds(entry, host);
}

static bool is_exempt(struct str list, struct str host, uint16_t port)
{
    size_t at = 0;
    while (at < list.len) {
        size_t end = at;
        while (end < list.len && list.ptr[end] != ',' && (unsigned char)list.ptr[end] > ' ') {
            end++;
        }
        struct str entry = str_sub(list, at, end - at);
        if (entry.len > 0 && entry_holds(entry, host, port)) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

/* ---- the proxy's own address ---- */

static bool take_scheme(struct str *text, struct err *err)
{
    size_t colon = str_find(*text, ':');
    if (!str_eq(str_sub(*text, colon, 3), STR("://"))) {
        return true; /* host:port means http */
    }
    struct str scheme = str_sub(*text, 0, colon);
    *text = str_sub(*text, colon + 3, text->len);
    if (ascii_same(scheme, STR("http"))) {
        return true;
    }
    if (ascii_same(scheme, STR("https"))) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "the environment names a proxy that is itself spoken to by TLS (https://), which "
                       "is not supported; name one that is not (http://host:port)");
    }
    if (ascii_starts(scheme, STR("socks"))) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "the environment names a SOCKS proxy, which is not supported; name an HTTP "
                       "proxy, or exempt the server by no_proxy");
    }
    return err_set(err, ERR_UNSUPPORTED, 0,
                   "the environment names a proxy of a kind that is not known; it is written as "
                   "http://host:port");
}

static bool proxy_parse(struct str text, struct proxy *out, struct err *err)
{
    struct proxy proxy = {.user = STR(""), .password = STR("")};
    struct err reason = {0};
    if (!take_scheme(&text, err)) {
        return false;
    }
    text = str_sub(text, 0, str_find(text, '/'));
    size_t at = str_find_last(text, '@');
    if (at < text.len) {
        struct str secret = str_sub(text, 0, at);
        proxy.user = str_cut(&secret, ':');
        proxy.password = secret;
        text = str_sub(text, at + 1, text.len);
    }
    if (!url_host_port(text, &proxy.host, &proxy.port, &reason)) {
        return err_set(err, ERR_USAGE, 0, "the environment's proxy is not understood: %s",
                       reason.text);
    }
    if (proxy.port == 0) {
        /* curl would take 1080 and Go 80 */
        return err_set(err, ERR_USAGE, 0,
                       "the environment's proxy %.*s has no port, and programs differ in what they take "
                       "then; write http://%.*s:PORT",
                       (int)proxy.host.len, proxy.host.ptr, (int)proxy.host.len, proxy.host.ptr);
    }
    *out = proxy;
    return true;
}

bool proxy_for(const struct proxies *proxies, bool tls, struct str host, uint16_t port,
               struct proxy *out, struct err *err)
{
    struct str text = tls ? proxies->https : proxies->http;
    if (err != NULL) {
        *err = (struct err){0};
    }
    if (text.len == 0 || is_never_proxied(host) || is_exempt(proxies->exempt, host, port)) {
        return false;
    }
    return proxy_parse(text, out, err);
}
