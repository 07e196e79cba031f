/* src/capture/log_sender: what is said reaches a server, when, and what becomes of it when that fails. */
#include "capture/upload/log_sender.h"

#include "base/gzip.h"
#include "base/json.h"
#include "base/time.h"
#include "os/clock.h"
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a server: each request is unpacked and kept, and answered by the next of its statuses ---- */

enum { REQUESTS_MAX = 16, BODY_MAX = 1 << 20, MUTE = 1 };

static struct server {
    int fd;
    char address[64];
    unsigned statuses[REQUESTS_MAX]; /* 0: 201; MUTE: no answer */
    pthread_t thread;
    pthread_mutex_t lock;
    unsigned count;
    char *bodies[REQUESTS_MAX];
    uint64_t moments_ns[REQUESTS_MAX];
} server;

static size_t length_of(const char *head)
{
    const char *found = strstr(head, "Content-Length: ");
    return found == NULL ? 0 : strtoul(found + 16, NULL, 10);
}

/* The body as text; null when the connection ended before. */
static char *receive(int fd)
{
    static char all[BODY_MAX];
    size_t len = 0, wanted = sizeof all - 1;
    char *body = NULL;
    while (len < wanted) {
        ssize_t got = read(fd, all + len, sizeof all - 1 - len);
        if (got <= 0) {
            return NULL;
        }
        len += (size_t)got;
        all[len] = '\0';
        body = body != NULL ? body : strstr(all, "\r\n\r\n");
        wanted = body == NULL ? sizeof all - 1 : (size_t)(body - all) + 4 + length_of(all);
    }
    struct buf plain;
    buf_init(&plain, BODY_MAX);
    CHECK(gzip_inflate(body + 4, wanted - (size_t)(body + 4 - all), &plain, NULL));
    CHECK(json_valid(buf_slice(&plain)));
    char *text = strdup(buf_cstr(&plain));
    buf_release(&plain);
    return text;
}

static void answer(int fd, unsigned status)
{
    char text[128];
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %u Said\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", status);
    CHECK_INT(write(fd, text, (size_t)len), len);
    shutdown(fd, SHUT_WR);
}

static void *serve(void *context)
{
    (void)context;
    for (int fd; (fd = accept(server.fd, NULL, NULL)) >= 0;) {
        char *body = receive(fd);
        unsigned status = 0;
        if (body != NULL) {
            pthread_mutex_lock(&server.lock);
            unsigned at = server.count < REQUESTS_MAX ? server.count++ : REQUESTS_MAX - 1;
            free(server.bodies[at]);
            server.bodies[at] = body;
            server.moments_ns[at] = clock_mono_ns();
            status = server.statuses[at];
            pthread_mutex_unlock(&server.lock);
        }
        char rest;
        if (status != MUTE) {
            answer(fd, status != 0 ? status : 201);
        }
        (void)!read(fd, &rest, 1); /* until it is closed at the other end */
        close(fd);
    }
    return NULL;
}

static void begin_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    server = (struct server){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    pthread_mutex_init(&server.lock, NULL);
    CHECK(bind(server.fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(server.fd, 8) == 0 &&
          getsockname(server.fd, (struct sockaddr *)&address, &len) == 0);
    snprintf(server.address, sizeof server.address, "http://127.0.0.1:%u", ntohs(address.sin_port));
}

static void run_server(void)
{
    CHECK_INT(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void end_server(void)
{
    shutdown(server.fd, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.fd);
    for (unsigned i = 0; i < REQUESTS_MAX; i++) {
        free(server.bodies[i]);
    }
}

/* Waits for so many requests, 10 s at most. */
static unsigned requests(unsigned wanted)
{
    unsigned count = 0;
    for (unsigned i = 0; i < 1000 && count < wanted; i++) {
        pthread_mutex_lock(&server.lock);
        count = server.count;
        pthread_mutex_unlock(&server.lock);
        clock_sleep_ns(count < wanted ? 10 * NS_PER_MS : 0);
    }
    return count;
}

/* ---- a run that says something ---- */

static struct log spoken;

/* Until so many answers that were no good have been taken in, each of which is told at debug level; 10 s at most. */
static void refusals(unsigned wanted)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < 1000 && count < wanted; i++) {
        count = 0;
        pthread_mutex_lock(&spoken.lock);
        map_each(&spoken.said, slot)
        {
            count += slot->value;
        }
        pthread_mutex_unlock(&spoken.lock);
        clock_sleep_ns(count < wanted ? 10 * NS_PER_MS : 0);
    }
    CHECK_INT(count, wanted);
}

static const struct origin_here here = {.facts = {.service = {"shop", 4}, .hostname = {"web-1", 5}}};
static struct settings settings;

static struct log_pace slow(void)
{
    return (struct log_pace){.period_ns = 600 * NS_PER_S, .least_ns = 0, .patience_ns = 10 * NS_PER_S,
                             .room_bytes = 64 << 10};
}

static struct log_sender *begin(struct log_pace pace)
{
    struct err err;
    settings = (struct settings){.upload = {.server_host = server.address, .token = "SECRET-1", .verify = true},
                                 .budget.memory_bytes = 64 << 20, .origin.metadata = true};
    spoken = (struct log){.fd = -1, .level = LOG_ERROR};
    pthread_mutex_init(&spoken.lock, NULL);
    struct log_sender *sender = log_sender_new(&settings, true, &spoken, &here, &pace, &err);
    CHECK(sender != NULL);
    CHECK(log_sender_start(sender, false, &err));
    return sender;
}

static void end(struct log_sender *sender)
{
    CHECK(log_sender_stop(sender, 5 * NS_PER_S));
    log_close(&spoken);
    end_server();
}

/* Whether the request has these messages, and no others between. */
static void has(unsigned request, const char *first, const char *second)
{
    const char *at = strstr(server.bodies[request], first);
    CHECK(at != NULL);
    if (at != NULL && second != NULL) {
        const char *next = strstr(at + 1, "\"message\": ");
        CHECK(next != NULL && strncmp(next + 12, second, strlen(second)) == 0);
    }
}

static char *member_of(unsigned request, const char *name)
{
    struct str value = json_member(str_of(server.bodies[request]), name);
    return strndup(value.ptr != NULL ? value.ptr : "", value.len);
}

static void member_is(unsigned request, const char *name, const char *expected)
{
    char *value = member_of(request, name);
    CHECK_TEXT(value, expected);
    free(value);
}

static void messages_go_within_a_period(void)
{
    begin_server();
    run_server();
    struct log_pace pace = slow();
    pace.period_ns = 100 * NS_PER_MS;
    struct log_sender *sender = begin(pace);
    log_say(&spoken, LOG_INFO, "first %d", 1);
    log_say(&spoken, LOG_DEBUG, "not this");
    log_say(&spoken, LOG_ERROR, "second");
    CHECK(requests(1) >= 1);
    has(0, "first 1", "second");
    CHECK(strstr(server.bodies[0], "not this") == NULL);
    CHECK(strstr(server.bodies[0], "\"severity\": 3") < strstr(server.bodies[0], "\"severity\": 5"));
    member_is(0, "lost_logs_count", "0");
    clock_sleep_ns(250 * NS_PER_MS);
    CHECK_INT(server.count, 1); /* nothing was said since */
    end(sender);
}

static void a_room_that_fills_does_not_wait_for_the_period_but_for_the_least(void)
{
    begin_server();
    run_server();
    struct log_pace pace = slow();
    pace.least_ns = 300 * NS_PER_MS;
    pace.room_bytes = 4000;
    uint64_t begun_ns = clock_mono_ns();
    struct log_sender *sender = begin(pace);
    for (unsigned i = 0; i < 18; i++) { /* some 195 bytes each */
        log_say(&spoken, LOG_INFO, "message %u", i);
    }
    CHECK(requests(1) == 1);
    CHECK(server.moments_ns[0] - begun_ns >= 300 * NS_PER_MS);
    has(0, "message 0", "message 1");
    end(sender);
}

static void what_was_not_taken_goes_again_and_what_fell_out_is_counted(void)
{
    begin_server();
    server.statuses[0] = server.statuses[1] = 503;
    run_server();
    struct log_pace pace = slow();
    pace.least_ns = 600 * NS_PER_S;
    pace.room_bytes = 4000;
    struct log_sender *sender = begin(pace);
    log_say(&spoken, LOG_INFO, "one");
    log_sender_refresh(sender);
    CHECK_INT(requests(1), 1);
    log_say(&spoken, LOG_INFO, "two");
    refusals(1);
    log_sender_refresh(sender);
    CHECK_INT(requests(2), 2);
    char *first = member_of(0, "batch_id"), *second = member_of(1, "batch_id");
    CHECK_TEXT(first, second);
    free(first);
    free(second);
    CHECK(strstr(server.bodies[1], "\"two\"") == NULL);
    refusals(2);
    for (unsigned i = 0; i < 30; i++) {
        log_say(&spoken, LOG_INFO, "more %u", i);
    }
    log_sender_refresh(sender);
    CHECK_INT(requests(3), 3);
    CHECK(strstr(server.bodies[2], "\"one\"") == NULL && strstr(server.bodies[2], "\"more 29\"") != NULL);
    /* The oldest number that is left is how many were lost. */
    char *lost = member_of(2, "lost_logs_count"), expected[32];
    const char *oldest = strstr(server.bodies[2], "\"serial_no\": ");
    CHECK(oldest != NULL && atoi(lost) > 10);
    snprintf(expected, sizeof expected, "%d", oldest != NULL ? atoi(oldest + 13) : -1);
    CHECK_TEXT(lost, expected);
    free(lost);
    log_say(&spoken, LOG_INFO, "last");
    CHECK(log_sender_stop(sender, 5 * NS_PER_S));
    CHECK_INT(requests(4), 4);
    has(3, "last", NULL);
    member_is(3, "lost_logs_count", "0");
    log_close(&spoken);
    end_server();
}

static void a_server_without_logs_is_not_asked_again(void)
{
    begin_server();
    server.statuses[0] = 404;
    run_server();
    struct log_sender *sender = begin(slow());
    log_say(&spoken, LOG_INFO, "one");
    log_sender_refresh(sender);
    CHECK_INT(requests(1), 1);
    refusals(1);
    for (unsigned i = 0; i < 1000; i++) {
        log_say(&spoken, LOG_INFO, "%u", i);
    }
    log_sender_refresh(sender);
    clock_sleep_ns(50 * NS_PER_MS);
    CHECK(log_sender_stop(sender, 5 * NS_PER_S));
    CHECK_INT(server.count, 1);
    log_say(&spoken, LOG_INFO, "nobody hears");
    log_close(&spoken);
    end_server();
}

static void the_end_waits_no_longer_than_it_may(void)
{
    begin_server();
    server.statuses[0] = MUTE;
    run_server();
    struct log_sender *sender = begin(slow());
    log_say(&spoken, LOG_INFO, "one");
    uint64_t begun_ns = clock_mono_ns();
    CHECK(log_sender_stop(sender, 200 * NS_PER_MS));
    uint64_t took_ns = clock_mono_ns() - begun_ns;
    CHECK(took_ns >= 150 * NS_PER_MS && took_ns < 5 * NS_PER_S);
    log_close(&spoken);
    end_server();
}

static void one_that_never_began_is_released(void)
{
    struct log_pace pace = slow();
    struct err err;
    settings = (struct settings){.upload = {.server_host = "http://127.0.0.1:9", .token = "SECRET-1"}};
    spoken = (struct log){.fd = -1};
    pthread_mutex_init(&spoken.lock, NULL);
    struct log_sender *sender = log_sender_new(&settings, true, &spoken, &here, &pace, &err);
    CHECK(sender != NULL);
    log_say(&spoken, LOG_INFO, "one");
    CHECK(log_sender_stop(sender, NS_PER_S));
    settings.upload.api_server = "ftp://x";
    CHECK(log_sender_new(&settings, true, &spoken, &here, &pace, &err) == NULL);
    log_close(&spoken);
}

TESTS_THAT_MEASURE({"messages go within a period", messages_go_within_a_period},
      {"a room that fills does not wait for the period but for the least",
       a_room_that_fills_does_not_wait_for_the_period_but_for_the_least},
      {"what was not taken goes again and what fell out is counted",
       what_was_not_taken_goes_again_and_what_fell_out_is_counted},
      {"a server without logs is not asked again", a_server_without_logs_is_not_asked_again},
      {"the end waits no longer than it may", the_end_waits_no_longer_than_it_may},
      {"one that never began is released", one_that_never_began_is_released})
