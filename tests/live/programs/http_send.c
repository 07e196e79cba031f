/*
 * Sends requests as the product does, by deliver/client over os/net, and tells what came of each as a line of JSON.
 *
 *     http_send [--post BYTES] [--times N] [--pause-ms N] [--deadline-ms N] [--stall-ms N] [--wake-after-ms N]
 *               [--header NAME:VALUE] [--secret NAME:VALUE] [--ca FILE] URL [TARGET]
 *     http_send --own-address
 *
 * Proxies are taken from the environment. Linked with the product's objects (lab/linked.py).
 */
#include "base/time.h"
#include "deliver/client.h"
#include "os/clock.h"
#include "os/net.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct arguments {
    size_t post;
    bool has_post;
    unsigned times;
    uint64_t pause_ms, deadline_ms, stall_ms, wake_after_ms;
    const char *ca, *url, *target;
    struct http_request request;
};

struct alarm {
    int waker;
    uint64_t after_ms;
};

static void *sound(void *context)
{
    struct alarm *alarm = context;
    clock_sleep_ns(alarm->after_ms * NS_PER_MS);
    waker_set(alarm->waker);
    return NULL;
}

static int fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    return 2;
}

static void add_header(struct http_request *request, const char *text, bool secret)
{
    struct str value = str_of(text);
    struct str name = str_cut(&value, ':');
    (void)http_add(request, name, value, secret);
}

static bool parse(int argc, char **argv, struct arguments *a)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(name, "--", 2) != 0) {
            *(a->url == NULL ? &a->url : &a->target) = name;
            continue;
        }
        i++;
        if (strcmp(name, "--post") == 0) {
            a->post = strtoul(value, NULL, 10);
            a->has_post = true;
        } else if (strcmp(name, "--times") == 0) {
            a->times = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(name, "--pause-ms") == 0) {
            a->pause_ms = strtoul(value, NULL, 10);
        } else if (strcmp(name, "--deadline-ms") == 0) {
            a->deadline_ms = strtoul(value, NULL, 10);
        } else if (strcmp(name, "--stall-ms") == 0) {
            a->stall_ms = strtoul(value, NULL, 10);
        } else if (strcmp(name, "--wake-after-ms") == 0) {
            a->wake_after_ms = strtoul(value, NULL, 10);
        } else if (strcmp(name, "--ca") == 0) {
            a->ca = value;
        } else if (strcmp(name, "--header") == 0 || strcmp(name, "--secret") == 0) {
            add_header(&a->request, value, name[2] == 's');
        } else {
            return false;
        }
    }
    return a->url != NULL;
}

static struct str from_environment(void *context, const char *name)
{
    (void)context;
    return str_of(getenv(name));
}

static bool add_authorities(struct trust *trust, const char *path)
{
    static char pem[1 << 20];
    FILE *file = fopen(path, "r");
    size_t len = file == NULL ? 0 : fread(pem, 1, sizeof pem, file);
    if (file != NULL) {
        fclose(file);
    }
    return trust_add_pem(trust, (struct str){pem, len}, path) > 0;
}

static void print_text(const char *name, const char *text)
{
    printf(", \"%s\": \"", name);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*text < ' ' ? '?' : *text);
    }
    putchar('"');
}

static void print(const struct client *client, bool ok, const struct http_response *answer,
                  const struct err *err, uint64_t took_ns)
{
    printf("{\"ok\": %d, \"status\": %u, \"whole\": %d, \"keeps\": %d, \"sent\": %d, \"sent_all\": %d, "
           "\"began\": %d",
           ok, answer->status, answer->whole, answer->keeps, answer->sent, answer->sent_all,
           answer->began);
    printf(", \"retry_after_s\": %.3f, \"body_len\": %zu, \"ms\": %.1f, \"connects\": %u, "
           "\"resumptions\": %u, \"config\": %d, \"errno\": %d",
           (double)answer->retry_after_ns / NS_PER_S, answer->body.len, (double)took_ns / NS_PER_MS,
           (unsigned)client->connects, (unsigned)client->resumptions, client->config, err->number);
    print_text("reason", answer->reason);
    print_text("location", answer->location);
    print_text("error", err->text);
    char body[61];
    snprintf(body, sizeof body, "%.*s", (int)(answer->body.len < 60 ? answer->body.len : 60),
             answer->body.len > 0 ? answer->body.ptr : "");
    print_text("body", body);
    puts("}");
    fflush(stdout);
}

static void send_once(struct client *client, struct arguments *a, const struct url *url)
{
    struct http_response answer;
    struct err err = {0};
    uint64_t begin = clock_mono_ns();
    bool ok = client_send(client, url, &a->request, begin + a->deadline_ms * NS_PER_MS, &answer,
                          &err);
    print(client, ok, &answer, &err, clock_mono_ns() - begin);
    http_response_release(&answer);
}

static int send_all(struct arguments *a, const struct url *url, struct net *net,
                    const struct trust *trust)
{
    struct client client;
    struct client_settings settings = {
        .dialer = net_dialer(net),
        .clock = clock_system(),
        .random = net_random,
        .tls = {.trust = trust, .verify = true},
        .stall_ns = a->stall_ms * NS_PER_MS,
    };
    proxies_from(&settings.proxies, from_environment, NULL);
    client_init(&client, &settings);
    for (unsigned i = 0; i < a->times; i++) {
        if (i > 0) {
            clock_sleep_ns(a->pause_ms * NS_PER_MS);
        }
        send_once(&client, a, url);
    }
    client_release(&client);
    return 0;
}

static int run(struct arguments *a)
{
    static struct trust trust;
    struct err err = {0};
    struct url url;
    struct alarm alarm = {waker_open(), a->wake_after_ms};
    pthread_t thread;
    struct net *net = net_new(alarm.waker, &err);
    if (net == NULL || !url_parse(&url, str_of(a->url), 80, &err)) {
        return fail(err.text);
    }
    if (a->ca != NULL && !add_authorities(&trust, a->ca)) {
        return fail("no authority was taken");
    }
    if (a->wake_after_ms != 0) {
        pthread_create(&thread, NULL, sound, &alarm);
    }
    char *body = calloc(1, a->post + 1);
    for (size_t i = 0; i < a->post; i++) {
        body[i] = (char)('a' + i % 26);
    }
    a->request.method = a->has_post ? "POST" : "GET";
    a->request.target = str_of(a->target);
    a->request.body = (struct str){body, a->post};
    int status = send_all(a, &url, net, &trust);
    net_free(net);
    free(body);
    return status;
}

int main(int argc, char **argv)
{
    struct arguments a = {.times = 1, .deadline_ms = 10000, .target = ""};
    if (argc == 2 && strcmp(argv[1], "--own-address") == 0) {
        char ip[64], mac[24];
        net_own_address(ip, mac);
        printf("%s\n%s\n", ip, mac);
        return 0;
    }
    return parse(argc, argv, &a) ? run(&a) : fail("http_send [OPTIONS] URL [TARGET]");
}
