/* The verb collect of Go programs. Each kind of profile is asked for by itself, so that one that fails takes no other
 * with it, and each thing that is missing is told once with what would bring it. An address is looked for again and
 * again: a server may begin to listen minutes after it has begun. */
#include "runtime/go/collect.h"
#include "base/time.h"
#include "runtime/go/cpu.h"
#include "runtime/go/delta.h"
#include "runtime/go/endpoint.h"
#include "runtime/go/figures.h"
#include "runtime/go/table.h"

#include <errno.h>
#include <stdlib.h>

enum {
    ANSWER_MS = 10000,
    SNAPSHOT_MAX = 16 << 20,
    CPU_PROFILES_MAX = 12,
    FAILS_MAX = 3, /* in a row: whoever listened there may be gone */
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
};

enum { HEAP = 0, KINDS = sizeof kinds / sizeof kinds[0] };

struct collection {
    const struct process_port *port;
    const char *addresses;         /* given; null: none */
    struct go_search search;
    struct go_endpoint endpoint;
    struct go_delta *delta[KINDS]; /* null: nothing of it grows */
    struct buf snapshot, difference;
    struct go_figures figures;
    struct go_cpu cpu;
    VEC(struct buf) cpu_profiles;  /* that are not handed over yet */
    struct err cpu_why;
    unsigned fails;                /* of the address, in a row */
    bool looks;                    /* it may have an address */
    bool has_endpoint;
    bool records_cpu;
};

/* ---- where ---- */

/* Can it answer at all? Its own table of functions tells. */
static bool has_handlers(const struct process_port *port, struct err *why)
{
    struct memory_reader file;
    struct elf elf;
    if (!port->program(port->context, &file, why)) {
        return false;
    }
    struct go_table *table = elf_open(&elf, &file, why) ? go_table_open(&elf, why) : NULL;
    bool has = table != NULL && go_table_has(table, "net/http/pprof.Index");
    go_table_release(table);
    elf_release(&elf);
    return has;
}

static void look_for_address(struct collection *c)
{
    struct err why = {0};
    if (c->looks && !c->has_endpoint) {
        c->has_endpoint = c->addresses != NULL ? go_endpoint_given(c->port, c->addresses, &c->endpoint, &why)
                                               : go_endpoint_find(c->port, &c->search, &c->endpoint);
        c->fails = 0;
    }
}

/* ---- one kind ---- */

static bool read_snapshot(struct collection *c, const struct kind *kind, struct err *why)
{
    bool good = go_endpoint_get(c->port, &c->endpoint, kind->type, &c->snapshot, ANSWER_MS, why);
    c->fails = good ? 0 : c->fails + 1;
    return good;
}

/* Into c->difference. */
static bool take(struct collection *c, size_t i, struct err *why)
{
    if (!read_snapshot(c, &kinds[i], why)) {
        return false;
    }
    if (c->delta[i] != NULL) {
        return go_delta_take(c->delta[i], buf_slice(&c->snapshot), false, &c->difference, why);
    }
    struct buf other = c->difference;
    c->difference = c->snapshot;
    c->snapshot = other;
    return true;
}

/* Keeps the first that is missing. */
static void note(const struct kind *kind, const struct err *cause, struct err *why)
{
    if (why->kind == ERR_NONE) {
        err_set(why, cause->kind, cause->number, "%s: %s", kind->type, cause->text);
    }
}

static void take_all(struct collection *c, const struct runtime_sink *sink, struct err *why)
{
    size_t heap_bytes = 0;
    for (size_t i = 0; c->has_endpoint && i < KINDS; i++) {
        struct err cause = {0};
        if (!take(c, i, &cause)) {
            note(&kinds[i], &cause, why);
        } else if (c->difference.len > 0 && (c->delta[i] == NULL || go_delta_samples(c->delta[i]) > 0)) {
            heap_bytes += i == HEAP ? c->snapshot.len : 0;
            sink->file(sink->context, kinds[i].type, &c->difference);
        }
    }
    if (c->has_endpoint) {
        go_figures_take(&c->figures, c->port, &c->endpoint, heap_bytes, sink);
    }
    c->has_endpoint = c->has_endpoint && c->fails < FAILS_MAX;
    buf_release(&c->snapshot);
    buf_release(&c->difference);
}

/* ---- the verbs ---- */

static bool may_start(const struct process_port *port, struct err *why)
{
    return has_handlers(port, why);
}

static void release(struct collection *c)
{
    go_cpu_stop(&c->cpu);
    vec_each(&c->cpu_profiles, profile)
    {
        buf_release(profile);
    }
    vec_release(&c->cpu_profiles);
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
    for (size_t i = 0; c->has_endpoint && i < KINDS; i++) {
        bool is_wanted = i == HEAP || !is_new;
        if (c->delta[i] != NULL && is_wanted && read_snapshot(c, &kinds[i], &why) && !is_new) {
            (void)go_delta_take(c->delta[i], buf_slice(&c->snapshot), true, &c->difference, &why);
        }
        if (i == HEAP && c->has_endpoint) {
            go_figures_begin(&c->figures, c->port, &c->endpoint, c->snapshot.len);
        }
    }
}

static void *start(const struct runtime_target *target, struct err *why)
{
    struct collection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for its profiles");
        return NULL;
    }
    c->port = target->port;
    c->addresses = target->addresses;
    c->records_cpu = target->records_cpu && (target->wanted & RUNTIME_WANTS_CPU) != 0;
    buf_init(&c->snapshot, SNAPSHOT_MAX);
    buf_init(&c->difference, SNAPSHOT_MAX);
    for (size_t i = 0; i < KINDS; i++) {
        c->delta[i] = kinds[i].growing_count > 0 ? go_delta_new(kinds[i].growing, kinds[i].growing_count) : NULL;
    }
    c->looks = target->connects && (target->addresses != NULL || has_handlers(target->port, why));
    look_for_address(c);
    take_base(c, target->is_new);
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

/* Of CPU time alone. False: poll has something to tell. */
static bool tick(void *collection, uint64_t since_ns)
{
    struct collection *c = collection;
    struct err why = {0};
    (void)since_ns;
    if (!c->records_cpu || !c->has_endpoint) {
        return true;
    }
    if (go_cpu_tick(&c->cpu, c->port, &c->endpoint, &c->snapshot, &why)) {
        struct buf *place = c->cpu_profiles.len < CPU_PROFILES_MAX ? vec_push(&c->cpu_profiles) : NULL;
        if (place != NULL) {
            *place = c->snapshot;
            buf_init(&c->snapshot, SNAPSHOT_MAX);
        }
    } else if (why.kind != ERR_NONE) {
        c->cpu_why = why;
    }
    return c->cpu_why.kind == ERR_NONE;
}

static bool poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why)
{
    struct collection *c = collection;
    look_for_address(c);
    hand_over_cpu(c, sink);
    if (whole) {
        take_all(c, sink, why);
    }
    if (c->cpu_why.kind != ERR_NONE) {
        err_set(why, c->cpu_why.kind, c->cpu_why.number, "CPU time: %s", c->cpu_why.text);
        c->cpu_why = (struct err){0};
    }
    return true;
}

static void stop(void *collection, const struct runtime_sink *sink)
{
    struct collection *c = collection;
    struct err why = {0};
    look_for_address(c);
    hand_over_cpu(c, sink);
    take_all(c, sink, &why);
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
