/* Connections with deadlines to names, addresses and Unix sockets, and the streams over them. Every
 * wait ends at its deadline or when the waker is set, so an upload thread never hangs at the end of a
 * run. TLS is not here: deliver/ puts it on top. */
#include "os/net.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/net_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CONNECT_NS (3 * NS_PER_S)

enum {
    POLL_MAX_MS = 60000, /* then it is looked anew */
    FULL_QUEUE_MS = 10,  /* between two tries to connect to a Unix socket whose queue is full */
};

struct net {
    int wake;
    struct net_names *names;
    bool unresolved; /* the name of the last dial */
};

/* ---- waiting ---- */

static bool timed_out(struct err *err)
{
    return err_set(err, ERR_NETWORK, ETIMEDOUT, "no response in time");
}

static int poll_ms(uint64_t left_ns)
{
    uint64_t ms = left_ns / NS_PER_MS;
    return ms < POLL_MAX_MS ? (int)ms + 1 : POLL_MAX_MS;
}

bool net_wait(int fd, short events, int wake, uint64_t deadline_ns, struct err *err)
{
    for (;;) {
        uint64_t now = clock_mono_ns();
        if (now >= deadline_ns) {
            return timed_out(err);
        }
        struct pollfd set[2] = {{fd, events, 0}, {wake, POLLIN, 0}};
        int ready = poll(set, 2, poll_ms(deadline_ns - now));
        if (ready < 0 && errno != EINTR) {
            return err_set(err, ERR_NETWORK, errno, "waiting failed: %s", strerror(errno));
        }
        if (ready > 0 && set[1].revents != 0) {
            return err_set(err, ERR_NETWORK, ECANCELED, "the run ended before there was a response");
        }
        if (ready > 0 && set[0].revents != 0) {
            return true;
        }
    }
}

/* ---- streams ---- */

struct connection {
    int fd, wake;
};

static bool is_not_yet(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK;
}

static ptrdiff_t cut(int number, struct err *err)
{
    const char *text = number == ECONNRESET ? "the connection was reset by the other side"
                       : number == EPIPE    ? "the connection was closed by the other side"
                                            : strerror(number);
    (void)err_set(err, ERR_NETWORK, number, "%s", text);
    return -1;
}

static ptrdiff_t connection_read(void *context, void *to, size_t len, uint64_t deadline_ns,
                                 struct err *err)
{
    struct connection *c = context;
    for (;;) {
        ssize_t got = recv(c->fd, to, len, MSG_DONTWAIT);
        if (got >= 0) {
            return got;
        }
        if (errno != EINTR && !is_not_yet(errno)) {
            return cut(errno, err);
        }
        if (is_not_yet(errno) && !net_wait(c->fd, POLLIN, c->wake, deadline_ns, err)) {
            return -1;
        }
    }
}

static ptrdiff_t connection_write(void *context, const void *from, size_t len,
                                  uint64_t deadline_ns, struct err *err)
{
    struct connection *c = context;
    for (;;) {
        ssize_t put = send(c->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put > 0 || (put == 0 && len == 0)) {
            return put;
        }
        if (put < 0 && errno != EINTR && !is_not_yet(errno)) {
            return cut(errno, err);
        }
        if ((put == 0 || is_not_yet(errno)) &&
            !net_wait(c->fd, POLLOUT, c->wake, deadline_ns, err)) {
            return -1;
        }
    }
}

static bool connection_readable(void *context)
{
    struct connection *c = context;
    struct pollfd set = {c->fd, POLLIN, 0};
    return poll(&set, 1, 0) > 0;
}

static void connection_close(void *context)
{
    struct connection *c = context;
    close(c->fd);
    free(c);
}

static void connection_end(void *context)
{
    struct connection *c = context;
    (void)shutdown(c->fd, SHUT_WR);
}

static bool make_stream(int fd, int wake, struct stream *out, struct err *err)
{
    struct connection *c = malloc(sizeof *c);
    if (c == NULL) {
        close(fd);
        return err_set(err, ERR_MEMORY, ENOMEM, "no memory for a connection");
    }
    *c = (struct connection){fd, wake};
    *out = (struct stream){connection_read, connection_write, connection_readable, connection_close, c,
                           .end = connection_end};
    return true;
}

/* ---- descriptors and addresses ---- */

int net_clear_of_standard(int fd)
{
    if (fd < 0 || fd > 2) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return moved;
}

socklen_t net_length_of(const union net_address *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

void net_set_port(union net_address *a, uint16_t port)
{
    if (a->any.sa_family == AF_INET) {
        a->v4.sin_port = htons(port);
    } else {
        a->v6.sin6_port = htons(port);
    }
}

void net_show(const union net_address *a, char out[static INET6_ADDRSTRLEN])
{
    const void *bytes =
        a->any.sa_family == AF_INET ? (const void *)&a->v4.sin_addr : &a->v6.sin6_addr;
    if (inet_ntop(a->any.sa_family, bytes, out, INET6_ADDRSTRLEN) == NULL) {
        out[0] = '\0';
    }
}

/* ---- connecting ---- */

static int open_socket(int family)
{
    return net_clear_of_standard(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* The errno of a connection that was being made. */
static int outcome(int fd)
{
    int number = 0;
    socklen_t len = sizeof number;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) == 0 ? number : errno;
}

static bool refused(int number, struct err *err)
{
    return err_set(err, ERR_NETWORK, number, "%s", strerror(number));
}

static bool connect_fd(int fd, const union net_address *to, int wake, uint64_t deadline_ns,
                       struct err *err)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, &to->any, net_length_of(to)) == 0) {
        return true;
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        return refused(errno, err);
    }
    if (!net_wait(fd, POLLOUT, wake, deadline_ns, err)) {
        return false;
    }
    int number = outcome(fd);
    return number == 0 || refused(number, err);
}

static void name_peer(const union net_address *to, struct stream *out)
{
    bool is_v4 = to->any.sa_family == AF_INET;
    out->peer_len = is_v4 ? sizeof to->v4.sin_addr : sizeof to->v6.sin6_addr;
    memcpy(out->peer, is_v4 ? (const void *)&to->v4.sin_addr : (const void *)&to->v6.sin6_addr, out->peer_len);
}

static bool connect_address(struct net *net, const union net_address *to, uint64_t deadline_ns,
                            struct stream *out, struct err *err)
{
    int fd = open_socket(to->any.sa_family);
    if (fd < 0) {
        return refused(errno, err);
    }
    uint64_t until_ns = time_earlier(deadline_ns, clock_mono_ns() + CONNECT_NS);
    if (!connect_fd(fd, to, net->wake, until_ns, err)) {
        close(fd);
        return false;
    }
    bool ok = make_stream(fd, net->wake, out, err);
    if (ok) {
        name_peer(to, out);
    }
    return ok;
}

/* ---- Unix sockets ---- */

static socklen_t local_address(struct str path, union net_address *out)
{
    size_t most = sizeof out->local.sun_path - 1;
    bool is_abstract = str_starts(path, STR("@"));
    if (path.len == 0 || path.len > most) {
        return 0;
    }
    memset(out, 0, sizeof *out);
    out->local.sun_family = AF_UNIX;
    memcpy(out->local.sun_path, path.ptr, path.len);
    if (is_abstract) {
        out->local.sun_path[0] = '\0';
    }
    /* An abstract name has its length and no end. */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + !is_abstract);
}

/* EAGAIN says that the server's queue is full, which poll cannot wait for. */
static bool connect_local(int fd, const union net_address *to, socklen_t len, int wake,
                          uint64_t deadline_ns, struct err *err)
{
    while (connect(fd, &to->any, len) != 0) {
        if (errno != EAGAIN && errno != EINTR) {
            return refused(errno, err);
        }
        uint64_t now = clock_mono_ns();
        uint64_t pause_ns = now + FULL_QUEUE_MS * NS_PER_MS;
        if (now >= deadline_ns) {
            return timed_out(err);
        }
        struct err why = {0};
        if (!net_wait(-1, 0, wake, pause_ns, &why) && why.number == ECANCELED) {
            return err_set(err, why.kind, why.number, "%s", why.text);
        }
    }
    return true;
}

static bool dial_local(struct net *net, struct str path, uint64_t deadline_ns, struct stream *out,
                       struct err *err)
{
    union net_address to;
    struct err why = {0};
    socklen_t len = local_address(path, &to);
    if (len == 0) {
        return err_set(err, ERR_NETWORK, ENAMETOOLONG, "the path of a Unix socket must have 1 to 107 bytes");
    }
    uint64_t until_ns = time_earlier(deadline_ns, clock_mono_ns() + CONNECT_NS);
    int fd = open_socket(AF_UNIX);
    if (fd < 0) {
        (void)refused(errno, &why);
    } else if (connect_local(fd, &to, len, net->wake, until_ns, &why)) {
        return make_stream(fd, net->wake, out, err);
    } else {
        close(fd);
    }
    return err_set(err, ERR_NETWORK, why.number, "cannot connect to the socket %.*s: %s",
                   (int)path.len, path.ptr, why.text);
}

/* ---- dialing ---- */

/* A family that this machine does not have tells less than what the other one met. */
static bool is_no_route(int number)
{
    return number == ENETUNREACH || number == EADDRNOTAVAIL || number == EAFNOSUPPORT;
}

struct failure {
    union net_address address;
    struct err why;
};

static void note_failure(struct failure *worst, const union net_address *address,
                         const struct err *why)
{
    if (worst->why.kind == ERR_NONE || is_no_route(worst->why.number)) {
        *worst = (struct failure){*address, *why};
    }
}

static bool not_connected(const char *host, uint16_t port, size_t tried,
                          const struct failure *worst, struct err *err)
{
    char address[INET6_ADDRSTRLEN], name[NET_HOST_MAX + 8] = "", more[48] = "";
    net_show(&worst->address, address);
    if (strcmp(address, host) != 0) {
        snprintf(name, sizeof name, "%s, ", host);
    }
    if (tried > 1) {
        snprintf(more, sizeof more, " (and %zu other addresses)", tried - 1);
    }
    return err_set(err, ERR_NETWORK, worst->why.number, "cannot connect to %s%s port %u: %s%s",
                   name, address, port, worst->why.text, more);
}

static bool dial_host(struct net *net, const char *host, uint16_t port, uint64_t deadline_ns,
                      struct stream *out, struct err *err)
{
    struct net_addresses *found =
        net_names_find(net->names, host, net->wake, deadline_ns, err);
    if (found == NULL) {
        net->unresolved = true;
        return false;
    }
    struct failure worst = {0};
    size_t tried = 0;
    while (tried < found->count) {
        struct err why = {0};
        union net_address to = found->at[tried];
        net_set_port(&to, port);
        if (connect_address(net, &to, deadline_ns, out, &why)) {
            union net_address good = found->at[tried];
            found->at[tried] = found->at[0];
            found->at[0] = good;
            return true;
        }
        tried++;
        note_failure(&worst, &to, &why);
        if (why.number == ECANCELED || clock_mono_ns() >= deadline_ns) {
            return not_connected(host, port, tried, &(struct failure){to, why}, err);
        }
    }
    found->host[0] = '\0';
    return not_connected(host, port, tried, &worst, err);
}

static bool dial(void *context, struct str host, uint16_t port, uint64_t deadline_ns,
                 struct stream *out, struct err *err)
{
    struct net *net = context;
    char name[NET_HOST_MAX];
    net->unresolved = false;
    if (port == 0) {
        return dial_local(net, host, deadline_ns, out, err);
    }
    if (host.len == 0 || host.len >= sizeof name || str_find(host, '\0') < host.len) {
        return err_set(err, ERR_NETWORK, ENAMETOOLONG, "a host name must have 1 to 255 bytes");
    }
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    return dial_host(net, name, port, deadline_ns, out, err);
}

/* ---- the interface ---- */

struct net *net_new(int wake, struct err *err)
{
    unsigned char probe;
    if (getrandom(&probe, 1, 0) != 1) {
        (void)err_errno(err, errno, "cannot get random bytes from the kernel (getrandom)");
        return NULL;
    }
    struct net *net = calloc(1, sizeof *net);
    struct net_names *names = net_names_new();
    if (net == NULL || names == NULL) {
        free(net);
        net_names_free(names);
        (void)err_set(err, ERR_MEMORY, ENOMEM, "no memory for connections");
        return NULL;
    }
    *net = (struct net){.wake = wake, .names = names};
    return net;
}

void net_free(struct net *net)
{
    if (net != NULL) {
        net_names_free(net->names);
        free(net);
    }
}

struct dialer net_dialer(struct net *net)
{
    return (struct dialer){dial, net};
}

bool net_is_unresolved(const struct net *net)
{
    return net->unresolved;
}

void net_random(void *context, void *to, size_t len)
{
    unsigned char *at = to;
    (void)context;
    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);
        if (got > 0) {
            at += got;
            len -= (size_t)got;
        } else if (errno != EINTR) {
            abort(); /* net_new saw it work; what cannot be random must not be guessed */
        }
    }
}
