/* stops: times of brief stops, the rate that follows from them, and why a thread could not be held. Keeps the latest
 * times of the window, and judges them once a second. What catchers could not do they leave a thread's number of, and
 * the reason is looked for here. */
#include "capture/stacks/stops.h"
#include "base/time.h"
#include "os/access.h"
#include "os/probe.h"
#include "os/proc.h"
#include "target/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 4096,        /* times of a window, the latest */
    JUDGED_LEAST = 64,  /* stops that make a judgement */
    EXCEPTIONS = 3,     /* so few are no rule: 99 of 100 of 64 stops are all of them */
    QUIET_S = 60,
    QUIET_SHARE = 4,    /* so far below both bounds it must be to be quiet */
};

struct stops {
    struct follow *follow;
    struct shared *shared;
    struct catching *catching;
    uint32_t *ns, *sorted;    /* KEPT of each */
    uint64_t count;           /* of the window */
    uint64_t judged;          /* of these, in earlier judgements */
    uint64_t held_ns, stood_ns; /* since the last judgement: held, and the CPU time that it stands for */
    uint64_t judge_ns, quiet_ns; /* monotonic: next judgement; since when nothing was too long */
    uint32_t asked_hz;
    struct buf text;          /* scratch */
};

struct stops *stops_new(struct follow *f, struct catching *catching)
{
    enum { STATUS_MAX = 16 * 1024 };
    struct stops *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    *s = (struct stops){.follow = f, .shared = f->shared, .catching = catching, .asked_hz = f->shared->stops_hz};
    buf_init(&s->text, STATUS_MAX);
    if (f->shared->stops) {
        s->ns = malloc(KEPT * sizeof *s->ns);
        s->sorted = malloc(KEPT * sizeof *s->sorted);
    }
    return s;
}

static void release(void *state)
{
    struct stops *s = state;
    buf_release(&s->text);
    free(s->ns);
    free(s->sorted);
    free(s);
}

void stops_note(struct stops *s, const struct caught *caught)
{
    if (s->ns != NULL) {
        s->ns[s->count++ % KEPT] = caught->held_ns;
    }
    s->held_ns += caught->held_ns;
    s->stood_ns += caught->weight_ns;
}

static int by_length(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

uint32_t stops_quantile(uint32_t *ns, size_t count, double share)
{
    if (count == 0) {
        return 0;
    }
    qsort(ns, count, sizeof *ns, by_length);
    size_t at = (size_t)(share * (double)count);
    return ns[at < count ? at : count - 1];
}

uint32_t stops_usual_longest(uint32_t *ns, size_t count)
{
    uint32_t long_ns = stops_quantile(ns, count, 0.99);
    size_t least = count < EXCEPTIONS ? 0 : count - EXCEPTIONS;
    return count == 0 || ns[least] > long_ns ? long_ns : ns[least];
}

/* The latest `count` of the window, to be put in order; returns how many there are. */
static size_t latest(struct stops *s, uint64_t count)
{
    if (s->ns == NULL || s->sorted == NULL) {
        return 0;
    }
    count = count < KEPT ? count : KEPT;
    for (uint64_t i = 0; i < count; i++) {
        s->sorted[i] = s->ns[(s->count - 1 - i) % KEPT];
    }
    return (size_t)count;
}

static uint32_t quantile(struct stops *s, double share)
{
    return stops_quantile(s->sorted, latest(s, s->count), share);
}

/* ---- the rate ---- */

static void set_rate(struct stops *s, uint32_t hz, const char *why)
{
    log_say(&s->shared->log, LOG_INFO, "brief stops: %u a second from now on (%u were asked for): %s", hz, s->asked_hz,
            why);
    s->shared->stops_hz = hz;
    catching_set_pace(s->catching);
}

bool stops_are_many(const struct stops_judgement *j)
{
    return j->held_ns > j->stood_ns / STOPS_SHARE;
}

uint32_t stops_slower_hz(const struct stops_judgement *j, uint32_t hz)
{
    bool many = stops_are_many(j), are_long = j->long_ns > STOPS_LONG_US * NS_PER_US;
    uint32_t least_hz = many ? 1 : STOPS_LONG_HZ;
    if (!(many || are_long) || hz <= least_hz) {
        return hz;
    }
    return hz / 2 > least_hz ? hz / 2 : least_hz;
}

bool stops_are_quiet(const struct stops_judgement *j, uint32_t hz)
{
    bool are_short = j->long_ns * QUIET_SHARE <= STOPS_LONG_US * NS_PER_US || hz < STOPS_LONG_HZ;
    return are_short && j->held_ns * QUIET_SHARE <= j->stood_ns / STOPS_SHARE;
}

static void judge(struct stops *s, uint64_t now_ns)
{
    uint64_t fresh = s->count - s->judged;
    if (fresh < JUDGED_LEAST) {
        return;
    }
    const struct stops_judgement judgement = {.long_ns = stops_usual_longest(s->sorted, latest(s, fresh)),
                                              .held_ns = s->held_ns,
                                              .stood_ns = s->stood_ns};
    uint32_t hz = s->shared->stops_hz, slower_hz = stops_slower_hz(&judgement, hz);
    bool quiet = stops_are_quiet(&judgement, hz);
    s->judged = s->count;
    s->held_ns = s->stood_ns = 0;
    s->quiet_ns = quiet && s->quiet_ns != 0 ? s->quiet_ns : now_ns;
    if (slower_hz < hz) {
        set_rate(s, slower_hz, stops_are_many(&judgement) ? "together they take more than 1 % of the targets' time"
                                                          : "one in a hundred takes longer than a millisecond");
    } else if (now_ns - s->quiet_ns >= QUIET_S * NS_PER_S && hz < s->asked_hz) {
        s->quiet_ns = now_ns;
        set_rate(s, hz * 2 < s->asked_hz ? hz * 2 : s->asked_hz, "they are short again");
    }
}

/* ---- who may not be held ---- */

static bool read_status(struct stops *s, uint32_t pid, struct proc_status *out)
{
    return proc_read(pid, 0, "status", &s->text, NULL) && status_parse(buf_slice(&s->text), out, NULL);
}

/* By somebody else than a catcher of ours, which may have it stopped just now. */
static bool is_traced(const struct proc_status *status)
{
    return status->tracer_pid != 0 && !proc_thread_exists(proc_own_pid(), status->tracer_pid);
}

static void leave_alone(struct stops *s, struct target *target, const char *key, const char *why, uint64_t now_ns)
{
    struct readers *readers = catching_readers(s->catching);
    if (readers != NULL) {
        readers_tell_unstoppable(readers, target, key, why);
    }
    target->runtime.stops_again_ns = now_ns + STOPS_AGAIN_S * NS_PER_S;
    target->runtime.space = 0; /* readers_refresh looks at it again */
}

static void leave_to_tracer(struct stops *s, struct target *target, uint32_t tracer, uint64_t now_ns)
{
    char why[64];
    snprintf(why, sizeof why, "pid %u traces it", tracer);
    leave_alone(s, target, why, why, now_ns);
}

static void look_for_tracers(struct stops *s, uint64_t now_ns)
{
    vec_each(&s->follow->targets.all, slot)
    {
        struct target *target = *slot;
        struct proc_status status;
        uint64_t again_ns = target->runtime.stops_again_ns;
        if (again_ns != 0 && now_ns >= again_ns && !target->ended) {
            target->runtime.stops_again_ns = 0;
            target->runtime.space = 0;
        } else if (target->runtime.stops && again_ns == 0 && !target->ended && target->account.idle_polls == 0 &&
                   read_status(s, target->pid, &status) && is_traced(&status)) {
            leave_to_tracer(s, target, status.tracer_pid, now_ns);
        }
    }
}

static void explain_refusal(struct stops *s, uint32_t tid, uint64_t now_ns)
{
    struct proc_status status;
    struct target *target;
    if (!read_status(s, tid, &status) || (target = targets_find(&s->follow->targets, status.tgid)) == NULL) {
        return; /* it has ended */
    }
    if (is_traced(&status)) {
        leave_to_tracer(s, target, status.tracer_pid, now_ns);
        return;
    }
    char why[ACCESS_TEXT_MAX] = "something else traced it just then";
    if (target->maps.len == 0 || probe_memory_call(target->pid, target->maps.at[0].start) == EPERM) {
        access_refusal(target->pid, ACCESS_CALL, why);
    }
    leave_alone(s, target, why, why, now_ns);
}

/* ---- in words ---- */

static unsigned rounded_us(uint32_t ns)
{
    return (unsigned)((ns + NS_PER_US / 2) / NS_PER_US);
}

void stops_describe(const struct profile_stops *stops, struct buf *out)
{
    if (stops->count == 0) {
        return;
    }
    buf_printf(out, "\n  brief stops: %llu, median %u µs, 99 of 100 within %u µs", (unsigned long long)stops->count,
               rounded_us(stops->median_ns), rounded_us(stops->long_ns));
    if (stops->broken_calls > 0) {
        buf_printf(out, "; %llu system calls returned EINTR", (unsigned long long)stops->broken_calls);
    }
}

void stops_tell(const struct profile_stops *stops, struct buf *out)
{
    if (stops->count > 0) {
        buf_printf(out, " stops=%llu/%uus/%uus", (unsigned long long)stops->count, rounded_us(stops->median_ns),
                   rounded_us(stops->long_ns));
    }
}

/* ---- the row ---- */

static void setup(void *state)
{
    struct stops *s = state;
    if (s->shared->stops_refused[0] != '\0') {
        log_say(&s->shared->log, LOG_WARNING, "--brief-stops has no effect: %s", s->shared->stops_refused);
    }
}

static void look(void *state, uint64_t now_ns)
{
    struct stops *s = state;
    struct catch *timer = catching_timer(s->catching);
    if (!s->shared->stops || timer == NULL || now_ns < s->judge_ns) {
        return;
    }
    s->judge_ns = now_ns + NS_PER_S;
    uint32_t refused = catch_take_refused(timer);
    if (refused != 0) {
        explain_refusal(s, refused, now_ns);
    }
    look_for_tracers(s, now_ns);
    judge(s, now_ns);
}

static void window_end(void *state)
{
    struct stops *s = state;
    struct profile_stops *out = &s->shared->window.profile->meta.stops;
    *out = (struct profile_stops){.count = s->count,
                                  .broken_calls = s->shared->window.broken_calls,
                                  .median_ns = quantile(s, 0.5),
                                  .long_ns = quantile(s, 0.99)};
    s->count = s->judged = 0;
}

const struct concern stops_concern = {
    .name = "stops",
    .setup = setup,
    .round = look,
    .window_end = window_end,
    .release = release,
};
