/*
 * tls_get HOST PORT [OPTION...]: one or more TLS connections by src/deliver/tls over a plain socket
 * of its own; linked with the product's objects.
 *
 *     --at ADDRESS  connects there instead of to HOST, which then is only the name
 *     --ca FILE, --built-in, --pin PIN   whom to trust; --no-verify
 *     --cert FILE --key FILE             the client's certificate
 *     --times N     connections, each with the session of the one before
 *     --wall S      the clock, in seconds since 1970
 *     --get PATH    what is asked for (/)
 *     --long N      asks by POST with a body of N bytes
 *     --poll        reads only when `readable` said so, and then without waiting
 *     --seed N      all random bytes have this value
 *     --record FILE writes what came from the server there
 *     --second      begins with the second engine
 *     --session FILE takes the second engine's session from there, and leaves the last one there
 *
 * Prints a line "full MS MS" or "short MS MS" for each handshake, with its time and its CPU time;
 * what was answered; then "end", or "cut: SENTENCE"; or else "config: SENTENCE", "passing:
 * SENTENCE"; "by the second engine" where it was. The last line is the memory, "rss KB".
 */
#include "base/time.h"
#include "deliver/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <psa/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, WAIT_S = 60 };

struct options {
    const char *host, *port, *at, *path, *cert, *key, *session;
    unsigned times, seed;
    size_t post;
    bool poll, second;
    int record; /* a descriptor, or -1 */
    struct tls_settings settings;
    struct trust trust;
};

/* Of the second engine's keys; 0: as random bytes are. */
static unsigned key_seed;

psa_status_t mbedtls_psa_external_get_random(mbedtls_psa_external_random_context_t *context, uint8_t *to, size_t room,
                                             size_t *len)
{
    (void)context;
    if (key_seed > 0)
        memset(to, (int)key_seed, room);
    *len = room;
    return key_seed > 0 || getrandom(to, room, 0) == (ssize_t)room ? PSA_SUCCESS : PSA_ERROR_INSUFFICIENT_ENTROPY;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static bool fail(const char *what)
{
    printf("usage: %s\n", what);
    exit(2);
}

/* ---- The stream */

struct socket {
    int fd, record;
};

static bool wait_for(int fd, short events, uint64_t deadline_ns, struct err *err)
{
    struct pollfd p = {fd, events, 0};
    uint64_t now = now_ns(CLOCK_MONOTONIC);
    int ms = deadline_ns > now ? (int)((deadline_ns - now) / NS_PER_MS) + 1 : 0;
    return poll(&p, 1, ms) == 1 || err_set(err, ERR_NETWORK, ETIMEDOUT, "no response in time");
}

static ptrdiff_t socket_read(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct socket *s = context;
    if (!wait_for(s->fd, POLLIN, deadline_ns, err))
        return -1;
    ptrdiff_t got = recv(s->fd, to, len, 0);
    if (got < 0)
        err_set(err, ERR_NETWORK, errno, "reading failed: %s", strerror(errno));
    if (got > 0 && s->record >= 0 && write(s->record, to, (size_t)got) != got)
        fail("the record cannot be written");
    return got;
}

static ptrdiff_t socket_write(void *context, const void *from, size_t len, uint64_t deadline_ns,
                              struct err *err)
{
    struct socket *s = context;
    if (!wait_for(s->fd, POLLOUT, deadline_ns, err))
        return -1;
    ptrdiff_t sent = send(s->fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        err_set(err, ERR_NETWORK, errno, "writing failed: %s", strerror(errno));
    return sent;
}

static bool socket_readable(void *context)
{
    struct pollfd p = {((struct socket *)context)->fd, POLLIN, 0};
    return poll(&p, 1, 0) == 1;
}

static void socket_close(void *context)
{
    struct socket *s = context;
    close(s->fd);
    free(s);
}

static struct stream connect_to(const struct options *o)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int on = 1, fd;
    if (getaddrinfo(o->at, o->port, &hints, &found) != 0)
        fail("no such host");
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
        fail("no connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    freeaddrinfo(found);
    struct socket *s = malloc(sizeof *s);
    *s = (struct socket){fd, o->record};
    return (struct stream){.read = socket_read, .write = socket_write, .readable = socket_readable,
                           .close = socket_close, .context = s};
}

/* ---- The command line */

static struct str read_file(const char *path)
{
    char *text = malloc(FILE_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 || text == NULL ? -1 : read(fd, text, FILE_MAX);
    if (len < 0)
        fail(path);
    close(fd);
    return (struct str){text, (size_t)len};
}

static void trust_file(struct options *o, const char *path)
{
    struct str text = read_file(path);
    trust_add_pem(&o->trust, text, path);
    free((char *)(uintptr_t)text.ptr);
}

static void set(struct options *o, const char *name, const char *value)
{
    struct err err;
    if (strcmp(name, "--at") == 0)
        o->at = value;
    else if (strcmp(name, "--ca") == 0)
        trust_file(o, value);
    else if (strcmp(name, "--pin") == 0 && !trust_add_pin(&o->trust, str_of(value), &err))
        fail(err.text);
    else if (strcmp(name, "--cert") == 0)
        o->cert = value;
    else if (strcmp(name, "--key") == 0)
        o->key = value;
    else if (strcmp(name, "--times") == 0)
        o->times = (unsigned)atoi(value);
    else if (strcmp(name, "--wall") == 0)
        o->settings.wall_ns = strtoull(value, NULL, 10) * NS_PER_S;
    else if (strcmp(name, "--get") == 0)
        o->path = value;
    else if (strcmp(name, "--long") == 0)
        o->post = strtoul(value, NULL, 10);
    else if (strcmp(name, "--session") == 0)
        o->session = value;
    else if (strcmp(name, "--seed") == 0)
        o->seed = key_seed = (unsigned)atoi(value);
    else if (strcmp(name, "--record") == 0)
        o->record = open(value, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static void set_identity(struct options *o)
{
    struct err err;
    struct str chain = read_file(o->cert), key = read_file(o->key != NULL ? o->key : o->cert);
    o->settings.identity = tls_identity_new(chain, key, &err);
    if (o->settings.identity == NULL) {
        printf("config: %s\n", err.text);
        exit(1);
    }
    free((char *)(uintptr_t)chain.ptr);
    free((char *)(uintptr_t)key.ptr);
}

static void parse(struct options *o, int argc, char **argv)
{
    if (argc < 3)
        fail("tls_get HOST PORT [OPTION...]");
    *o = (struct options){.host = argv[1], .port = argv[2], .at = argv[1], .path = "/", .times = 1};
    o->record = -1;
    o->settings.verify = true;
    o->settings.wall_ns = now_ns(CLOCK_REALTIME);
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--built-in") == 0)
            trust_add_built_in(&o->trust);
        else if (strcmp(argv[i], "--no-verify") == 0)
            o->settings.verify = false;
        else if (strcmp(argv[i], "--poll") == 0)
            o->poll = true;
        else if (strcmp(argv[i], "--second") == 0)
            o->second = true;
        else if (i + 1 < argc)
            set(o, argv[i], argv[i + 1]), i++;
    }
    if (o->cert != NULL)
        set_identity(o);
    o->settings.trust = &o->trust;
}

/* ---- The exchange */

static bool write_all(struct stream *s, const char *from, size_t len, uint64_t deadline_ns, struct err *err)
{
    while (len > 0) {
        ptrdiff_t sent = s->write(s->context, from, len, deadline_ns, err);
        if (sent <= 0)
            return false;
        from += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool ask(const struct options *o, struct stream *s, uint64_t deadline_ns, struct err *err)
{
    char head[512], *body = calloc(1, o->post + 1);
    if (o->post > 0)
        snprintf(head, sizeof head, "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n\r\n", o->path, o->post);
    else
        snprintf(head, sizeof head, "GET %s HTTP/1.0\r\n\r\n", o->path);
    bool ok = write_all(s, head, strlen(head), deadline_ns, err) &&
              write_all(s, body, o->post, deadline_ns, err);
    free(body);
    return ok;
}

/* With a deadline that has passed a read does not wait. */
static uint64_t wait_readable(struct stream *s, struct stream *under, uint64_t deadline_ns)
{
    struct err err;
    while (!s->readable(s->context))
        if (!wait_for(((struct socket *)under->context)->fd, POLLIN, deadline_ns, &err))
            fail("nothing is readable");
    return 1;
}

static void take(const struct options *o, struct stream *s, struct stream *under, uint64_t deadline_ns)
{
    struct err err;
    char bytes[4096];
    for (;;) {
        uint64_t until_ns = o->poll ? wait_readable(s, under, deadline_ns) : deadline_ns;
        ptrdiff_t got = s->read(s->context, bytes, sizeof bytes, until_ns, &err);
        if (got <= 0) {
            if (got == 0)
                printf("\nend\n");
            else
                printf("\n%s: %s\n", tls_failed_by_config(&err) ? "config" : "cut", err.text);
            return;
        }
        fwrite(bytes, 1, (size_t)got, stdout);
    }
}

static bool once(struct options *o, struct tls_session *session)
{
    session->again = false;
    struct stream under = connect_to(o), s;
    struct err err;
    if (getrandom(o->settings.seed, sizeof o->settings.seed, 0) != sizeof o->settings.seed)
        fail("no random bytes");
    if (o->seed > 0)
        memset(o->settings.seed, (int)o->seed, sizeof o->settings.seed);
    uint64_t start = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t deadline_ns = start + WAIT_S * NS_PER_S;
    if (!tls_open(&under, str_of(o->host), &o->settings, session, deadline_ns, &s, &err)) {
        if (session->again)
            return once(o, session);
        printf("%s: %s\n", tls_failed_by_config(&err) ? "config" : "passing", err.text);
        return false;
    }
    printf("%s %.2f %.2f\n", session->resumed ? "short" : "full",
           (double)(now_ns(CLOCK_MONOTONIC) - start) / 1e6,
           (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6);
    /* A server that refuses may have closed; it says why all the same. */
    if (!ask(o, &s, deadline_ns, &err))
        printf("%s\n", err.text);
    take(o, &s, &under, deadline_ns);
    if (session->second)
        printf("by the second engine\n");
    s.close(s.context);
    return true;
}

static void load_session(const struct options *o, struct tls_session *session)
{
    if (o->session == NULL || access(o->session, R_OK) != 0)
        return;
    struct str text = read_file(o->session);
    session->ticket = (unsigned char *)(uintptr_t)text.ptr;
    session->ticket_len = text.len;
    session->second = true;
}

static void save_session(const struct options *o, const struct tls_session *session)
{
    if (o->session == NULL || session->ticket == NULL)
        return;
    int fd = open(o->session, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, session->ticket, session->ticket_len) != (ssize_t)session->ticket_len)
        fail("the session cannot be written");
    close(fd);
}

int main(int argc, char **argv)
{
    struct options o;
    struct tls_session session = {0};
    bool ok = true;
    parse(&o, argc, argv);
    session.second = o.second;
    load_session(&o, &session);
    for (unsigned i = 0; i < o.times && ok; i++)
        ok = once(&o, &session);
    /* getrusage would tell the most of the process that we were before exec, too. */
    struct str status = read_file("/proc/self/status");
    printf("rss %ld\n", atol(strstr(status.ptr, "VmHWM:") + strlen("VmHWM:")));
    save_session(&o, &session);
    tls_session_forget(&session);
    return ok ? 0 : 1;
}
