/* One trace after the other, a period apart. What is read of it waits for nobody, but in its first second and at its
 * end: the thread that reads it speaks with all other processes, too. When it would have enough before it is read the
 * next time is told by how fast it has come so far. */
#include "runtime/go/trace.h"
#include "base/time.h"

#include <stdio.h>

enum {
    ASK_MS = 1000,
    FIRST_MS = 1000, /* in which it is read all the time, … */
    NEXT_MS = 500,   /* … and how long after that it is looked at the next time */
    END_MS = 3000,
    ENDED_BYTES = 4 << 20, /* of 5 MB: the program has more at hand */
    BODY_MAX = 7 << 20,    /* a window has to fit into an eighth of --max-memory, which is 64 MB */
    MOST_MS = 60000, SHORT_MS = 5000, LEAST_MS = 20,
    BAD_REQUEST = 400,
};

static uint64_t now_of(const struct process_port *port)
{
    return port->now_ns(port->context);
}

static bool begin(struct go_trace *t, const struct process_port *port, const struct go_endpoint *at, struct err *why)
{
    char what[48];
    unsigned ms = t->ms > 0 ? t->ms : MOST_MS;
    t->began_ns = now_of(port);
    t->next_ns = t->began_ns + GO_TRACE_PERIOD_S * NS_PER_S;
    if (at->socket[0] != '\0') {
        t->next_ns = UINT64_MAX;
        return err_set(why, ERR_UNSUPPORTED, 0, "it is not had through a Unix socket");
    }
    snprintf(what, sizeof what, "trace?seconds=%u.%03u", ms / 1000, ms % 1000);
    buf_release(&t->body);
    buf_init(&t->body, BODY_MAX);
    t->runs = go_endpoint_begin(port, at, what, &t->stream, ASK_MS, why);
    return t->runs;
}

/* Would it have too much when it is looked at the next time? */
static bool is_full(const struct go_trace *t, uint64_t now_ns)
{
    double ns = (double)(now_ns > t->began_ns ? now_ns - t->began_ns : 1);
    return (double)t->body.len * (1 + NEXT_MS * (double)NS_PER_MS / ns) >= ENDED_BYTES;
}

/* For how long it is asked again after this; 0: not before the next period. */
static unsigned again_ms(const struct go_trace *t, uint64_t took_ns, const struct err *cause)
{
    uint64_t took_ms = took_ns / NS_PER_MS, half_ms = (t->ms > 0 && t->ms < took_ms ? t->ms : took_ms) / 2;
    if (cause->number == BAD_REQUEST && t->ms == 0) {
        return SHORT_MS;
    }
    return cause->kind == ERR_LIMIT && half_ms >= LEAST_MS && half_ms < MOST_MS ? (unsigned)half_ms : 0;
}

bool go_trace_end(struct go_trace *t, const struct process_port *port, struct err *why)
{
    struct err cause = {0};
    uint64_t took_ns = now_of(port) - t->began_ns;
    if (!t->runs) {
        return false;
    }
    t->runs = false;
    if (t->stream.end != NULL) {
        t->stream.end(t->stream.context);
    }
    bool good = go_endpoint_rest(port, &t->stream, &t->body, END_MS, &cause);
    t->ms = good ? 0 : again_ms(t, took_ns, &cause);
    if (t->ms > 0) {
        t->next_ns = 0;
    } else if (!good) {
        *why = cause;
    }
    if (!good) {
        buf_release(&t->body);
    }
    return good;
}

bool go_trace_tick(struct go_trace *t, const struct process_port *port, const struct go_endpoint *at, struct err *why)
{
    bool is_first = !t->runs;
    if (is_first && (now_of(port) < t->next_ns || !begin(t, port, at, why))) {
        return false;
    }
    struct err cause = {0};
    bool goes_on = go_endpoint_more(port, &t->stream, &t->body, ENDED_BYTES, is_first ? FIRST_MS : 0, &cause);
    if (cause.kind != ERR_NONE) {
        go_trace_release(t);
        *why = cause;
        return false;
    }
    return (!goes_on || is_full(t, now_of(port))) && go_trace_end(t, port, why);
}

void go_trace_release(struct go_trace *t)
{
    if (t->runs) {
        t->stream.close(t->stream.context);
    }
    t->runs = false;
    buf_release(&t->body);
}
