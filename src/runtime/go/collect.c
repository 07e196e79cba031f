/* The verb collect of Go programs. Each kind of profile is asked for by itself, so that one that fails takes no other
 * with it, and each thing that is missing is told once with what would bring it. An address is looked for again and
 * again: a server may begin to listen minutes after it has begun. */
#include "runtime/go/collect.h"
#include "base/time.h"
#include "runtime/common/outside.h"
#include "runtime/go/cpu.h"
#include "runtime/go/delta/delta.h"
#include "runtime/go/endpoint.h"
#include "runtime/go/figures.h"
#include "runtime/go/inside.h"
#include "runtime/go/trace.h"

#include <stdlib.h>

#define HANDLER "net/http/pprof.Index"

enum {
    ANSWER_MS = 5000,
    SNAPSHOT_MAX = 16 << 20,
    CPU_PROFILES_MAX = 12,
    FAILS_MAX = 2, /* in a row: whoever listened there may be gone */
};

/* A kind of profile, and which of its values grow since the program began. */
struct kind {
    const char *type;
    const char *growing[2];
    size_t growing_count;
};

static const struct kind kinds[] = {
    {"heap", {"alloc_objects", "alloc_space"}, 2},
    {"mutex", {"contentions", "delay"}, 2},
    {"block", {"contentions", "delay"}, 2},
    {"goroutine", {NULL}, 0},
    {"goroutineleak", {NULL}, 0}, /* of an address: the program collects garbage for it */
    {"goroutinewait", {NULL}, 0}, /* of its memory; the address has a text of it (figures.h) */
};

enum { HEAP, MUTEX, BLOCK, GOROUTINE, LEAK, WAIT, KINDS };
_Static_assert(sizeof kinds / sizeof kinds[0] == KINDS, "one for each");

struct collection {
    const struct process_port *port;
    const char *addresses;         /* given; null: none */
    struct go_inside *inside;
    struct go_search search;
    struct go_endpoint endpoint;
    struct go_delta *delta[KINDS]; /* null: nothing of it grows */
    struct buf snapshot, difference;
    size_t snapshot_bytes;         /* of the last */
    uint64_t goroutines;           /* by memory, in this window, … */
    bool has_goroutines;           /* … if it told them */
    struct go_figures figures;
    struct go_cpu cpu;
    VEC(struct buf) cpu_profiles;  /* that are not handed over yet */
    struct go_trace trace;
    const void **turn;             /* who may have one now */
    struct err told_next;          /* by poll: of the address, of CPU time or a trace */
    unsigned fails;                /* of the address, in a row */
    unsigned told;                 /* bits by kind: that it is missing; and of all */
    bool looks;                    /* it may have an address */
    bool has_endpoint;
    bool records_cpu;
    bool traces, has_trace, told_trace; /* has: one that is not handed over; told: why there is none */
    bool only_light;               /* goroutines alone are wanted, as they are now */
    bool was_there;                /* before the run: whatever is seen of it first is only a base */
};

/* ---- where ---- */

/* One that is stopped would not answer. */
static void look_for_address(struct collection *c)
{
    struct err why = {0};
    if (!c->looks || c->has_endpoint || outside_is_stopped(c->port)) {
        return;
    }
    c->has_endpoint = c->addresses != NULL ? go_endpoint_given(c->port, c->addresses, &c->endpoint, &why)
                                           : go_endpoint_find(c->port, &c->search, &c->endpoint);
    c->fails = 0;
    if (why.kind != ERR_NONE) { /* an address that is none: it is not looked for again */
        c->told_next = why;
        c->looks = false;
    }
}

/* ---- one kind ---- */

static bool read_memory(struct collection *c, size_t i, struct err *why)
{
    struct go_memory *m = go_inside_memory(c->inside, why);
    uint64_t wall_ns = c->port->wall_ns(c->port->context);
    if (m == NULL) {
        return false;
    }
    switch (i) {
    case HEAP:
        return go_memory_heap(m, wall_ns, &c->snapshot, why);
    case MUTEX:
    case BLOCK:
        return go_memory_contention(m, i == MUTEX ? GO_MUTEX : GO_BLOCK, wall_ns, &c->snapshot, why);
    case GOROUTINE:
        c->has_goroutines = go_memory_goroutines(m, wall_ns, &c->snapshot, &c->goroutines, why);
        return c->has_goroutines;
    default:
        return go_memory_waits(m, wall_ns, c->port->now_ns(c->port->context), &c->snapshot, why);
    }
}

/* An address does not tell waits as a profile. */
static bool read_snapshot(struct collection *c, size_t i, struct err *why)
{
    if (!c->has_endpoint || i == WAIT) {
        return read_memory(c, i, why);
    }
    bool good = go_endpoint_get(c->port, &c->endpoint, kinds[i].type, &c->snapshot, ANSWER_MS, why);
    c->fails = good ? 0 : c->fails + 1;
    return good;
}

/* Into c->difference. A snapshot of a large heap is not kept while others are taken. */
static bool take(struct collection *c, size_t i, struct err *why)
{
    if (!read_snapshot(c, i, why)) {
        return false;
    }
    c->snapshot_bytes = c->snapshot.len;
    if (c->delta[i] != NULL) {
        bool good = go_delta_take(c->delta[i], buf_slice(&c->snapshot), c->was_there, &c->difference, why);
        buf_release(&c->snapshot);
        return good;
    }
    struct buf other = c->difference;
    c->difference = c->snapshot;
    c->snapshot = other;
    return true;
}

/* Each thing that is missing is told once, one at a time. */
static void note(struct collection *c, size_t i, const struct err *cause, struct err *why)
{
    bool is_of_all = !c->has_endpoint && go_inside_memory(c->inside, &(struct err){0}) == NULL;
    unsigned bit = is_of_all ? 1u << KINDS : 1u << i;
    if (why->kind == ERR_NONE && (c->told & bit) == 0) {
        c->told |= bit;
        err_set(why, cause->kind, cause->number, is_of_all ? "%.0s%s" : "%s: %s", kinds[i].type, cause->text);
    }
}

/* Why there is nothing in it. Without a right to its memory it is not known whether it counts at all. */
static bool note_empty(struct collection *c, size_t i, struct err *why)
{
    static const enum go_profile profiles[KINDS] = {[HEAP] = GO_HEAP, [MUTEX] = GO_MUTEX, [BLOCK] = GO_BLOCK};
    struct err cause = {0};
    struct go_memory *m = go_inside_memory(c->inside, &cause);
    const char *remark = m != NULL ? go_memory_remark(m, profiles[i]) : NULL;
    if (remark != NULL) {
        err_set(&cause, ERR_UNSUPPORTED, 0, "%s", remark);
        note(c, i, &cause, why);
    }
    return remark != NULL;
}

/* A heap that is not counted has what the runtime allocated before it knew that. */
static bool is_hollow(struct collection *c, size_t i, struct err *why)
{
    bool is_empty = c->delta[i] != NULL && go_delta_samples(c->delta[i]) == 0;
    bool is_uncounted = c->delta[i] != NULL && (is_empty || i == HEAP) && note_empty(c, i, why);
    return is_empty || is_uncounted;
}

static struct go_figures_from figures_from(struct collection *c, size_t heap_bytes)
{
    return (struct go_figures_from){
        .port = c->port,
        .at = c->has_endpoint ? &c->endpoint : NULL,
        .heap_bytes = heap_bytes,
        .memory = go_inside_memory(c->inside, &(struct err){0}),
        .goroutines = c->has_goroutines ? &c->goroutines : NULL,
    };
}

static void take_all(struct collection *c, const struct runtime_sink *sink, struct err *why)
{
    size_t heap_bytes = 0;
    bool has_waits = false, is_known = c->has_endpoint;
    c->has_goroutines = false;
    c->has_endpoint = is_known && !outside_is_stopped(c->port);
    for (size_t i = 0; i < KINDS; i++) {
        struct err cause = {0};
        if ((i == LEAK && !(c->has_endpoint && c->endpoint.has_leaks)) || (c->only_light && i != WAIT)) {
            continue;
        }
        if (!take(c, i, &cause)) {
            bool is_expected = i == WAIT && c->has_endpoint;
            if (!is_expected) {
                note(c, i, &cause, why);
            }
        } else if (!is_hollow(c, i, why) && c->difference.len > 0) {
            heap_bytes += i == HEAP ? c->snapshot_bytes : 0;
            has_waits |= i == WAIT;
            sink->file(sink->context, kinds[i].type, &c->difference);
        }
    }
    const struct go_figures_from from = figures_from(c, heap_bytes);
    if (!c->only_light) {
        go_figures_take(&c->figures, &from, !has_waits, sink);
    }
    c->has_endpoint = is_known && c->fails < FAILS_MAX;
    buf_release(&c->snapshot);
    buf_release(&c->difference);
}

/* ---- execution traces ---- */

static void tell_trace(struct collection *c, const struct err *cause)
{
    if (cause->kind != ERR_NONE && !c->told_trace && c->told_next.kind == ERR_NONE) {
        c->told_trace = true;
        err_set(&c->told_next, cause->kind, cause->number, "execution trace: %s", cause->text);
    }
}

static void tell_no_address(struct collection *c)
{
    struct err why = {0};
    err_set(&why, ERR_UNSUPPORTED, 0, "that needs an address: import net/http/pprof and serve it on loopback, or say "
                                      "where it is with --go-pprof");
    tell_trace(c, &why);
}

/* Of all programs one in a window, for what waits of them takes room. */
static void tick_trace(struct collection *c)
{
    struct err why = {0};
    bool is_free = *c->turn == NULL || *c->turn == c;
    if (c->trace.runs || (c->traces && c->has_endpoint && !c->has_trace && is_free)) {
        c->has_trace = go_trace_tick(&c->trace, c->port, &c->endpoint, &why);
        *c->turn = c->trace.runs || c->has_trace ? c : NULL;
        tell_trace(c, &why);
    }
}

static void give_turn(struct collection *c)
{
    if (*c->turn == c) {
        *c->turn = NULL;
    }
}

/* The window is over. */
static void end_trace(struct collection *c)
{
    struct err why = {0};
    if (c->traces && !c->has_endpoint && !c->trace.runs && !c->has_trace) {
        tell_no_address(c);
    }
    c->has_trace = c->has_trace || go_trace_end(&c->trace, c->port, &why);
    tell_trace(c, &why);
}

static void hand_over_trace(struct collection *c, const struct runtime_sink *sink)
{
    if (c->has_trace) {
        sink->file(sink->context, "go.trace", &c->trace.body);
        buf_release(&c->trace.body);
    }
    c->has_trace = false;
    give_turn(c);
}

/* ---- the verbs ---- */

static bool may_start(const struct process_port *port, struct err *why)
{
    struct go_inside *inside = go_inside_open(port, why);
    bool may = inside != NULL && (go_inside_has(inside, HANDLER) || go_inside_memory(inside, why) != NULL);
    go_inside_close(inside);
    return may;
}

static void release(struct collection *c)
{
    go_cpu_stop(&c->cpu);
    go_trace_release(&c->trace);
    give_turn(c);
    vec_each(&c->cpu_profiles, profile)
    {
        buf_release(profile);
    }
    vec_release(&c->cpu_profiles);
    go_inside_close(c->inside);
    for (size_t i = 0; i < KINDS; i++) {
        go_delta_free(c->delta[i]);
    }
    buf_release(&c->snapshot);
    buf_release(&c->difference);
    free(c);
}

/* What has been counted before belongs to no window, but where the program began with it. */
static void take_base(struct collection *c, bool is_new)
{
    struct err why;
    for (size_t i = 0; i < KINDS; i++) {
        bool is_wanted = !is_new || (i == HEAP && c->has_endpoint);
        if (c->delta[i] != NULL && is_wanted && read_snapshot(c, i, &why) && !is_new) {
            (void)go_delta_take(c->delta[i], buf_slice(&c->snapshot), true, &c->difference, &why);
        }
        if (i == HEAP) {
            const struct go_figures_from from = figures_from(c, c->snapshot.len);
            go_figures_begin(&c->figures, &from);
        }
    }
    buf_release(&c->snapshot);
    buf_release(&c->difference);
}

static void tell(struct collection *c, struct err *why)
{
    if (c->told_next.kind != ERR_NONE && why->kind == ERR_NONE) {
        *why = c->told_next;
        c->told_next = (struct err){0};
    }
}

static void *start(const struct runtime_target *target, struct err *why)
{
    struct go_inside *inside = go_inside_open(target->port, why);
    struct collection *c = inside != NULL ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        go_inside_close(inside);
        return NULL;
    }
    c->port = target->port;
    c->inside = inside;
    c->was_there = !target->is_new;
    c->addresses = target->addresses;
    c->traces = target->traces;
    c->turn = target->turn;
    c->records_cpu = target->records_cpu && (target->wanted & RUNTIME_WANTS_CPU) != 0;
    buf_init(&c->snapshot, SNAPSHOT_MAX);
    buf_init(&c->difference, SNAPSHOT_MAX);
    for (size_t i = 0; i < KINDS; i++) {
        c->delta[i] = kinds[i].growing_count > 0 ? go_delta_new(kinds[i].growing, kinds[i].growing_count) : NULL;
        if (c->delta[i] == NULL && kinds[i].growing_count > 0) {
            release(c);
            err_set(why, ERR_MEMORY, 0, "no memory for its profiles");
            return NULL;
        }
    }
    c->looks = target->connects && (target->addresses != NULL || go_inside_has(c->inside, HANDLER));
    look_for_address(c);
    if (c->traces && !c->has_endpoint && (c->was_there || !c->looks)) { /* one that is new may listen later */
        tell_no_address(c);
    }
    tell(c, why);
    c->only_light = (target->wanted & RUNTIME_WANTS_LIGHT) != 0;
    if (!c->only_light) {
        take_base(c, target->is_new);
    }
    return c;
}

static void hand_over_cpu(struct collection *c, const struct runtime_sink *sink)
{
    vec_each(&c->cpu_profiles, profile)
    {
        sink->file(sink->context, NULL, profile);
        buf_release(profile);
    }
    vec_clear(&c->cpu_profiles);
}

static void tick_cpu(struct collection *c)
{
    struct err why = {0};
    if (go_cpu_tick(&c->cpu, c->port, &c->endpoint, &c->snapshot, &why)) {
        struct buf *place = c->cpu_profiles.len < CPU_PROFILES_MAX ? vec_push(&c->cpu_profiles) : NULL;
        if (place != NULL) {
            *place = c->snapshot;
            buf_init(&c->snapshot, SNAPSHOT_MAX);
        }
    } else if (why.kind != ERR_NONE) {
        err_set(&c->told_next, why.kind, why.number, "CPU time: %s", why.text);
    }
}

/* False: poll has something to tell. A trace that runs is read all the same. */
static bool tick(void *collection, uint64_t since_ns)
{
    struct collection *c = collection;
    (void)since_ns;
    tick_trace(c);
    if (c->records_cpu && c->has_endpoint) {
        tick_cpu(c);
    }
    return c->told_next.kind == ERR_NONE || c->trace.runs;
}

static bool poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why)
{
    struct collection *c = collection;
    look_for_address(c);
    hand_over_cpu(c, sink);
    if (whole) {
        end_trace(c);
        take_all(c, sink, why);
        hand_over_trace(c, sink);
    }
    tell(c, why);
    return true;
}

static void stop(void *collection, const struct runtime_sink *sink)
{
    struct collection *c = collection;
    struct err why = {0};
    look_for_address(c);
    hand_over_cpu(c, sink);
    end_trace(c);
    take_all(c, sink, &why);
    hand_over_trace(c, sink);
    release(c);
}

const struct runtime_collect go_collects = {
    .price = "what it has counted of its heap, locks and goroutines",
    .carriers = "", /* goroutines run on all of its threads */
    .is_aside = true,
    .tick_ms = 500,
    .may_start = may_start,
    .start = start,
    .tick = tick,
    .poll = poll,
    .stop = stop,
};
