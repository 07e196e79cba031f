/* A stream with limits in time: each request has a deadline, and a peer that neither reads nor
 * writes for a while is given up before it. It stands between the client and the socket or TLS
 * session. */
#include "deliver/paced.h"
#include "base/time.h"

#include <errno.h>
#include <stdlib.h>

/* How long a write that is stuck goes without a look at what may be read. */
#define LOOK_NS (100 * NS_PER_MS)

struct paced {
    struct stream under;
    struct clock clock;
    uint64_t stall_ns;
};

static uint64_t now_of(const struct paced *p)
{
    return p->clock.mono_ns(p->clock.context);
}

static ptrdiff_t too_late(struct err *err)
{
    (void)err_set(err, ERR_NETWORK, ETIMEDOUT, "the time limit was reached");
    return -1;
}

static ptrdiff_t stalled(const struct paced *p, const char *what, struct err *err)
{
    (void)err_set(err, ERR_NETWORK, ETIMEDOUT, "%s for %.3g s", what,
                  (double)p->stall_ns / (double)NS_PER_S);
    return -1;
}

static ptrdiff_t pass_on(const struct err *why, struct err *err)
{
    if (err != NULL) {
        *err = *why;
    }
    return -1;
}

static ptrdiff_t paced_read(void *context, void *to, size_t len, uint64_t deadline_ns,
                            struct err *err)
{
    struct paced *p = context;
    struct err why = {0};
    uint64_t now = now_of(p), until = time_earlier(deadline_ns, now + p->stall_ns);
    if (now >= deadline_ns) {
        return too_late(err);
    }
    ptrdiff_t got = p->under.read(p->under.context, to, len, until, &why);
    if (got >= 0) {
        return got;
    }
    if (why.number == ETIMEDOUT) {
        return until == deadline_ns ? too_late(err) : stalled(p, "nothing came", err);
    }
    return pass_on(&why, err);
}

static ptrdiff_t paced_write(void *context, const void *from, size_t len, uint64_t deadline_ns,
                             struct err *err)
{
    struct paced *p = context;
    uint64_t now = now_of(p), until = time_earlier(deadline_ns, now + p->stall_ns);
    for (; now < until; now = now_of(p)) {
        struct err why = {0};
        ptrdiff_t put =
            p->under.write(p->under.context, from, len, time_earlier(until, now + LOOK_NS), &why);
        if (put >= 0) {
            return put;
        }
        if (why.number != ETIMEDOUT) {
            return pass_on(&why, err);
        }
        if (p->under.readable(p->under.context)) {
            (void)err_set(err, ERR_NETWORK, EAGAIN, "the server stopped reading and responded");
            return -1;
        }
    }
    return until == deadline_ns ? too_late(err) : stalled(p, "the server read nothing", err);
}

static bool paced_readable(void *context)
{
    struct paced *p = context;
    return p->under.readable(p->under.context);
}

static void paced_close(void *context)
{
    struct paced *p = context;
    p->under.close(p->under.context);
    free(p);
}

bool paced_open(struct stream *under, struct clock clock, uint64_t stall_ns, struct stream *out,
                struct err *err)
{
    struct paced *p = malloc(sizeof *p);
    if (p == NULL) {
        under->close(under->context);
        return err_set(err, ERR_MEMORY, ENOMEM, "no memory for a connection");
    }
    *p = (struct paced){*under, clock, stall_ns};
    *out = (struct stream){paced_read, paced_write, paced_readable, paced_close, p};
    return true;
}
