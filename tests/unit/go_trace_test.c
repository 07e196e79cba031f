/*
 * An execution trace by a Go program's address, without a Go program: a server in memory that answers bit by bit, a
 * clock that goes on with each read, and what the program is told.
 */
#include "runtime/go/trace.h"
#include "base/time.h"
#include "memory_stream.h"
#include "test.h"

#define OK "HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n"

struct played {
    struct process_port port;
    struct memory_stream stream;
    struct go_endpoint at;
    struct go_trace trace;
    struct err err;
    uint64_t now_ns;
    const char *says;
    char *long_text;
    unsigned dialed;
    int refused_with; /* errno; 0: it is not */
};

static bool half_closed;

static void end_writing(void *context)
{
    (void)context;
    half_closed = true;
}

static uint64_t now_ns(void *context)
{
    return ((struct played *)context)->now_ns;
}

static bool dial(void *context, uint16_t port, bool is_v6, uint64_t deadline_ns, struct stream *out, struct err *err)
{
    struct played *p = context;
    (void)deadline_ns;
    CHECK(port == 81 && !is_v6);
    p->dialed++;
    if (p->refused_with != 0) {
        return err_set(err, ERR_NETWORK, p->refused_with, "refused");
    }
    memory_release(&p->stream);
    memory_init(&p->stream, p->says);
    p->stream.mono_ns = &p->now_ns;
    p->stream.tick_ns = NS_PER_MS;
    *out = memory_stream_of(&p->stream);
    out->end = end_writing;
    half_closed = false;
    return true;
}

static struct played *set_up(const char *says)
{
    struct played *p = calloc(1, sizeof *p);
    p->says = says;
    p->now_ns = 5 * NS_PER_S;
    p->at = (struct go_endpoint){.port = 81, .prefix = "/debug/pprof"};
    p->port = (struct process_port){.pid = 7, .now_ns = now_ns, .dial = dial, .context = p};
    memory_init(&p->stream, "");
    return p;
}

static void tear_down(struct played *p)
{
    go_trace_release(&p->trace);
    CHECK(p->stream.heard.len == 0 || p->stream.closed);
    memory_release(&p->stream);
    free(p->long_text);
    free(p);
}

static bool tick(struct played *p)
{
    p->err = (struct err){0};
    return go_trace_tick(&p->trace, &p->port, &p->at, &p->err);
}

static void check_asked(const struct played *p, const char *what)
{
    CHECK(str_starts(buf_slice(&p->stream.heard), str_of(what)));
}

/* So many bytes of a trace. */
static struct played *set_up_long(size_t len)
{
    struct played *p = set_up("");
    p->long_text = malloc(sizeof OK + len);
    memset(p->long_text, 'x', sizeof OK + len);
    memcpy(p->long_text, OK, sizeof OK - 1);
    p->long_text[sizeof OK - 1 + len] = '\0';
    p->says = p->long_text;
    return p;
}

static void whole(void)
{
    struct played *p = set_up(OK "go 1.26 trace...");
    CHECK(tick(p));
    check_asked(p, "GET /debug/pprof/trace?seconds=60.000 HTTP/1.0\r\n");
    CHECK_STR(buf_slice(&p->trace.body), "go 1.26 trace...");
    for (unsigned i = 0; i < 3; i++) { /* the next is a quarter of an hour later */
        CHECK(!tick(p) && p->err.kind == ERR_NONE);
    }
    CHECK_INT(p->dialed, 1);
    p->now_ns += GO_TRACE_PERIOD_S * NS_PER_S;
    CHECK(tick(p));
    CHECK_INT(p->dialed, 2);
    tear_down(p);
}

static void none_runs(void)
{
    struct played *p = set_up("");
    CHECK(!go_trace_end(&p->trace, &p->port, &p->err) && p->err.kind == ERR_NONE);
    CHECK_INT(p->dialed, 0);
    tear_down(p);
}

static void full(void)
{
    struct played *p = set_up_long(5 << 20);
    CHECK(tick(p));
    CHECK(half_closed); /* behind 4 MB; what it has at hand comes then */
    CHECK_INT(p->trace.body.len, 5 << 20);
    tear_down(p);
}

/* It ends by itself what it is asked for then. */
static void too_much(void)
{
    struct played *p = set_up_long(8 << 20);
    CHECK(!tick(p) && p->err.kind == ERR_NONE);
    unsigned took_ms = p->trace.ms;
    CHECK(half_closed && took_ms > 20 && took_ms < 600);
    CHECK(!tick(p) && p->trace.ms < took_ms);
    for (unsigned i = 0; i < 9 && p->err.kind == ERR_NONE; i++) {
        CHECK(!tick(p));
    }
    CHECK(strstr(p->err.text, "longer than 7 MB") != NULL);
    CHECK(p->dialed < 9 && p->trace.ms == 0 && p->trace.body.len == 0);
    CHECK(!tick(p) && p->err.kind == ERR_NONE);
    tear_down(p);
}

static void refusals(void)
{
    struct played *p = set_up("HTTP/1.0 400 Bad Request\r\n\r\nprofile duration exceeds server's WriteTimeout\n");
    CHECK(!tick(p) && p->err.kind == ERR_NONE);
    CHECK(!tick(p));
    check_asked(p, "GET /debug/pprof/trace?seconds=5.000 HTTP/1.0\r\n");
    CHECK(strstr(p->err.text, "it says 400: profile duration exceeds") != NULL);
    CHECK(!tick(p) && p->err.kind == ERR_NONE);
    CHECK_INT(p->dialed, 2);
    tear_down(p);
    p = set_up("HTTP/1.0 500 Internal Server Error\r\n\r\nCould not enable tracing: tracing is already enabled\n");
    CHECK(!tick(p));
    CHECK(strstr(p->err.text, "it says 500: Could not enable tracing: tracing is already enabled") != NULL);
    CHECK(!tick(p) && p->err.kind == ERR_NONE);
    CHECK_INT(p->dialed, 1);
    tear_down(p);
    p = set_up("");
    p->refused_with = ECONNREFUSED;
    CHECK(!tick(p) && p->err.number == ECONNREFUSED);
    CHECK(!tick(p) && p->err.kind == ERR_NONE);
    tear_down(p);
    p = set_up("");
    strcpy(p->at.socket, "/run/app.sock");
    CHECK(!tick(p) && strstr(p->err.text, "Unix socket") != NULL);
    CHECK(!tick(p) && p->err.kind == ERR_NONE && p->dialed == 0);
    tear_down(p);
}

/* One that was begun a second ago, of whose answer this is there, or will be. */
static struct played *set_up_running(const char *says)
{
    struct played *p = set_up(says);
    struct stream stream;
    CHECK(dial(p, 81, false, 0, &stream, &p->err));
    buf_add(&p->stream.heard, "GET", 3);
    p->trace = (struct go_trace){.stream = stream, .runs = true, .began_ns = p->now_ns, .next_ns = UINT64_MAX};
    buf_init(&p->trace.body, 1 << 20);
    p->now_ns += NS_PER_S;
    return p;
}

/* What the other side cut off is no trace. */
static void broken_off(void)
{
    struct played *p = set_up_running(OK "go 1.26 tra");
    p->stream.ends_with = ECONNRESET;
    p->stream.speaks_at = 1;
    CHECK(!tick(p) && p->err.number == ECONNRESET && !p->trace.runs && p->trace.body.len == 0);
    tear_down(p);
}

/* Silence is none: it goes on until the window is over, and then it is ended. */
static void running(void)
{
    struct played *p = set_up_running(OK "go 1.26 trace");
    CHECK(!tick(p) && p->err.kind == ERR_NONE && p->trace.runs && !half_closed);
    CHECK(go_trace_end(&p->trace, &p->port, &p->err) && half_closed);
    CHECK_STR(buf_slice(&p->trace.body), "go 1.26 trace");
    tear_down(p);
}

TESTS({"a trace is asked for once in its period", whole},
      {"where none runs none is ended", none_runs},
      {"a trace that has enough is ended in order", full},
      {"one that has too much is asked for anew, for less time", too_much},
      {"what a program refuses is told once", refusals},
      {"a trace that was broken off is none", broken_off},
      {"a trace that runs is ended with its window", running})
