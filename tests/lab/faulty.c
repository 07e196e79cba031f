#include "faulty.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 64, REQUEST_MAX = 1 << 20, SECOND_NS = 1000000000, WELL_PERCENT = 50, SERVED_PERCENT = 20 };

struct connection {
    int fd; /* -1: none */
    char *bytes;
    size_t len;
    const char *rest; /* of an answer that is sent slowly */
    uint64_t next_ns;
};

struct server {
    struct faulty *shared;
    int listener; /* -1: connections are refused */
    struct connection all[CONNECTIONS];
    uint64_t random;
    enum faulty_weather weather;
    uint64_t weather_until_ns;
};

static const char *const names[FAULTY_COUNT] = {"well", "refuses", "resets", "500", "429", "413", "403",
                                                "400", "slow", "hangs", "garbage", "half", "loses"};

const char *faulty_name(enum faulty_weather weather)
{
    return names[weather];
}

struct faulty *faulty_new(void)
{
    void *shared = mmap(NULL, sizeof(struct faulty), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}

/* 0 … most; splitmix64 */
static uint64_t random_to(struct server *s, uint64_t most)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % (most + 1);
}

/* ---- sockets ---- */

/* The port stays the same once it is chosen. */
static int listen_at(uint16_t *port)
{
    const int on = 1;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(*port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, CONNECTIONS) != 0 ||
        getsockname(fd, (struct sockaddr *)&here, &len) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(here.sin_port);
    return fd;
}

static void end_connection(struct connection *c, bool reset)
{
    const struct linger at_once = {1, 0};
    if (reset) {
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(c->fd);
    free(c->bytes);
    *c = (struct connection){.fd = -1};
}

static void say(struct connection *c, const char *text, size_t len)
{
    if (send(c->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        end_connection(c, false);
    }
}

static void answer(struct connection *c, int status, const char *header)
{
    char text[200];
    int len = snprintf(text, sizeof text, "HTTP/1.1 %d Said\r\n%sContent-Length: 0\r\n\r\n", status, header);
    say(c, text, (size_t)len);
}

/* ---- weather ---- */

static void change_weather(struct server *s, uint64_t now_ns)
{
    if (now_ns >= s->shared->well_from_ns) {
        s->weather = FAULTY_WELL;
        s->weather_until_ns = UINT64_MAX;
    } else {
        bool is_well = random_to(s, 99) < WELL_PERCENT;
        s->weather = is_well ? FAULTY_WELL : (enum faulty_weather)(1 + random_to(s, FAULTY_COUNT - 2));
        s->weather_until_ns = now_ns + (60 + random_to(s, 24 * 60)) * SECOND_NS;
        s->weather_until_ns = s->weather_until_ns < s->shared->well_from_ns ? s->weather_until_ns
                                                                            : s->shared->well_from_ns;
    }
    if (s->weather == FAULTY_REFUSES && s->listener >= 0) {
        close(s->listener);
        s->listener = -1;
    }
    if (s->weather != FAULTY_REFUSES && s->listener < 0) {
        s->listener = listen_at(&s->shared->port); /* below, too, until it succeeds */
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (s->all[i].fd >= 0 && (s->weather == FAULTY_REFUSES || s->weather == FAULTY_WELL)) {
            end_connection(&s->all[i], false); /* what hung, too */
        }
    }
}

/* ---- a request ---- */

/* The window that a path names; FAULTY_WINDOWS: none. */
static size_t window_of(const struct faulty *f, const char *head)
{
    struct tm t = {0};
    char rest;
    if (sscanf(head, "PUT /in/%4d%2d%2dT%2d%2d%2dZ%c", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour,
               &t.tm_min, &t.tm_sec, &rest) != 7 || rest != '/') {
        return FAULTY_WINDOWS;
    }
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    int64_t minutes = (timegm(&t) - (int64_t)f->first_start_s) / 60;
    return minutes >= 0 && minutes < FAULTY_WINDOWS ? (size_t)minutes : FAULTY_WINDOWS;
}

static void take(struct server *s, struct connection *c, size_t window)
{
    s->shared->taken[window]++;
    answer(c, 200, "");
}

static void misbehave(struct server *s, struct connection *c, size_t window, uint64_t now_ns)
{
    static const char slow[] = "HTTP/1.1 200 Slow\r\nContent-Length: 0\r\n\r\n";
    static const char *const after[] = {"Retry-After: 1\r\n", "Retry-After: 30\r\n", "Retry-After: 60\r\n",
                                        "Retry-After: 300\r\n"};
    char garbage[64];
    switch (s->weather) {
    case FAULTY_WELL:
    case FAULTY_REFUSES: take(s, c, window); break;
    case FAULTY_RESETS: end_connection(c, true); break;
    case FAULTY_500: answer(c, 500, ""); break;
    case FAULTY_429: answer(c, 429, after[random_to(s, 3)]); break;
    case FAULTY_413:
        s->shared->refused[window]++;
        answer(c, 413, "");
        break;
    case FAULTY_403: answer(c, 403, ""); break;
    case FAULTY_400:
        s->shared->refused[window]++;
        answer(c, 400, "");
        break;
    case FAULTY_IS_SLOW:
        s->shared->taken[window]++; /* who does not wait for the end sends it again */
        c->rest = slow;
        c->next_ns = now_ns;
        break;
    case FAULTY_HANGS: break;
    case FAULTY_GARBAGE:
        for (size_t i = 0; i < sizeof garbage; i++) {
            garbage[i] = (char)random_to(s, 255);
        }
        say(c, garbage, sizeof garbage);
        break;
    case FAULTY_HALF:
        say(c, "HTTP/1.1 20", 11);
        end_connection(c, false);
        break;
    case FAULTY_LOSES:
        s->shared->taken[window]++;
        end_connection(c, false);
        break;
    case FAULTY_COUNT: break;
    }
}

/* Answers the request that has come whole; false: it has not. */
static bool serve(struct server *s, struct connection *c, uint64_t now_ns)
{
    char *end = c->len == 0 ? NULL : memmem(c->bytes, c->len, "\r\n\r\n", 4);
    if (end == NULL) {
        return false;
    }
    *end = '\0';
    const char *length = strcasestr(c->bytes, "\r\ncontent-length:");
    size_t head = (size_t)(end - c->bytes) + 4, body = length == NULL ? 0 : strtoul(length + 17, NULL, 10);
    size_t window = window_of(s->shared, c->bytes);
    if (c->len < head + body) {
        *end = '\r';
        return false;
    }
    c->len -= head + body;
    memmove(c->bytes, c->bytes + head + body, c->len);
    if (window == FAULTY_WINDOWS) {
        s->shared->strange++;
        answer(c, 400, "");
    } else if (random_to(s, 99) < SERVED_PERCENT) {
        s->shared->met[FAULTY_WELL]++;
        take(s, c, window);
    } else {
        s->shared->met[s->weather]++;
        misbehave(s, c, window, now_ns);
    }
    return c->fd >= 0;
}

static void receive(struct server *s, struct connection *c, uint64_t now_ns)
{
    ssize_t got = recv(c->fd, c->bytes + c->len, REQUEST_MAX - c->len, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        end_connection(c, false);
        return;
    }
    c->len += got > 0 ? (size_t)got : 0;
    while (serve(s, c, now_ns)) {
    }
}

static void accept_one(struct server *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (size_t i = 0; fd >= 0 && i < CONNECTIONS; i++) {
        if (s->all[i].fd < 0) {
            s->all[i] = (struct connection){.fd = fd, .bytes = malloc(REQUEST_MAX)};
            return;
        }
    }
    close(fd);
}

static void send_slowly(struct connection *c, uint64_t now_ns)
{
    if (c->fd >= 0 && c->rest != NULL && now_ns >= c->next_ns) {
        const char *next = c->rest++;
        c->rest = *c->rest != '\0' ? c->rest : NULL;
        c->next_ns = now_ns + SECOND_NS / 5;
        say(c, next, 1);
    }
}

static void serve_for_ever(struct server *s)
{
    for (;;) {
        struct pollfd fds[CONNECTIONS + 1] = {{.fd = s->listener, .events = POLLIN}};
        bool slow = false;
        for (size_t i = 0; i < CONNECTIONS; i++) {
            fds[i + 1] = (struct pollfd){.fd = s->all[i].fd, .events = POLLIN};
            slow = slow || s->all[i].rest != NULL;
        }
        (void)poll(fds, CONNECTIONS + 1, slow ? 0 : 1);
        uint64_t now_ns = s->shared->now_ns();
        if (now_ns >= s->weather_until_ns || (s->weather != FAULTY_REFUSES && s->listener < 0)) {
            change_weather(s, now_ns);
        }
        for (size_t i = 0; i < CONNECTIONS; i++) {
            send_slowly(&s->all[i], now_ns);
            if (fds[i + 1].revents != 0 && s->all[i].fd == fds[i + 1].fd && s->all[i].fd >= 0) {
                receive(s, &s->all[i], now_ns);
            }
        }
        if (fds[0].revents != 0 && s->listener == fds[0].fd) {
            accept_one(s);
        }
    }
}

pid_t faulty_start(struct faulty *faulty)
{
    static struct server server;
    pid_t parent = getpid();
    server = (struct server){.shared = faulty, .random = faulty->seed};
    server.listener = listen_at(&faulty->port);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        server.all[i].fd = -1;
    }
    pid_t pid = server.listener < 0 ? -1 : fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            serve_for_ever(&server);
        }
        _exit(1);
    }
    if (server.listener >= 0) {
        close(server.listener);
    }
    return pid < 0 ? 0 : pid;
}
