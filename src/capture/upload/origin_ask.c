/* The thread that asks the platform's metadata services (ECS, EC2, GCP, Azure) where we run. What
 * they respond joins the origin as soon as it is there; every request is bounded in time and size,
 * and nothing waits for it. */
#include "capture/upload/origin_ask.h"

#include "base/time.h"
#include "deliver/client.h"
#include "origin/platform.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/file.h"
#include "os/net.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    ASK_MAX_MS = 2000,
    CONNECT_MAX_MS = 1000,
    RESPONSE_MAX_BYTES = 256 * 1024,
    TEXTS_MAX_BYTES = 64 * 1024,
    FILE_MAX_BYTES = 4096,
    ADDRESSES_MAX = 2,
    STACK_BYTES = 256 << 10,
};

struct question {
    const struct platform *platform;
    char addresses[ADDRESSES_MAX][PLATFORM_ADDRESS_MAX];
    size_t address_count;
};

/* What origin_now may have given; the newest first. */
struct learnt {
    struct learnt *before;
    struct origin origin;
};

struct origin_ask {
    struct origin_here *here;
    bool confined; /* os/confine.h */
    struct question questions[PLATFORM_COUNT];
    size_t count;
    struct facts facts;
    struct arena texts;
    struct learnt *learnt;
    struct net *net;
    struct client client;
    char token[PLATFORM_TOKEN_MAX + 1];
    uint64_t deadline_ns;
    int cut; /* a waker that ends all waits */
    pthread_t thread;
};

/* ---- one request ---- */

static bool dial_soon(void *context, struct str host, uint16_t port, uint64_t deadline_ns,
                      struct stream *out, struct err *err)
{
    struct origin_ask *a = context;
    struct dialer dialer = net_dialer(a->net);
    uint64_t soon_ns = clock_mono_ns() + CONNECT_MAX_MS * NS_PER_MS;
    return dialer.dial(dialer.context, host, port, soon_ns < deadline_ns ? soon_ns : deadline_ns,
                       out, err);
}

static void add_header(struct http_request *request, struct platform_header header)
{
    if (header.name != NULL) {
        (void)http_add(request, str_of(header.name), str_of(header.value), false);
    }
}

/* False: no response came. */
static bool fetch(struct origin_ask *a, const struct platform *platform, const struct url *url,
                  const struct platform_request *wanted, struct http_response *response)
{
    struct http_request request = {
        .method = wanted->method != NULL ? wanted->method : "GET",
        .target = str_of(wanted->target),
        .watch = platform->proof.name,
        .most_kept = RESPONSE_MAX_BYTES,
    };
    add_header(&request, platform->header);
    add_header(&request, wanted->header);
    if (a->token[0] != '\0') {
        (void)http_add(&request, str_of(platform->token_name), str_of(a->token), true);
    }
    return client_send(&a->client, url, &request, a->deadline_ns, response, NULL);
}

static bool is_proven(const struct platform *platform, const struct http_response *response)
{
    return platform->proof.name == NULL || strcmp(response->watched, platform->proof.value) == 0;
}

static bool is_whole(const struct http_response *response)
{
    return response->status == 200 && response->whole && !response->body.failed &&
           response->body.len < RESPONSE_MAX_BYTES;
}

static bool take_token(struct origin_ask *a, struct str body)
{
    struct str token = facts_line(body);
    if (token.len == 0 || token.len > PLATFORM_TOKEN_MAX) {
        return false;
    }
    memcpy(a->token, token.ptr, token.len);
    a->token[token.len] = '\0';
    return true;
}

static bool take(struct origin_ask *a, const struct platform_request *wanted, struct str body)
{
    return wanted->take != NULL ? wanted->take(&a->facts, body) : take_token(a, body);
}

/* ---- one platform ---- */

/* False: nobody was reached there. */
static bool ask_at(struct origin_ask *a, const struct platform *platform, const char *address)
{
    struct url url;
    uint64_t connects = a->client.connects;
    if (!url_parse(&url, str_of(address), 80, NULL)) {
        return false;
    }
    for (size_t i = 0; i < platform->request_count; i++) {
        const struct platform_request *wanted = &platform->requests[i];
        struct http_response response = {0};
        bool came = fetch(a, platform, &url, wanted, &response);
        bool proven = came && is_proven(platform, &response);
        bool good = proven && is_whole(&response) && take(a, wanted, buf_slice(&response.body));
        http_response_release(&response);
        if (!proven || (!good && wanted->is_needed)) {
            break;
        }
    }
    return a->client.connects > connects;
}

static void forget_token(struct origin_ask *a)
{
    explicit_bzero(a->token, sizeof a->token);
}

static void ask(struct origin_ask *a, const struct question *question)
{
    const struct platform *platform = question->platform;
    for (size_t i = 0; i < question->address_count; i++) {
        if (ask_at(a, platform, question->addresses[i])) {
            break;
        }
    }
    forget_token(a);
    if (platform->finish != NULL) {
        platform->finish(&a->facts);
    }
}

/* ---- the thread ---- */

static void publish(struct origin_ask *a)
{
    struct learnt *fresh = malloc(sizeof *fresh);
    if (fresh == NULL) {
        return;
    }
    fresh->before = a->learnt;
    fresh->origin = a->here->facts;
    origin_place(a->here, &a->facts, &fresh->origin);
    a->learnt = fresh;
    __atomic_store_n(&a->here->now, &fresh->origin, __ATOMIC_RELEASE);
}

static void *ask_main(void *context)
{
    struct origin_ask *a = context;
    if (a->confined) {
        confine_sender(NULL);
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct platform *platform = a->questions[i].platform;
        size_t known = a->facts.count;
        if (platform->is_needless == NULL || !platform->is_needless(&a->facts)) {
            ask(a, &a->questions[i]);
        }
        if (a->facts.count > known) {
            publish(a);
        }
    }
    return NULL;
}

/* ---- who is asked ---- */

/* Instances of EC2 that run under Xen say so there, and not in what their firmware tells. */
static struct str read_vendor(struct buf *text)
{
    buf_init(text, FILE_MAX_BYTES);
    if (file_read_all("/sys/hypervisor/uuid", FILE_MAX_BYTES, text, NULL) &&
        str_starts(buf_slice(text), STR("ec2"))) {
        return STR("Amazon EC2");
    }
    buf_release(text);
    buf_init(text, FILE_MAX_BYTES);
    (void)file_read_all("/sys/class/dmi/id/sys_vendor", FILE_MAX_BYTES, text, NULL);
    return buf_slice(text);
}

static void add_question(struct origin_ask *a, const struct platform *platform,
                         const struct environment *environment)
{
    struct question *question = &a->questions[a->count];
    *question = (struct question){.platform = platform};
    for (size_t i = 0; i < ADDRESSES_MAX; i++) {
        size_t at = question->address_count;
        question->address_count +=
            platform_address(platform, environment, i, question->addresses[at]);
    }
    a->count += question->address_count > 0;
}

static void find_questions(struct origin_ask *a, const struct environment *environment)
{
    struct buf text;
    const struct signs signs = {*environment, read_vendor(&text)};
    for (size_t i = 0; i < PLATFORM_COUNT; i++) {
        if (platform_is_here(&platforms[i], &signs)) {
            add_question(a, &platforms[i], environment);
        }
    }
    buf_release(&text);
}

/* ---- start and end ---- */

static void release(struct origin_ask *a)
{
    if (a->net != NULL) {
        client_release(&a->client);
        net_free(a->net);
    }
    waker_close(a->cut);
    while (a->learnt != NULL) {
        struct learnt *before = a->learnt->before;
        free(a->learnt);
        a->learnt = before;
    }
    arena_release(&a->texts);
    free(a);
}

/* No proxies, no certificates: nothing here is for them. */
static bool begin_client(struct origin_ask *a)
{
    a->cut = waker_open();
    a->net = a->cut < 0 ? NULL : net_new(a->cut, NULL);
    if (a->net == NULL) {
        return false;
    }
    const struct client_settings settings = {
        .dialer = {dial_soon, a},
        .clock = clock_system(),
        .random = net_random,
        .stays = true,
    };
    client_init(&a->client, &settings);
    a->deadline_ns = clock_mono_ns() + ASK_MAX_MS * NS_PER_MS;
    return true;
}

static bool start_thread(struct origin_ask *a)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int number = pthread_create(&a->thread, &attr, ask_main, a);
    pthread_attr_destroy(&attr);
    return number == 0;
}

void origin_ask_start(struct origin_here *here, bool confined,
                      struct str (*get)(void *context, const char *name), void *context)
{
    const struct environment environment = {get, context};
    struct origin_ask *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return;
    }
    a->here = here;
    a->confined = confined;
    a->cut = -1;
    arena_init(&a->texts, TEXTS_MAX_BYTES);
    a->facts = here->place;
    a->facts.texts = &a->texts;
    find_questions(a, &environment);
    if (a->count == 0 || !begin_client(a) || !start_thread(a)) {
        release(a);
        return;
    }
    here->ask = a;
}

void origin_ask_stop(struct origin_here *here)
{
    struct origin_ask *a = here->ask;
    if (a != NULL) {
        waker_set(a->cut);
        pthread_join(a->thread, NULL);
        here->now = NULL;
        here->ask = NULL;
        release(a);
    }
}
