/* The HTTP client: connects, directly or through a proxy, keeps the connection, follows redirects
 * where that is safe, and says at which stage a request failed. No secret goes to another host than
 * the one it was meant for. */
#include "deliver/client.h"
#include "base/ascii.h"
#include "base/time.h"
#include "deliver/address.h"
#include "deliver/escape.h"
#include "deliver/paced.h"

#include <errno.h>
#include <stdio.h>

/* Load balancers close idle connections after 50 to 60 s, uploads come every 60 s: a race that is not run. */
#define KEPT_NS (15 * NS_PER_S)
#define HANDSHAKE_NS (10 * NS_PER_S)
#define STALL_NS (10 * NS_PER_S)
#define VERDICT_NS NS_PER_S

enum {
    WHERE_MAX = 640, /* two hosts and some words */
    TEXT_MAX = 32 * 1024,
    PORT_HTTP = 80,
    PORT_HTTPS = 443,
};

/* They give credentials to whoever asks from this machine. */
#define METADATA "link-local or a cloud's metadata service: no redirect is followed there; give the final address"

/* One call of client_send: where the request goes now, and what it is there. */
struct send {
    struct client *client;
    uint64_t deadline_ns;
    struct http_request request;
    size_t own_headers; /* without a proxy's credentials */
    struct url url;
    struct buf text;     /* host and target of the request */
    struct str present;  /* the target, as the server sees it */
    struct buf target;   /* of a redirect */
    char location[1024]; /* what the URL points into after one */
    bool abroad;         /* a redirect led to another server */
    bool proxied;
    struct proxy proxy;
    char proxy_name[CLIENT_HOST_MAX + 8]; /* "host:port"; "" */
    struct buf credentials; /* for the proxy */
    char where[WHERE_MAX];  /* for sentences */
};

static uint64_t now_of(const struct client *client)
{
    return client->settings.clock.mono_ns(client->settings.clock.context);
}

/* Gives false, so that a failure is one line. */
static bool fails(struct send *s, bool config, const struct err *why, const char *where,
                  struct err *err)
{
    bool ours = why->kind == ERR_USAGE || why->kind == ERR_UNSUPPORTED || why->number == EPROTONOSUPPORT;
    s->client->config = config || ours;
    return where[0] == '\0'
               ? err_set(err, why->kind, why->number, "%s", why->text)
               : err_set(err, why->kind, why->number, "%s: %s", where, why->text);
}

/* ---- the address in the request ---- */

static struct str host_shown(struct str host)
{
    host = str_sub(host, 0, str_find(host, '%')); /* a zone means something on this machine alone */
    if (host.len > 1 && str_ends(host, STR("."))) {
        host.len--;
    }
    return host;
}

static void add_host(struct buf *out, struct str host, uint16_t port)
{
    bool is_v6 = str_find(host, ':') < host.len;
    struct str shown = host_shown(host);
    buf_printf(out, is_v6 ? "[%.*s]" : "%.*s", (int)shown.len, shown.ptr);
    if (port != 0) {
        buf_printf(out, ":%u", port);
    }
}

static uint16_t usual_port(bool tls)
{
    return tls ? PORT_HTTPS : PORT_HTTP;
}

/* The path of one before that of the other, and the queries of both. */
static void add_target(struct buf *out, struct str base, struct str target)
{
    struct str path = str_cut(&base, '?');
    struct str under = str_cut(&target, '?');
    size_t begin = out->len;
    while (under.len > 0 && str_ends(path, STR("/"))) {
        path.len--;
    }
    buf_str(out, path);
    if ((out->len == begin && under.len == 0) || (under.len > 0 && under.ptr[0] != '/')) {
        buf_byte(out, '/');
    }
    buf_str(out, under);
    if (base.len > 0 || target.len > 0) {
        buf_byte(out, '?');
        buf_str(out, base);
        buf_text(out, base.len > 0 && target.len > 0 ? "&" : "");
        buf_str(out, target);
    }
}

/* The texts stand in a row, "http://host:port/target", all of which a proxy gets to see. */
bool client_address(const struct url *url, struct http_request *request, struct buf *text,
                    struct err *err)
{
    buf_clear(text);
    buf_text(text, "http://");
    size_t host_at = text->len;
    if (url->is_unix) {
        buf_text(text, "localhost");
    } else {
        add_host(text, url->host, url->port == usual_port(url->tls) ? 0 : url->port);
    }
    size_t host_end = text->len;
    add_target(text, url->path, request->target);
    if (text->failed) {
        return err_set(err, ERR_LIMIT, 0, "the address of a request is too long");
    }
    struct str all = buf_slice(text);
    request->host = str_sub(all, host_at, host_end - host_at);
    request->target = str_sub(all, host_end, all.len);
    return true;
}

static void describe(struct send *s)
{
    const struct url *url = &s->url;
    struct buf text;
    buf_init(&text, sizeof s->where);
    if (url->is_unix) {
        buf_printf(&text, "unix:%.*s", (int)url->host.len, url->host.ptr);
    } else {
        buf_text(&text, url->tls ? "https://" : "http://");
        add_host(&text, url->host, url->port == usual_port(url->tls) ? 0 : url->port);
    }
    if (s->proxied) {
        buf_printf(&text, " through the proxy %s", s->proxy_name);
    }
    snprintf(s->where, sizeof s->where, "%s", buf_cstr(&text));
    buf_release(&text);
}

/* ---- the proxy ---- */

static int hex_of(char byte)
{
    uint64_t value;
    return str_hex((struct str){&byte, 1}, &value) ? (int)value : -1;
}

static void add_decoded(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool has_two = text.ptr[i] == '%' && i + 2 < text.len;
        int high = has_two ? hex_of(text.ptr[i + 1]) : -1;
        int low = has_two ? hex_of(text.ptr[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            buf_byte(out, (char)(high << 4 | low));
            i += 2;
        } else {
            buf_byte(out, text.ptr[i]);
        }
    }
}

static bool make_credentials(struct send *s, struct err *err)
{
    const struct proxy *proxy = &s->proxy;
    struct buf plain;
    buf_wipe(&s->credentials);
    if (proxy->user.len + proxy->password.len == 0) {
        return true;
    }
    size_t most = proxy->user.len + proxy->password.len + 1;
    buf_init(&plain, TEXT_MAX);
    (void)buf_room(&plain, most);
    (void)buf_room(&s->credentials, 2 * most + 16);
    add_decoded(&plain, proxy->user);
    buf_byte(&plain, ':');
    add_decoded(&plain, proxy->password);
    buf_text(&s->credentials, "Basic ");
    escape_base64(&s->credentials, buf_slice(&plain));
    bool good = !plain.failed && !s->credentials.failed;
    buf_wipe(&plain);
    return good || err_set(err, ERR_LIMIT, 0, "the password of the proxy is too long");
}

static bool add_credentials(struct send *s, struct http_request *request, struct err *err)
{
    struct str value = buf_slice(&s->credentials);
    if (value.len > 0 && !http_add(request, STR("Proxy-Authorization"), value, true)) {
        return err_set(err, ERR_LIMIT, 0, "a request has too many headers for a proxy's password");
    }
    return true;
}

static bool is_refusal(unsigned status)
{
    return status / 100 == 4 && status != 408 && status != 429;
}

static bool proxy_refused(struct send *s, const struct http_response *response, struct err *err)
{
    s->client->config = is_refusal(response->status);
    s->client->stage = CLIENT_PROXY;
    if (response->status == 407) {
        return err_set(err, ERR_NETWORK, 0,
                       "the proxy %s requires a valid user and password (407 %s); they are "
                       "written in its URL, http://USER:PASSWORD@%s",
                       s->proxy_name, response->reason, s->proxy_name);
    }
    return err_set(err, ERR_NETWORK, 0, "the proxy %s does not connect to %.*s:%u: %u %s",
                   s->proxy_name, (int)s->url.host.len, s->url.host.ptr, s->url.port,
                   response->status, response->reason);
}

/* Asks the proxy for a tunnel. None of the request's headers is sent to it. */
static bool open_tunnel(struct send *s, struct stream *stream, uint64_t deadline_ns,
                        struct err *err)
{
    struct http_response response = {0};
    struct err why = {0};
    struct buf target;
    buf_init(&target, TEXT_MAX);
    add_host(&target, s->url.host, s->url.port);
    struct http_request connect = {
        .method = "CONNECT", .target = buf_slice(&target), .host = buf_slice(&target)};
    bool ok = add_credentials(s, &connect, &why) &&
              http_exchange(stream, &connect, 0, deadline_ns, &response, &why);
    if (!ok) {
        (void)fails(s, false, &why, s->where, err);
    } else if (response.status / 100 != 2) {
        ok = proxy_refused(s, &response, err);
    } else if (!response.keeps) {
        ok = err_set(err, ERR_NETWORK, EPROTO, "the proxy %s speaks where the server should",
                     s->proxy_name);
    }
    http_response_release(&response);
    buf_release(&target);
    return ok;
}

static bool choose_proxy(struct send *s, struct err *err)
{
    struct err why = {0};
    struct url *url = &s->url;
    s->proxied = !url->is_unix && proxy_for(&s->client->settings.proxies, url->tls, url->host,
                                            url->port, &s->proxy, &why);
    s->proxy_name[0] = '\0';
    if (why.kind != ERR_NONE) {
        s->client->stage = CLIENT_PROXY;
        return fails(s, true, &why, "", err);
    }
    if (!s->proxied) {
        return true;
    }
    struct buf name;
    buf_init(&name, sizeof s->proxy_name);
    add_host(&name, s->proxy.host, s->proxy.port);
    snprintf(s->proxy_name, sizeof s->proxy_name, "%s", buf_cstr(&name));
    buf_release(&name);
    return make_credentials(s, err);
}

/* ---- connections ---- */

static bool is_held_by(const char *held, struct str host)
{
    return str_eq(str_of(held), host);
}

static void hold(char out[static CLIENT_HOST_MAX], struct str host)
{
    snprintf(out, CLIENT_HOST_MAX, "%.*s", (int)host.len, host.ptr);
}

static bool start_tls(struct send *s, struct stream *under, struct stream *out, struct err *err)
{
    struct client *client = s->client;
    struct tls_settings tls = client->settings.tls;
    struct err why = {0};
    if (!is_held_by(client->session_host, s->url.host) || client->session_port != s->url.port) {
        tls_session_forget(&client->session);
        hold(client->session_host, s->url.host);
        client->session_port = s->url.port;
    }
    client->settings.random(client->settings.random_context, tls.seed, sizeof tls.seed);
    tls.wall_ns = client->settings.clock.wall_ns(client->settings.clock.context);
    uint64_t deadline_ns = time_earlier(s->deadline_ns, now_of(client) + HANDSHAKE_NS);
    bool ok = tls_open(under, s->url.host, &tls, &client->session, deadline_ns, out, &why);
    if (ok) {
        client->resumptions += client->session.resumed;
    } else {
        (void)fails(s, tls_failed_by_config(&why), &why, s->proxied ? s->where : "", err);
    }
    explicit_bzero(&tls, sizeof tls);
    return ok;
}

/* The name, or figures that only the resolver reads, may stand for an address that go_elsewhere would have refused. */
static bool may_be_there(struct send *s, struct stream *raw, struct err *err)
{
    struct address a;
    if (!s->abroad || s->proxied || !address_take(&a, raw->peer, raw->peer_len) || !address_is_metadata(&a)) {
        return true;
    }
    raw->close(raw->context);
    s->client->config = true;
    return err_set(err, ERR_NETWORK, 0, "%.200s: a redirect leads here, to an address that is " METADATA, s->where);
}

static bool dial(struct send *s, struct stream *out, struct err *err)
{
    struct client_settings *settings = &s->client->settings;
    struct str host = s->proxied ? s->proxy.host : s->url.host;
    uint16_t port = s->proxied ? s->proxy.port : s->url.port;
    struct stream raw;
    struct err why = {0};
    char who[CLIENT_HOST_MAX + 24];
    snprintf(who, sizeof who, s->proxied ? "the proxy %s" : "%s", s->proxy_name);
    s->client->stage = s->proxied ? CLIENT_PROXY : CLIENT_CONNECT;
    if (!settings->dialer.dial(settings->dialer.context, host, port, s->deadline_ns, &raw, &why)) {
        return fails(s, false, &why, who, err);
    }
    s->client->connects++;
    return may_be_there(s, &raw, err) && paced_open(&raw, settings->clock, settings->stall_ns, out, err);
}

static bool connect_once(struct send *s, struct stream *out, struct err *err)
{
    struct stream plain;
    if (!dial(s, &plain, err)) {
        return false;
    }
    uint64_t deadline_ns = time_earlier(s->deadline_ns, now_of(s->client) + HANDSHAKE_NS);
    if (s->proxied && s->url.tls && !open_tunnel(s, &plain, deadline_ns, err)) {
        plain.close(plain.context);
        return false;
    }
    if (s->url.tls) {
        s->client->stage = CLIENT_TLS;
        return start_tls(s, &plain, out, err);
    }
    *out = plain;
    return true;
}

/* A server that refused one engine of TLS has closed the connection. What it refused is no matter if it takes the
 * other. */
static bool connect_anew(struct send *s, struct stream *out, struct err *err)
{
    struct err why = {0};
    s->client->session.again = false; /* of an earlier connection, which may not have come as far as TLS */
    if (connect_once(s, out, &why)) {
        return true;
    }
    if (s->client->session.again) {
        s->client->config = false;
        return connect_once(s, out, err);
    }
    if (err != NULL) {
        *err = why;
    }
    return false;
}

static void drop_kept(struct client *client)
{
    if (client->has_kept) {
        client->has_kept = false;
        client->kept.close(client->kept.context);
    }
}

/* The connection that is kept, when it is to the same server in the same way and may still be alive. */
static bool take_kept(struct send *s, struct stream *out)
{
    struct client *client = s->client;
    const struct url *url = &s->url;
    if (!client->has_kept) {
        return false;
    }
    bool same = str_eq(client->kept_host, url->host) && client->kept_port == url->port &&
                client->kept_tls == url->tls; /* and so by the same proxy */
    bool fresh = now_of(client) - client->kept_since_ns < KEPT_NS;
    if (!same || !fresh || client->kept.readable(client->kept.context)) {
        drop_kept(client);
        return false;
    }
    *out = client->kept;
    client->has_kept = false;
    return true;
}

static void keep(struct send *s, struct stream *stream)
{
    struct client *client = s->client;
    client->kept = *stream;
    client->has_kept = true;
    client->kept_since_ns = now_of(client);
    hold(client->kept_name, s->url.host);
    client->kept_host = str_of(client->kept_name);
    client->kept_port = s->url.port;
    client->kept_tls = s->url.tls;
}

/* ---- one request, one response ---- */

static bool exchange(struct send *s, struct stream *stream, struct http_response *out,
                     struct err *why)
{
    uint64_t wall_ns = s->client->settings.clock.wall_ns(s->client->settings.clock.context);
    s->client->stage = CLIENT_RESPONSE;
    http_response_release(out);
    bool ok = http_exchange(stream, &s->request, wall_ns, s->deadline_ns, out, why);
    out->by_proxy = s->proxied && !s->url.tls;
    if (ok && out->keeps) {
        keep(s, stream);
    } else {
        stream->close(stream->context);
    }
    return ok;
}

/* A server that closes a kept connection may do so just as the request is on its way. One that is silent may be busy
 * with the request, which would be there twice. */
static bool was_stale(const struct http_response *out, const struct err *why)
{
    return !out->began && why->kind == ERR_NETWORK && why->number != ETIMEDOUT &&
           why->number != ECANCELED;
}

static bool send_once(struct send *s, struct http_response *out, struct err *err)
{
    struct stream stream;
    struct err why = {0};
    if (take_kept(s, &stream)) {
        if (exchange(s, &stream, out, &why)) {
            return true;
        }
        if (!was_stale(out, &why)) {
            return fails(s, false, &why, s->where, err);
        }
        why = (struct err){0};
    }
    if (!connect_anew(s, &stream, err)) {
        return false;
    }
    return exchange(s, &stream, out, &why) || fails(s, false, &why, s->where, err);
}

/* What the request is on its way now: its address, and what a proxy wants that reads it. */
static bool aim(struct send *s, struct str target, struct err *err)
{
    struct err why = {0};
    s->request.header_count = s->own_headers;
    s->request.target = target;
    if (!choose_proxy(s, err)) {
        return false;
    }
    describe(s);
    bool absolute = s->proxied && !s->url.tls;
    if (!client_address(&s->url, &s->request, &s->text, &why) ||
        (absolute && !add_credentials(s, &s->request, &why))) {
        return fails(s, true, &why, s->where, err);
    }
    s->present = s->request.target;
    s->request.target = absolute ? buf_slice(&s->text) : s->present;
    return http_check(&s->request, &why) || fails(s, true, &why, s->where, err);
}

/* ---- redirects ---- */

static bool not_followed(struct send *s, const struct http_response *response, const char *why,
                         struct err *err)
{
    s->client->config = true;
    return err_set(err, ERR_NETWORK, 0, "%.200s: answers %u and points to %.120s; %s", s->where,
                   response->status, response->location[0] != '\0' ? response->location : "nowhere", why);
}

static bool same_server(const struct url *a, const struct url *b)
{
    bool usual = a->port == usual_port(a->tls) && b->port == usual_port(b->tls);
    return ascii_same(host_shown(a->host), host_shown(b->host)) && (a->port == b->port || usual);
}

/* What another server must not see, and a Host that was given for the first one. */
static void drop_private(struct send *s)
{
    struct http_request *request = &s->request;
    size_t kept = 0;
    for (size_t i = 0; i < s->own_headers; i++) {
        struct http_header header = request->headers[i];
        if (!header.secret && !ascii_same(header.name, STR("host"))) {
            request->headers[kept++] = header;
        }
    }
    s->own_headers = kept;
}

static bool is_absolute(struct str location)
{
    size_t colon = str_find(location, ':');
    return str_starts(location, STR("//")) ||
           (colon < str_find(location, '/') && colon < str_find(location, '?'));
}

/* Path and query of where a redirect goes that stays on its server: RFC 3986, 5.2, but for the dots in paths, which
 * the server that wrote them understands. */
static void add_relative(struct buf *out, struct str present, struct str location)
{
    struct str path = str_cut(&present, '?');
    if (location.ptr[0] == '?') {
        buf_str(out, path);
    } else if (location.ptr[0] != '/') {
        size_t slash = str_find_last(path, '/');
        buf_str(out, str_sub(path, 0, slash < path.len ? slash + 1 : 0));
    }
    buf_str(out, location);
}

/* What stands behind the host of an absolute address. */
static struct str target_of(struct str address)
{
    size_t at = str_find(address, ':') + 3;
    while (at < address.len && address.ptr[at] != '/' && address.ptr[at] != '?') {
        at++;
    }
    return str_sub(address, at, address.len);
}

/* Why not, or null. */
static const char *go_elsewhere(struct send *s, struct str location)
{
    char next[sizeof s->location + 8];
    struct url url;
    bool bare = str_starts(location, STR("//"));
    snprintf(next, sizeof next, "%s%.*s", !bare ? "" : s->url.tls ? "https:" : "http:",
             (int)location.len, location.ptr);
    struct str address = str_of(next);
    bool is_web = ascii_starts(address, STR("http://")) || ascii_starts(address, STR("https://"));
    if (address.len >= sizeof s->location || !is_web ||
        !url_parse(&url, address, PORT_HTTP, NULL)) {
        return "that is not the address of a web server";
    }
    if (s->url.is_unix) {
        return "from a Unix socket nothing leads there";
    }
    if (s->url.tls && !url.tls) {
        return "a redirect from https to http is not followed";
    }
    if (!same_server(&s->url, &url)) {
        struct address a;
        if (address_parse(&a, url.host) && address_is_metadata(&a)) {
            return "that is " METADATA;
        }
        s->abroad = true;
        drop_private(s);
    }
    memcpy(s->location, next, address.len + 1);
    address = str_of(s->location);
    (void)url_parse(&s->url, address, PORT_HTTP, NULL);
    buf_str(&s->target, target_of(address));
    return NULL;
}

static const char *follow(struct send *s, const struct http_response *response)
{
    struct str location = str_of(response->location);
    location = str_sub(location, 0, str_find(location, '#'));
    buf_clear(&s->target);
    if (location.len == 0) {
        return "that is not the address of a web server";
    }
    if (is_absolute(location)) {
        const char *why = go_elsewhere(s, location);
        if (why != NULL) {
            return why;
        }
    } else {
        add_relative(&s->target, s->present, location);
    }
    s->url.path = STR("");
    return s->target.failed ? "that address is too long" : NULL;
}

static bool is_redirect(unsigned status)
{
    return status == 307 || status == 308 || (status >= 301 && status <= 303);
}

static const char *redirect(struct send *s, unsigned hops, const struct http_response *response)
{
    if (response->status != 307 && response->status != 308) {
        return "following it would drop the request's body; give the final address";
    }
    return hops == CLIENT_REDIRECTS_MAX ? "it was redirected three times before" : follow(s, response);
}

static bool send_following(struct send *s, struct http_response *out, struct err *err)
{
    struct str target = s->request.target;
    for (unsigned hops = 0; hops <= CLIENT_REDIRECTS_MAX; hops++) {
        if (!aim(s, target, err) || !send_once(s, out, err)) {
            return false;
        }
        if (out->status == 407 && s->proxied && !s->url.tls) {
            return proxy_refused(s, out, err);
        }
        if (s->client->settings.stays || !is_redirect(out->status)) {
            return true;
        }
        const char *why = redirect(s, hops, out);
        if (why != NULL) {
            return not_followed(s, out, why, err);
        }
        target = buf_slice(&s->target);
    }
    return false; /* not reached: the last redirect is not followed */
}

/* ---- the interface ---- */

void client_init(struct client *client, const struct client_settings *settings)
{
    *client = (struct client){.settings = *settings};
    if (client->settings.stall_ns == 0) {
        client->settings.stall_ns = STALL_NS;
    }
}

static void begin(struct send *s)
{
    buf_init(&s->text, TEXT_MAX);
    buf_init(&s->target, TEXT_MAX);
    buf_init(&s->credentials, TEXT_MAX);
    s->client->config = false;
    s->client->stage = CLIENT_ADDRESS;
}

static void end(struct send *s)
{
    buf_wipe(&s->credentials);
    buf_release(&s->target);
    buf_release(&s->text);
}

bool client_send(struct client *client, const struct url *url, struct http_request *request,
                 uint64_t deadline_ns, struct http_response *out, struct err *err)
{
    struct send s = {
        .client = client,
        .deadline_ns = deadline_ns,
        .request = *request,
        .own_headers = request->header_count,
        .url = *url,
    };
    begin(&s);
    *out = (struct http_response){0};
    buf_init(&out->body, HTTP_BODY_MAX);
    bool ok = send_following(&s, out, err);
    if (!ok) { /* a redirect's or a proxy's, whose words are in `err` */
        http_response_release(out);
    }
    end(&s);
    return ok;
}

/* By TLS 1.3 a server that does not take our certificate says so after the handshake: it has a second to do so. */
static bool is_let_in(struct send *s, struct stream *stream, struct err *err)
{
    char byte;
    struct err why = {0};
    uint64_t until_ns = time_earlier(s->deadline_ns, now_of(s->client) + VERDICT_NS);
    ptrdiff_t got = stream->read(stream->context, &byte, 1, until_ns, &why);
    return got >= 0 || !tls_failed_by_config(&why) || fails(s, true, &why, s->proxied ? s->where : "", err);
}

bool client_reach(struct client *client, const struct url *url, uint64_t deadline_ns, struct err *err)
{
    struct send s = {
        .client = client,
        .deadline_ns = deadline_ns,
        .request = {.method = "GET"},
        .url = *url,
    };
    struct stream stream;
    begin(&s);
    bool ok = aim(&s, STR("/"), err) && connect_anew(&s, &stream, err);
    if (ok) {
        ok = !client->session.judged_late || !url->tls || is_let_in(&s, &stream, err);
        stream.close(stream.context);
    }
    end(&s);
    return ok;
}

void client_release(struct client *client)
{
    drop_kept(client);
    tls_session_forget(&client->session);
}
