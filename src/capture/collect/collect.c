/* Starts, polls and stops the profiles that runtimes make of themselves, and adds what they hand over to the
 * window's profile: a path of named frames, and a value for each sample type. It knows no runtime by name: rows
 * with the verb are all it needs. */
#include "capture/collect/collect.h"
#include "base/time.h"

#include <errno.h>

enum { PAUSE_LEAST_MS = 100, PAUSE_MOST_MS = 30000 };

void collect_init(struct collect *c, const struct runtime *const *rows, uint64_t frequency_hz)
{
    *c = (struct collect){.rows = rows, .frequency_hz = frequency_hz};
}

/* ---- a sample ---- */

struct taking {
    const struct collecting *from;
    const struct collect_into *into;
    uint32_t event[RUNTIME_SAMPLE_TYPES_MAX];
    size_t types;
};

/* Its place among the window's types; it may be there since an earlier poll. */
static uint32_t event_of(struct profile *p, const struct runtime_sample_type *type)
{
    for (uint32_t i = 0; i < p->event_types.len; i++) {
        const struct event_type *e = &p->event_types.at[i];
        if (str_eq(profile_text(p, e->name), str_of(type->type)) &&
            str_eq(profile_text(p, e->unit), str_of(type->unit))) {
            return i;
        }
    }
    return profile_event_type(p, type->type, type->unit);
}

static void declare_types(struct taking *t)
{
    const struct runtime_sample_type *type = t->from->runtime->types;
    for (; t->types < RUNTIME_SAMPLE_TYPES_MAX && type[t->types].type != NULL; t->types++) {
        t->event[t->types] = event_of(t->into->profile, &type[t->types]);
    }
}

/* 0: no room. */
static uint32_t node_of(struct profile *p, enum frame_kind kind, const struct runtime_sample *sample)
{
    uint32_t node = 0;
    for (size_t i = sample->count; i > 0; i--) {
        const struct source_line *line = &sample->frames[i - 1];
        const struct frame frame = {.name = profile_string(p, line->name),
                                    .system_name = profile_string(p, line->system_name),
                                    .file = profile_string(p, line->file),
                                    .line = line->line,
                                    .kind = (uint8_t)kind};
        node = profile_child(p, node, profile_frame(p, &frame));
        if (node == 0) {
            break;
        }
    }
    return node;
}

static bool take(void *context, const struct runtime_sample *sample)
{
    struct taking *t = context;
    struct profile *p = t->into->profile;
    uint32_t node = node_of(p, t->from->runtime->kind, sample);
    uint32_t thread = t->into->thread(t->into->context, p, t->from->pid, sample->tid);
    for (size_t i = 0; i < t->types; i++) {
        if (t->event[i] < PROFILE_EVENTS_MAX && sample->values[i] > 0) {
            profile_add_event(p, t->event[i], thread, node, sample->values[i]);
        }
    }
    return node != 0;
}

static struct taking taking_of(const struct collecting *from, const struct collect_into *into)
{
    struct taking t = {.from = from, .into = into};
    declare_types(&t);
    return t;
}

/* ---- a process ---- */

static struct collecting *collecting_of(struct collect *c, uint32_t pid, const struct runtime *runtime)
{
    vec_each(&c->all, one)
    {
        if (one->pid == pid && one->runtime == runtime) {
            return one;
        }
    }
    struct collecting *added = vec_push(&c->all);
    if (added != NULL) {
        *added = (struct collecting){.pid = pid, .runtime = runtime, .retry_ns = 1};
    }
    return added;
}

static bool start(struct collect *c, struct collecting *one, uint64_t now_ns)
{
    const struct runtime_target target = {one->pid, c->frequency_hz};
    struct err why = {0};
    one->collection = one->runtime->start(&target, &why);
    if (one->collection != NULL) {
        return true;
    }
    uint64_t pause_ns = one->pause_ns == 0 ? PAUSE_LEAST_MS * NS_PER_MS : 2 * one->pause_ns;
    one->pause_ns = pause_ns < PAUSE_MOST_MS * NS_PER_MS ? pause_ns : PAUSE_MOST_MS * NS_PER_MS;
    one->retry_ns = why.number == EAGAIN ? now_ns + one->pause_ns : 0;
    c->failed = why;
    return false;
}

bool collect_start(struct collect *c, uint32_t pid, uint64_t now_ns)
{
    bool began = false;
    for (size_t i = 0; c->rows[i] != NULL; i++) {
        struct collecting *one = c->rows[i]->start == NULL ? NULL : collecting_of(c, pid, c->rows[i]);
        if (one != NULL && one->collection == NULL && one->retry_ns != 0 && now_ns >= one->retry_ns) {
            began = start(c, one, now_ns) || began;
        }
    }
    return began;
}

static void stop(struct collecting *one, const struct collect_into *into)
{
    if (one->collection != NULL) {
        struct taking t = taking_of(one, into);
        const struct runtime_sink sink = {take, &t};
        one->runtime->stop(one->collection, &sink);
        one->collection = NULL;
    }
    one->retry_ns = 0;
}

void collect_poll(struct collect *c, const struct collect_into *into)
{
    vec_each(&c->all, one)
    {
        struct err why = {0};
        struct taking t = {0};
        const struct runtime_sink sink = {take, &t};
        if (one->collection == NULL) {
            continue;
        }
        t = taking_of(one, into);
        if (!one->runtime->poll(one->collection, &sink, &why)) {
            c->failed = why;
            stop(one, into);
        }
    }
}

void collect_leave(struct collect *c, uint32_t pid, const struct collect_into *into)
{
    for (size_t i = c->all.len; i-- > 0;) {
        if (c->all.at[i].pid == pid) {
            stop(&c->all.at[i], into);
            vec_swap_out(&c->all, i);
        }
    }
}

void collect_release(struct collect *c, const struct collect_into *into)
{
    vec_each(&c->all, one)
    {
        stop(one, into);
    }
    vec_release(&c->all);
}
