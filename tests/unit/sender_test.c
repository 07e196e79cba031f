/* What the options and the environment mean for a back end, before anything is sent. */
#include "test.h"

#include "base/time.h"
#include "capture/upload/tags.h"
#include "capture/upload/sender_private.h"
#include "deliver/backend.h"

#include "os/clock.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct origin_here nowhere;

static struct settings settings_with(const char *host, const char *token)
{
    return (struct settings){.upload = {.server_host = host, .token = token, .verify = true},
                             .budget.memory_bytes = 64 << 20};
}

static struct sender *made(const struct settings *settings, const char *name, bool alone,
                           struct err *err)
{
    *err = (struct err){0};
    return sender_new(settings, backend_by_name(str_of(name)), alone, &nowhere, -1, err);
}

/* The address that a back end gets of an option. */
static void address_is(const char *option, const char *name, bool alone, const char *expected)
{
    struct settings settings = settings_with(option, NULL);
    struct err err;
    struct sender *sender = made(&settings, name, alone, &err);
    CHECK_TEXT(sender != NULL ? sender->address : err.text, expected);
    sender_free(sender);
}

static void addresses_of_several_are_one_option(void)
{
    static const char both[] = "http=http://a/x?y=1,2,pyroscope=http://b:4040";
    address_is("http://a", "http", true, "http://a");
    address_is(both, "http", false, "http://a/x?y=1,2");
    address_is(both, "pyroscope", false, "http://b:4040");
    address_is("http://a,pyroscope=http://b", "http", false, "http://a");
    address_is("http://a,pyroscope=http://b", "pyroscope", false, "http://b");
    address_is("pyroscope=http://b", "http", false,
               "http needs an address: give --server-host http=URL");
    address_is(NULL, "http", true, "http needs an address: give --server-host URL");
    address_is(NULL, "pyroscope", true, "http://localhost:4040");
    address_is("http=http://a,datadog=/run/apm.socket", "datadog", false, "unix:///run/apm.socket");
}

static void token_is(const char *option, const char *name, bool alone, const char *expected)
{
    struct settings settings = settings_with("http://a", option);
    struct err err;
    struct sender *sender = made(&settings, name, alone, &err);
    CHECK(sender != NULL);
    if (sender != NULL) {
        CHECK_INT(sender->context.token.len, strlen(expected));
        CHECK(expected[0] == '\0' || strcmp(sender->context.token.ptr, expected) == 0);
    }
    sender_free(sender);
}

static void a_token_is_shown_to_its_back_end_alone(void)
{
    token_is("secret", "http", true, "secret");
    token_is("secret", "http", false, ""); /* whose is it? */
    token_is("http=one,two==,pyroscope=user:pass", "http", false, "one,two==");
    token_is("http=one,two==,pyroscope=user:pass", "pyroscope", false, "user:pass");
    token_is("studio=one", "http", true, "");
}

static void variables_of_a_back_end_are_its_own(void)
{
    setenv("PYROSCOPE_SERVER_ADDRESS", "http://own:1", 1);
    setenv("PYROSCOPE_AUTH_TOKEN", "own-secret", 1);
    struct settings settings = settings_with(NULL, NULL);
    struct err err;
    struct sender *sender = made(&settings, "pyroscope", false, &err);
    CHECK_TEXT(sender->address, "http://own:1");
    CHECK_STR(sender->context.token, "own-secret");
    sender_free(sender);
    CHECK(made(&settings, "http", true, &err) == NULL);
    const struct backend *rows[BACKENDS_MAX];
    size_t count;
    CHECK(sender_choose(&settings.upload, rows, &count, &err));
    CHECK_INT(count, 1);
    CHECK_TEXT(rows[0]->name, "pyroscope");
    sender_hide_secrets(&settings.upload);
    CHECK(strstr(getenv("PYROSCOPE_AUTH_TOKEN"), "secret") == NULL);
    unsetenv("PYROSCOPE_SERVER_ADDRESS");
    unsetenv("PYROSCOPE_AUTH_TOKEN");
    CHECK(sender_choose(&settings.upload, rows, &count, &err));
    CHECK_TEXT(rows[0]->name, "studio");
}

static const char *chosen(const char *variable, const char *value, const char *host,
                          const char *token)
{
    struct settings settings = settings_with(host, token);
    const struct backend *rows[BACKENDS_MAX];
    size_t count;
    struct err err;
    setenv(variable, value, 1);
    CHECK(sender_choose(&settings.upload, rows, &count, &err));
    unsetenv(variable);
    return rows[0]->name;
}

/* A tracer's variables are often set for all there is: what was given to us is not for Datadog
 * because of them. */
static void variables_of_the_program_do_not_take_what_was_given_to_us(void)
{
    CHECK_TEXT(chosen("DD_AGENT_HOST", "agent", NULL, NULL), "datadog");
    CHECK_TEXT(chosen("DD_AGENT_HOST", "agent", "http://studio", NULL), "studio");
    CHECK_TEXT(chosen("DD_API_KEY", "k", NULL, "token"), "studio");
    CHECK_TEXT(chosen("PYROSCOPE_SERVER_ADDRESS", "http://p", "http://q", NULL), "pyroscope");
    CHECK_TEXT(chosen("DD_SERVICE", "shop", NULL, NULL), "studio");
}

static void an_agent_gets_no_key(void)
{
    struct settings settings = settings_with(NULL, NULL);
    struct err err;
    setenv("DD_API_KEY", "own-secret", 1);
    setenv("DD_SITE", "datadoghq.eu", 1);
    setenv("DD_PROFILING_UPLOAD_TIMEOUT", "1m30s", 1);
    settings.upload.agent_host = "agent";
    settings.upload.timeout_ns = 120;
    struct sender *sender = made(&settings, "datadog", true, &err);
    CHECK_TEXT(sender->address, "http://agent:8126");
    CHECK(!sender->context.agentless && sender->context.token.len == 0);
    CHECK_INT(sender_timeout_ns(sender), UINT64_C(90000000000));
    sender_free(sender);
    settings.upload.agentless = settings.upload.timeout_given = true;
    sender = made(&settings, "datadog", true, &err);
    CHECK_TEXT(sender->address, "https://intake.profile.datadoghq.eu");
    CHECK_STR(sender->context.token, "own-secret");
    CHECK(sender->context.url.tls && sender->context.url.port == 443);
    CHECK_INT(sender_timeout_ns(sender), 120);
    sender_free(sender);
    sender_hide_secrets(&settings.upload);
    CHECK(strstr(getenv("DD_API_KEY"), "secret") == NULL);
    unsetenv("DD_API_KEY");
    CHECK(made(&settings, "datadog", true, &err) == NULL);
    CHECK(strstr(err.text, "datadog needs a token") != NULL);
    setenv("DD_SITE", "a/b", 1);
    CHECK(made(&settings, "datadog", true, &err) == NULL);
    CHECK(strstr(err.text, "DD_SITE is not a host name") != NULL);
    unsetenv("DD_SITE");
    unsetenv("DD_PROFILING_UPLOAD_TIMEOUT");
}

static void variables_of_opentelemetry_are_heeded(void)
{
    setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all/base", 1);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=SECRET%2D1, x=", 1);
    setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1500", 1);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1);
    struct settings settings = settings_with(NULL, NULL);
    struct err err;
    CHECK(made(&settings, "otlp", true, &err) == NULL); /* a header of no value */
    CHECK(strstr(err.text, "SECRET") == NULL && strstr(err.text, "OTEL_EXPORTER_OTLP_HEADERS"));
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=SECRET%2D1,x=a%2", 1);
    struct sender *sender = made(&settings, "otlp", true, &err);
    CHECK_TEXT(sender->address, "http://all/base");
    CHECK(!sender->context.whole_path);
    CHECK_INT(sender->context.header_count, 2);
    CHECK_STR(sender->context.headers[0].value, "SECRET-1");
    CHECK_STR(sender->context.headers[1].value, "a%2");
    CHECK_INT(sender->context.timeout_ns, 1500000000);
    CHECK(strstr(sender_warning(sender, 0), "grpc") != NULL && sender_warning(sender, 1) == NULL);
    sender_free(sender);
    setenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://mine/here", 1);
    sender = made(&settings, "otlp", true, &err);
    CHECK_TEXT(sender->address, "http://mine/here");
    CHECK(sender->context.whole_path);
    sender_free(sender);
    sender_hide_secrets(&settings.upload);
    CHECK(strstr(getenv("OTEL_EXPORTER_OTLP_HEADERS"), "SECRET") == NULL);
    unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
    unsetenv("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT");
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
    unsetenv("OTEL_EXPORTER_OTLP_TIMEOUT");
    unsetenv("OTEL_EXPORTER_OTLP_PROTOCOL");
}

static void without_facts_the_host_is_named_where_it_must_be(void)
{
    static const struct {
        const char *name;
        bool names_host;
    } rows[] = {{"studio", true}, {"pyroscope", false}, {"http", true}};
    const struct origin_here here = {.facts = {.service = STR("shop"), .hostname = STR("web-1")}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned metadata = 0; metadata < 2; metadata++) {
            struct settings settings = settings_with("http://a", "token");
            struct err err;
            settings.origin.metadata = metadata;
            struct sender *sender = sender_new(&settings, backend_by_name(str_of(rows[i].name)),
                                               true, &here, -1, &err);
            CHECK_STR(sender->context.origin->hostname, metadata || rows[i].names_host ? "web-1" : "");
            CHECK_STR(sender->context.origin->service, "shop");
            sender_free(sender);
        }
    }
}

static void exposure_is(const char *host, const char *token, const char *header, const char *name, const char *expected)
{
    struct settings settings = settings_with(host, token);
    struct err err;
    if (header != NULL) {
        settings.upload.headers = (struct text_list){{header}, 1};
    }
    struct sender *sender = made(&settings, name, true, &err);
    const char *said = sender != NULL ? sender_exposure(sender) : err.text;
    CHECK_TEXT(said != NULL ? said : "", expected);
    sender_free(sender);
}

static void a_token_that_anyone_can_read_is_a_warning(void)
{
    static const char readable[] = "the token is sent to another machine over plain http, where anyone in between can "
                                   "read it: give an https:// address";
    static const char bare[] = "the address has no scheme, which means http:// here: write it, or https:// if that is "
                               "meant";
    static const char both[] = "the address has no scheme, which means http:// here: the token is sent to another "
                               "machine, where anyone in between can read it: give an https:// address";
    exposure_is("http://a", "secret", NULL, "http", readable);
    exposure_is("http://10.0.0.1:4040", "secret", NULL, "pyroscope", readable);
    exposure_is("http://a", NULL, "Authorization: Basic x", "http", readable);
    exposure_is("http://a", NULL, "x-api-KEY: x", "pyroscope", readable);
    exposure_is("a:8080", "secret", NULL, "http", both);
    exposure_is("a:8080", NULL, NULL, "http", bare);
    exposure_is("a:4040/x", NULL, NULL, "pyroscope", bare);
    exposure_is("dd:8126", NULL, NULL, "datadog", bare);
    static const char *const safe[] = {"https://a", "a", "a:8443", "http://localhost:1", "localhost:8080", "127.9.9.9",
                                       "http://[::1]:80", "unix:/run/x", "unix:@x"};
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++)
        exposure_is(safe[i], "secret", "X-Token: x", "http", "");
    exposure_is("http://a", NULL, "X-Scope-OrgID: a", "http", "");
    exposure_is("http://dd:8126", "secret", NULL, "datadog", ""); /* an agent is not sent it */
    struct settings settings = settings_with("http://a", NULL);
    struct err err;
    settings.upload.token_file = "/not/there";
    struct sender *sender = made(&settings, "http", true, &err);
    CHECK_TEXT(sender_exposure(sender), readable);
    sender_free(sender);
}

#define UNSENT "--header is not sent: of several back ends http alone gets it"

static void what_breaks_a_header_is_refused(void)
{
    struct settings settings = settings_with("http://a", "one\r\nX: y");
    struct err err;
    CHECK(made(&settings, "http", true, &err) == NULL);
    CHECK(strstr(err.text, "control character") != NULL && strstr(err.text, "one") == NULL);
    static const char *const wrong[] = {"NoColon", ": x", "X:", "X Y: z", "X: a\nb"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        settings = settings_with("http://a", NULL);
        settings.upload.headers = (struct text_list){{wrong[i]}, 1};
        CHECK(made(&settings, "http", true, &err) == NULL);
        CHECK(strstr(err.text, "--header expects NAME:VALUE") != NULL);
    }
    settings.upload.headers = (struct text_list){{"X-Scope-OrgID: a:b"}, 1};
    struct sender *sender = made(&settings, "http", true, &err);
    CHECK(sender != NULL && sender->context.header_count == 1);
    CHECK_STR(sender->context.headers[0].name, "X-Scope-OrgID");
    CHECK_STR(sender->context.headers[0].value, "a:b");
    sender_free(sender);
    sender = made(&settings, "pyroscope", false, &err);
    CHECK(sender != NULL && sender->context.header_count == 0);
    CHECK_TEXT(sender_warning(sender, 0), UNSENT);
    CHECK(sender_warning(sender, 1) == NULL);
    sender_free(sender);
    settings.upload.backends = backend_bit("http") | backend_bit("pyroscope"); /* so it is meant for that one */
    sender = made(&settings, "pyroscope", false, &err);
    CHECK(sender_warning(sender, 0) == NULL);
    sender_free(sender);
}

static void warnings_are(const struct settings *settings, const char *name, const char *first, const char *second)
{
    struct err err;
    struct sender *sender = made(settings, name, false, &err);
    CHECK(sender != NULL);
    CHECK_TEXT(sender_warning(sender, 0), first);
    CHECK_TEXT(sender_warning(sender, 1), second);
    CHECK(sender_warning(sender, 2) == NULL);
    sender_free(sender);
}

static void no_warning_takes_the_place_of_another(void)
{
    struct settings settings = settings_with("studio=http://a,otlp=http://b:4317", "studio=secret");
    settings.upload.headers = (struct text_list){{"X-Scope-OrgID: a"}, 1};
    settings.sampling.wall = true;
    warnings_are(&settings, "studio", UNSENT,
                 "it takes CPU time alone; off_cpu, wall and other events are in pprof files (-o)");
    static const char port[] = "port 4317 is usually gRPC's; profiles go by HTTP: give port 4318 of the same server";
    warnings_are(&settings, "otlp", UNSENT, port);
    setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 1); /* which the port says already */
    warnings_are(&settings, "otlp", UNSENT, port);
    unsetenv("OTEL_EXPORTER_OTLP_PROTOCOL");
}

/* Sixteen are the most, from the command line and from variables together. */
static void too_many_headers_of_opentelemetry_are_told_from_wrong_ones(void)
{
    struct settings settings = settings_with("http://a", NULL);
    struct err err;
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,"
                                         "o=1,p=1", 1);
    struct sender *sender = made(&settings, "otlp", true, &err);
    CHECK(sender != NULL && sender->context.header_count == 16);
    sender_free(sender);
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,"
                                         "o=1,p=1,q=1", 1);
    CHECK(made(&settings, "otlp", true, &err) == NULL);
    CHECK_TEXT(err.text, "OTEL_EXPORTER_OTLP_HEADERS expects NAME=VALUE,NAME=VALUE, at most 16 of them");
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
}

/* What was said of the tags when they were read. */
static struct buf said;

static void read_tags(struct origin *facts, const struct upload_settings *upload)
{
    buf_release(&said);
    buf_init(&said, SENDER_OMISSIONS_MAX);
    tags_add(facts, upload, &said);
}

static void tags_are_read_in_both_spellings(void)
{
    struct origin facts = {0};
    const struct upload_settings upload = {
        .environment = "staging", .service_version = "1.4",
        .tags = "team:pay, region=eu-1,url:http://x,none,:empty,k:"};
    read_tags(&facts, &upload);
    CHECK_TEXT(buf_cstr(&said), "--tags: \"none\" and 2 more are not sent: a tag is KEY:VALUE, and "
                                "neither of them is empty\n");
    CHECK_INT(facts.tag_count, 5);
    CHECK_STR(facts.tags[0].name, "env");
    CHECK_STR(facts.tags[1].value, "1.4");
    CHECK_STR(facts.tags[2].name, "team");
    CHECK_STR(facts.tags[3].name, "region");
    CHECK_STR(facts.tags[3].value, "eu-1");
    CHECK_STR(facts.tags[4].value, "http://x");
}

static void tags_have_blanks_between_where_there_is_no_comma(void)
{
    struct origin facts = {0};
    read_tags(&facts, &(struct upload_settings){.tags = " team:pay  region=eu "});
    CHECK_INT(said.len, 0);
    CHECK_INT(facts.tag_count, 2);
    CHECK_STR(facts.tags[0].value, "pay");
    CHECK_STR(facts.tags[1].name, "region");
    facts.tag_count = 0;
    read_tags(&facts, &(struct upload_settings){.tags = "note:two words,k:v"});
    read_tags(&facts, &(struct upload_settings){.tags = "note:two words"});
    CHECK_INT(facts.tag_count, 3);
    CHECK_STR(facts.tags[0].value, "two words");
    CHECK_STR(facts.tags[2].value, "two words");
    buf_release(&said);
}

/* 33 tags and the environment; a blank behind a comma is no tag. */
static void a_tag_that_is_not_kept_is_said(void)
{
    struct origin facts = {0};
    read_tags(&facts, &(struct upload_settings){
        .environment = "prod", .service_version = " ",
        .tags = "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1,q:1,r:1,s:1,t:1,"
                "u:1,v:1,w:1,x:1,y:1,z:1,A:1,B:1,C:1,D:1,E:1,F:1,G:1, ,x\ny"});
    CHECK_INT(facts.tag_count, 32);
    CHECK_TEXT(buf_cstr(&said),
               "--tags: \"x?y\" is not sent: a tag is KEY:VALUE, and neither of them is empty\n"
               "--tags: \"F:1\" and 1 more are not sent: a run has at most 32 tags\n");
    buf_release(&said);
}

/* The sentences of a back end about these tags and facts. */
static const char *omissions_of(const char *name, const struct origin_here *here, bool tags)
{
    struct settings settings = settings_with("http://a", "token");
    struct err err;
    struct sender *sender =
        sender_new(&settings, backend_by_name(str_of(name)), true, here, -1, &err);
    buf_release(&said);
    buf_init(&said, SENDER_OMISSIONS_MAX);
    sender_omissions(sender, tags, &said);
    sender_free(sender);
    return buf_cstr(&said);
}

static void what_a_back_end_is_not_sent_is_said_for_each_reason(void)
{
    struct origin_here here = {.facts = {.service = STR("shop")}};
    struct origin *facts = &here.facts;
    static const char *const wrong[] = {"1:x", "2:x", "a\nb:x", "3:x", "4:x", "5:x", "6:x", "7:x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct str value = str_of(wrong[i]), name = str_cut(&value, ':');
        facts->tags[facts->tag_count++] = (struct fact){name, value};
    }
    CHECK_TEXT(omissions_of("datadog", &here, true),
               "datadog: the tags \"1:x\", \"2:x\", \"3:x\", \"4:x\", \"5:x\" and 2 more are not "
               "sent: a tag begins with a letter\n"
               "datadog: the tag \"a?b:x\" is not sent: a tag holds letters, digits and "
               "_ - : . / \\ alone\n");
    CHECK_TEXT(omissions_of("datadog", &here, false), "");
    CHECK_TEXT(omissions_of("studio", &here, true), "");
    CHECK_TEXT(omissions_of("otlp", &here, true), "");
    facts->tag_count = 0;
    for (unsigned i = 0; i < 20; i++) {
        static const char letters[] = "abcdefghijklmnopqrst";
        facts->resource[i] = (struct fact){{letters + i, 1}, STR("told")};
    }
    facts->resource_count = 20; /* the service's name is the first of twenty */
    CHECK_TEXT(omissions_of("otlp", &here, false),
               "otlp: the fact \"t\" is not sent: a profile has at most twenty attributes that say "
               "where it comes from; give fewer tags\n");
    CHECK_TEXT(omissions_of("otlp", &here, true), "");
    buf_release(&said);
}

/* ---- a set of profiles, to a server that says one status after the other ---- */

struct server {
    int fd;
    pthread_t thread;
    const unsigned *statuses; /* 0: it ends */
    char address[64], seen[1000]; /* the first line of each request */
};

static void serve_one(struct server *s, int fd, unsigned status)
{
    char all[4096], text[100];
    size_t len = 0, wanted = sizeof all - 1;
    while (len < wanted) {
        ssize_t got = read(fd, all + len, sizeof all - 1 - len);
        if (got <= 0) {
            return;
        }
        len += (size_t)got;
        all[len] = '\0';
        const char *body = strstr(all, "\r\n\r\n"), *length = strstr(all, "Content-Length: ");
        wanted = body == NULL ? wanted : (size_t)(body + 4 - all) + strtoul(length + 16, NULL, 10);
    }
    snprintf(s->seen + strlen(s->seen), sizeof s->seen - strlen(s->seen), "%.*s;", (int)strcspn(all, "\r"), all);
    int bytes = snprintf(text, sizeof text, "HTTP/1.1 %u S\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
    CHECK_INT(write(fd, text, (size_t)bytes), bytes);
    shutdown(fd, SHUT_WR);
}

static void *serve(void *context)
{
    struct server *s = context;
    for (; *s->statuses != 0; s->statuses++) {
        int fd = accept(s->fd, NULL, NULL);
        serve_one(s, fd, *s->statuses);
        close(fd);
    }
    return NULL;
}

static void begin(struct server *s, const unsigned *statuses)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    *s = (struct server){.fd = socket(AF_INET, SOCK_STREAM, 0), .statuses = statuses};
    CHECK(bind(s->fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(s->fd, 5) == 0);
    CHECK(getsockname(s->fd, (struct sockaddr *)&a, &len) == 0);
    snprintf(s->address, sizeof s->address, "http://127.0.0.1:%u/in", ntohs(a.sin_port));
    CHECK_INT(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void end(struct server *s, const char *seen)
{
    pthread_join(s->thread, NULL);
    CHECK_TEXT(s->seen, seen);
    close(s->fd);
}

static void set_is_sent(const unsigned *statuses, const enum verdict *verdicts, const char *seen)
{
    struct server server;
    struct sender_outcome out;
    struct err err;
    begin(&server, statuses);
    struct settings settings = settings_with(server.address, NULL);
    struct sender *sender = made(&settings, "http", true, &err);
    struct delivery delivery = {.format = STR("pprof"), .profile = STR("first"), .more_count = 2,
                                .more = {{STR("alloc_space"), STR("second")}, {STR("mutex"), STR("third")}}};
    CHECK(sender != NULL);
    for (; *verdicts != VERDICT_AGAIN; verdicts++) {
        sender_send(sender, &delivery, clock_mono_ns() + 10 * NS_PER_S, &out);
        CHECK_INT(out.verdict, *verdicts);
    }
    CHECK_INT(delivery.taken, 3);
    sender_free(sender);
    end(&server, seen);
}

static void what_was_taken_of_a_set_is_not_sent_again(void)
{
    static const enum verdict taken[] = {VERDICT_TAKEN, VERDICT_AGAIN};
    static const enum verdict later[] = {VERDICT_LATER, VERDICT_TAKEN, VERDICT_AGAIN};
    static const enum verdict refused[] = {VERDICT_REFUSED, VERDICT_AGAIN};
    set_is_sent((const unsigned[]){200, 200, 200, 0}, taken,
                "PUT /in HTTP/1.1;PUT /in.alloc_space HTTP/1.1;PUT /in.mutex HTTP/1.1;");
    set_is_sent((const unsigned[]){200, 503, 200, 200, 0}, later,
                "PUT /in HTTP/1.1;PUT /in.alloc_space HTTP/1.1;PUT /in.alloc_space HTTP/1.1;PUT /in.mutex HTTP/1.1;");
    set_is_sent((const unsigned[]){200, 400, 200, 0}, refused,
                "PUT /in HTTP/1.1;PUT /in.alloc_space HTTP/1.1;PUT /in.mutex HTTP/1.1;");
}

TESTS({"what was taken of a set is not sent again", what_was_taken_of_a_set_is_not_sent_again},
      {"addresses of several back ends are one option", addresses_of_several_are_one_option},
      {"a token is shown to its back end alone", a_token_is_shown_to_its_back_end_alone},
      {"variables of a back end are its own", variables_of_a_back_end_are_its_own},
      {"variables of the program do not take what was given to us",
       variables_of_the_program_do_not_take_what_was_given_to_us},
      {"an agent of Datadog's gets no key", an_agent_gets_no_key},
      {"variables of OpenTelemetry are heeded", variables_of_opentelemetry_are_heeded},
      {"without facts the host is named where it must be",
       without_facts_the_host_is_named_where_it_must_be},
      {"a token that anyone can read is a warning", a_token_that_anyone_can_read_is_a_warning},
      {"what breaks a header is refused", what_breaks_a_header_is_refused},
      {"no warning takes the place of another", no_warning_takes_the_place_of_another},
      {"too many headers of OpenTelemetry are told from wrong ones",
       too_many_headers_of_opentelemetry_are_told_from_wrong_ones},
      {"tags are read in both spellings", tags_are_read_in_both_spellings},
      {"tags have blanks between where there is no comma",
       tags_have_blanks_between_where_there_is_no_comma},
      {"a tag that is not kept is said", a_tag_that_is_not_kept_is_said},
      {"what a back end is not sent is said, once for each reason",
       what_a_back_end_is_not_sent_is_said_for_each_reason})
