/* src/os/net, against sockets of this machine. */
#include "os/net.h"
#include "os/clock.h"
#include "os/thread.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MS_NS UINT64_C(1000000)

static uint64_t in_ms(uint64_t ms)
{
    return clock_mono_ns() + ms * MS_NS;
}

static int listening(int family, uint16_t *port, int queue)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct sockaddr *own = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t len = family == AF_INET ? sizeof v4 : sizeof v6;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, own, len) < 0 || listen(fd, queue) < 0 ||
        getsockname(fd, own, &len) < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    *port = ntohs(family == AF_INET ? v4.sin_port : v6.sin6_port);
    return fd;
}

static int listening_local(const char *name, socklen_t extra)
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    strcpy(own.sun_path, name);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + extra);
    if (name[0] == '@') {
        own.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&own, len) == 0 && listen(fd, 1) == 0);
    return fd;
}

struct pair {
    struct net *net;
    struct stream ours;
    int theirs;
};

static bool connect_to(struct pair *p, int listener, const char *host, uint16_t port, int wake)
{
    struct err err = {0};
    p->net = net_new(wake, &err);
    struct dialer dialer = net_dialer(p->net);
    if (!dialer.dial(dialer.context, str_of(host), port, in_ms(5000), &p->ours, &err)) {
        CHECK_TEXT(err.text, "");
        net_free(p->net);
        return false;
    }
    p->theirs = accept(listener, NULL, NULL);
    CHECK(p->theirs >= 0);
    return true;
}

static void part(struct pair *p)
{
    p->ours.close(p->ours.context);
    close(p->theirs);
    net_free(p->net);
}

static ptrdiff_t read_in(struct pair *p, char *to, size_t len, uint64_t ms, struct err *err)
{
    *err = (struct err){0};
    return p->ours.read(p->ours.context, to, len, in_ms(ms), err);
}

static void check_talk(struct pair *p)
{
    char text[10] = "";
    struct err err;
    CHECK(!p->ours.readable(p->ours.context));
    CHECK_INT(p->ours.write(p->ours.context, "hello", 5, in_ms(1000), &err), 5);
    CHECK_INT(read(p->theirs, text, sizeof text), 5);
    CHECK_INT(write(p->theirs, "again", 5), 5);
    CHECK_INT(read_in(p, text, sizeof text, 1000, &err), 5);
    CHECK(memcmp(text, "again", 5) == 0);
    shutdown(p->theirs, SHUT_WR);
    CHECK_INT(read_in(p, text, sizeof text, 1000, &err), 0);
    CHECK(p->ours.readable(p->ours.context)); /* an end, too */
}

static void a_connection_carries_bytes_both_ways(void)
{
    uint16_t port;
    struct pair p;
    int listener = listening(AF_INET, &port, 5);
    static const char *const hosts[] = {"127.0.0.1", "localhost", "::ffff:127.0.0.1"};
    for (size_t i = 0; i < 3; i++) {
        if (connect_to(&p, listener, hosts[i], port, -1)) {
            check_talk(&p);
            CHECK_INT(p.ours.peer_len, i < 2 ? 4 : 16);
            CHECK(memcmp(p.ours.peer + p.ours.peer_len - 4, "\x7f\0\0\1", 4) == 0);
            part(&p);
        }
    }
    close(listener);
}

static void ipv6_is_an_address_like_any_other(void)
{
    uint16_t port;
    struct pair p;
    int listener = listening(AF_INET6, &port, 5);
    if (listener < 0) {
        SKIP("no IPv6 on this machine");
    }
    if (connect_to(&p, listener, "::1", port, -1)) {
        check_talk(&p);
        part(&p);
    }
    close(listener);
}

static void unix_sockets_are_reached_by_path_and_by_name(void)
{
    char path[64], name[64];
    struct pair p;
    snprintf(path, sizeof path, "/tmp/net_test.%d", getpid());
    snprintf(name, sizeof name, "@net_test.%d", getpid());
    int listener = listening_local(path, 1);
    if (connect_to(&p, listener, path, 0, -1)) {
        check_talk(&p);
        part(&p);
    }
    close(listener);
    unlink(path);
    listener = listening_local(name, 0);
    if (connect_to(&p, listener, name, 0, -1)) {
        check_talk(&p);
        part(&p);
    }
    close(listener);
}

static void refused_by(const char *host, uint16_t port, const char *sentence)
{
    struct err err = {0};
    struct stream stream;
    struct net *net = net_new(-1, NULL);
    struct dialer dialer = net_dialer(net);
    CHECK(!dialer.dial(dialer.context, str_of(host), port, in_ms(2000), &stream, &err));
    CHECK_INT(err.kind, ERR_NETWORK);
    if (strstr(err.text, sentence) == NULL) {
        CHECK_TEXT(err.text, sentence);
    }
    net_free(net);
}

static void a_dial_that_fails_names_what_was_tried(void)
{
    char sentence[128], path[128] = "/";
    uint16_t port;
    close(listening(AF_INET, &port, 5)); /* now nobody listens there */
    snprintf(sentence, sizeof sentence, "cannot connect to 127.0.0.1 port %u: Connection refused",
             port);
    refused_by("127.0.0.1", port, sentence);
    refused_by("/no/such/socket", 0, "cannot connect to the socket /no/such/socket: No such file");
    refused_by("@no-such-socket", 0, "the socket @no-such-socket: Connection refused");
    memset(path + 1, 'a', 107);
    refused_by(path, 0, "must have 1 to 107 bytes");
    refused_by("", 80, "must have 1 to 255 bytes");
    refused_by("not a name", 80, "cannot resolve the name not a name");
}

static void a_server_that_takes_nobody_is_given_up(void)
{
    uint16_t port;
    struct err err = {0};
    struct stream streams[4];
    size_t connected = 0;
    int listener = listening(AF_INET, &port, 0); /* a queue of one; the kernel drops who comes then */
    struct net *net = net_new(-1, NULL);
    struct dialer dialer = net_dialer(net);
    uint64_t begin = clock_mono_ns();
    while (connected < 4 && dialer.dial(dialer.context, STR("127.0.0.1"), port, in_ms(200),
                                        &streams[connected], &err)) {
        connected++;
    }
    CHECK(connected > 0 && connected < 4);
    CHECK_INT(err.number, ETIMEDOUT);
    CHECK(strstr(err.text, "no response in time") != NULL);
    CHECK(clock_mono_ns() - begin >= 200 * MS_NS);
    while (connected > 0) {
        connected--;
        streams[connected].close(streams[connected].context);
    }
    net_free(net);
    close(listener);
}

static void a_read_ends_at_its_deadline_and_not_before(void)
{
    uint16_t port;
    struct pair p;
    struct err err;
    char byte;
    int listener = listening(AF_INET, &port, 5);
    if (connect_to(&p, listener, "127.0.0.1", port, -1)) {
        uint64_t begin = clock_mono_ns();
        CHECK_INT(read_in(&p, &byte, 1, 50, &err), -1);
        CHECK(err.kind == ERR_NETWORK && err.number == ETIMEDOUT);
        CHECK(clock_mono_ns() - begin >= 50 * MS_NS);
        /* what is there is read all the same */
        CHECK_INT(write(p.theirs, "x", 1), 1);
        CHECK_INT(read_in(&p, &byte, 1, 1000, &err), 1);
        CHECK_INT(write(p.theirs, "y", 1), 1);
        clock_sleep_ns(MS_NS);
        CHECK_INT(p.ours.read(p.ours.context, &byte, 1, 0, &err), 1);
        part(&p);
    }
    close(listener);
}

static void a_reader_that_does_not_read_ends_the_writing(void)
{
    uint16_t port;
    struct pair p;
    struct err err = {0};
    static const char block[65536];
    int listener = listening(AF_INET, &port, 5);
    if (connect_to(&p, listener, "127.0.0.1", port, -1)) {
        ptrdiff_t put = 1;
        for (int i = 0; put > 0 && i < 10000; i++) {
            put = p.ours.write(p.ours.context, block, sizeof block, in_ms(50), &err);
        }
        CHECK_INT(put, -1);
        CHECK_INT(err.number, ETIMEDOUT);
        part(&p);
    }
    close(listener);
}

static void a_cut_is_an_error_and_no_signal(void)
{
    uint16_t port;
    struct pair p;
    struct err err = {0};
    struct linger now = {1, 0};
    int listener = listening(AF_INET, &port, 5);
    if (connect_to(&p, listener, "127.0.0.1", port, -1)) {
        signal(SIGPIPE, SIG_DFL);
        setsockopt(p.theirs, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(p.theirs);
        p.theirs = -1;
        char byte;
        CHECK_INT(read_in(&p, &byte, 1, 1000, &err), -1);
        CHECK_INT(err.number, ECONNRESET);
        CHECK_INT(p.ours.write(p.ours.context, "x", 1, in_ms(1000), &err), -1);
        CHECK_INT(err.number, EPIPE);
        part(&p);
    }
    close(listener);
}

static void a_waker_ends_every_wait(void)
{
    uint16_t port;
    struct pair p;
    struct err err;
    char byte;
    int listener = listening(AF_INET, &port, 5);
    int waker = waker_open();
    if (connect_to(&p, listener, "127.0.0.1", port, waker)) {
        waker_set(waker);
        CHECK_INT(read_in(&p, &byte, 1, 60000, &err), -1);
        CHECK(err.kind == ERR_NETWORK && err.number == ECANCELED);
        waker_clear(waker);
        CHECK_INT(read_in(&p, &byte, 1, 10, &err), -1);
        CHECK_INT(err.number, ETIMEDOUT);
        part(&p);
    }
    close(listener);
    waker_close(waker);
}

static void a_closed_standard_input_does_not_become_a_connection(void)
{
    uint16_t port;
    struct err err = {0};
    struct stream stream;
    int listener = listening(AF_INET, &port, 5);
    struct net *net = net_new(-1, NULL);
    struct dialer dialer = net_dialer(net);
    int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
    close(0);
    bool ok = dialer.dial(dialer.context, STR("127.0.0.1"), port, in_ms(1000), &stream, &err);
    CHECK(ok);
    CHECK_INT(fcntl(0, F_GETFD), -1);
    if (ok) {
        stream.close(stream.context);
    }
    net_free(net);
    close(listener);
    if (input >= 0) {
        dup2(input, 0);
        close(input);
    }
}

static void the_own_address_is_one_and_the_mac_belongs_to_it(void)
{
    char ip[64], mac[24];
    net_own_address(ip, mac);
    CHECK(strlen(ip) == 0 || strchr(ip, '.') != NULL || strchr(ip, ':') != NULL);
    CHECK(strlen(mac) == 0 || strlen(mac) == 17);
    CHECK(strlen(ip) > 0 || strlen(mac) == 0);
    CHECK(strncmp(ip, "127.", 4) != 0);
}

static void random_bytes_differ(void)
{
    unsigned char a[32] = {0}, b[32] = {0};
    net_random(NULL, a, sizeof a);
    net_random(NULL, b, sizeof b);
    CHECK(memcmp(a, b, sizeof a) != 0);
    unsigned char *many = calloc(1, 100001);
    net_random(NULL, many, 100000);
    size_t zeros = 0;
    for (size_t i = 0; i < 100000; i++) {
        zeros += many[i] == 0;
    }
    CHECK(zeros > 200 && zeros < 700); /* 391 are expected; 20 is one deviation */
    CHECK_INT(many[100000], 0);
    free(many);
}

TESTS_THAT_MEASURE({"a connection carries bytes both ways", a_connection_carries_bytes_both_ways},
      {"IPv6 is an address like any other", ipv6_is_an_address_like_any_other},
      {"Unix sockets are reached by path and by name",
       unix_sockets_are_reached_by_path_and_by_name},
      {"a dial that fails names what was tried", a_dial_that_fails_names_what_was_tried},
      {"a server that takes nobody is given up", a_server_that_takes_nobody_is_given_up},
      {"a read ends at its deadline and not before", a_read_ends_at_its_deadline_and_not_before},
      {"a reader that does not read ends the writing",
       a_reader_that_does_not_read_ends_the_writing},
      {"a cut is an error and no signal", a_cut_is_an_error_and_no_signal},
      {"a waker ends every wait", a_waker_ends_every_wait},
      {"a closed standard input does not become a connection",
       a_closed_standard_input_does_not_become_a_connection},
      {"the own address is one and the MAC belongs to it",
       the_own_address_is_one_and_the_mac_belongs_to_it},
      {"random bytes differ", random_bytes_differ})
