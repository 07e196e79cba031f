/* The verb collect of JavaScript: sessions with node's inspector, which is open for a part of the time. What was met
 * in a session stands for the time since the last one ended. Processes take turns, for most would open it at one port
 * and complain where it is taken. */
#include "runtime/v8/inspector.h"
#include "base/time.h"

#include <errno.h>
#include <stdlib.h>

enum {
    SESSION_MS = 10000, LEAST_SESSION_MS = 1000, /* of one process; others that are asked have their part of it */
    PAUSE_MS = 20000,
    AGAIN_MS = 500,       /* the port is taken, or it is stopped */
    OPENS_MS = 30000,     /* after the signal, before it is given up */
    ELSEWHERE_MS = 1000,  /* after which it is looked for at other ports, too */
    OPENS_AT_END_MS = 2000, LOOK_MS = 10,
    MOMENTS_MAX = 32 << 20,
    US_PER_S = 1000000, LEAST_INTERVAL_US = 1000,
};

enum state { WAITS, OPENS, OPEN, OVER };

struct collection {
    const struct process_port *port;
    const void **turn;           /* this, while it may be open */
    struct inspector_options options;
    struct inspector *inspector; /* of OPEN */
    enum state state;
    uint64_t interval_us, session_ns;
    uint64_t next_ns;            /* monotonic: of WAITS, when it is asked; of OPENS and OPEN, the end of it */
    uint64_t counted_ns;         /* monotonic: what was before this stands in samples, or nowhere */
    uint64_t begun_ns;           /* monotonic: the profile that is being made */
    struct buf moments;
    struct err why;              /* of OVER */
};

static uint64_t now(const struct collection *c)
{
    return c->port->now_ns(c->port->context);
}

static void give_turn(struct collection *c)
{
    if (*c->turn == c) {
        *c->turn = NULL;
    }
}

static void pause_until(struct collection *c, uint64_t ms)
{
    give_turn(c);
    c->state = WAITS;
    c->next_ns = now(c) + ms * NS_PER_MS;
}

static void end(struct collection *c, const struct err *why)
{
    give_turn(c);
    c->state = OVER;
    c->why = *why;
}

/* Whoever cannot be asked now is asked again, without telling. */
static void knock(struct collection *c)
{
    struct err why = {0};
    if (*c->turn != NULL) {
        return;
    }
    *c->turn = c;
    if (inspector_knock(c->port, &c->options, &why)) {
        c->state = OPENS;
        c->next_ns = now(c) + OPENS_MS * NS_PER_MS;
    } else if (why.number == EAGAIN) {
        pause_until(c, AGAIN_MS);
    } else {
        end(c, &why);
    }
}

static void enter(struct collection *c)
{
    struct err why = {0};
    bool is_v6, anywhere = now(c) + (OPENS_MS - ELSEWHERE_MS) * NS_PER_MS >= c->next_ns;
    if (inspector_opened(c->port, &c->options, anywhere, &is_v6)) {
        c->begun_ns = now(c);
        c->inspector = inspector_enter(c->port, &c->options, is_v6, c->interval_us, &why);
        c->next_ns = c->begun_ns + c->session_ns;
        c->state = OPEN;
        if (c->inspector == NULL) {
            end(c, &why);
        }
    } else if (now(c) >= c->next_ns) {
        err_set(&why, ERR_UNSUPPORTED, 0, "it opened no inspector; has it a handler of its own for SIGUSR1?");
        end(c, &why);
    }
}

/* What the profile has; each of its ticks stands for a part of the time that none was made, too. */
static void take(struct collection *c)
{
    uint64_t end_ns = now(c), made_ns = end_ns - c->begun_ns, stands_ns = end_ns - c->counted_ns;
    double part = made_ns > 0 && stands_ns > made_ns ? (double)stands_ns / (double)made_ns : 1;
    inspector_take(c->inspector, (uint64_t)(part * (double)c->interval_us * NS_PER_US), &c->moments);
    c->counted_ns = c->begun_ns = end_ns;
}

static void leave(struct collection *c)
{
    struct err why = {0};
    take(c);
    bool is_closed = inspector_leave(c->inspector, &why);
    c->inspector = NULL;
    pause_until(c, PAUSE_MS);
    if (!is_closed) {
        end(c, &why);
    }
}

void *v8_collect(const struct runtime_target *target, struct err *why)
{
    struct collection *c = NULL;
    if ((target->wanted & RUNTIME_WANTS_CPU) == 0) {
        err_set(why, ERR_UNSUPPORTED, 0, "its inspector is asked for CPU time only");
    } else if (inspector_may(target->port, why) && (c = calloc(1, sizeof *c)) == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for its profile");
    }
    if (c == NULL) {
        return NULL;
    }
    uint64_t interval_us = US_PER_S / (target->frequency_hz > 0 ? target->frequency_hz : 1);
    uint64_t session_ms = SESSION_MS / (target->peers > 0 ? target->peers : 1);
    *c = (struct collection){
        .port = target->port,
        .turn = target->turn,
        .interval_us = interval_us > LEAST_INTERVAL_US ? interval_us : LEAST_INTERVAL_US,
        .session_ns = (session_ms > LEAST_SESSION_MS ? session_ms : LEAST_SESSION_MS) * NS_PER_MS,
    };
    c->counted_ns = c->next_ns = now(c);
    buf_init(&c->moments, MOMENTS_MAX);
    return c;
}

bool v8_collect_tick(void *collection, uint64_t since_ns)
{
    struct collection *c = collection;
    (void)since_ns;
    if (c->state == WAITS && now(c) >= c->next_ns) {
        knock(c);
    } else if (c->state == OPENS) {
        enter(c);
    } else if (c->state == OPEN && (!inspector_attend(c->inspector) || now(c) >= c->next_ns)) {
        leave(c);
    }
    return c->state != OVER;
}

static void hand_over(struct collection *c, const struct runtime_sink *sink)
{
    if (c->moments.len > 0) {
        sink->file(sink->context, NULL, &c->moments);
        buf_clear(&c->moments);
    }
}

bool v8_collect_poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why)
{
    struct collection *c = collection;
    if (whole && c->state == OPEN) {
        take(c);
        inspector_restart(c->inspector);
    }
    hand_over(c, sink);
    *why = c->why;
    return c->state != OVER;
}

/* One that was sent the signal may be just opening it. */
void v8_collect_stop(void *collection, const struct runtime_sink *sink)
{
    struct collection *c = collection;
    uint64_t until_ns = now(c) + OPENS_AT_END_MS * NS_PER_MS;
    while (c->state == OPENS && now(c) < until_ns) {
        enter(c);
        c->port->pause(c->port->context, LOOK_MS);
    }
    if (c->state == OPEN) {
        leave(c);
    }
    give_turn(c);
    hand_over(c, sink);
    buf_release(&c->moments);
    free(c);
}
