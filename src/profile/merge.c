/*
 * What two profiles say of one thing: sums, spans, and the first that is known. A whole profile into another goes id by
 * id, each table behind those that its rows name.
 */
#include "profile/merge.h"

#include "base/time.h"

#include <stdlib.h>

static void earliest(uint64_t *into, uint64_t other)
{
    if (*into == 0 || (other != 0 && other < *into)) {
        *into = other;
    }
}

static void largest(uint64_t *into, uint64_t other)
{
    *into = other > *into ? other : *into;
}

static void first_known(uint32_t *into, uint32_t other)
{
    if (*into == 0) {
        *into = other;
    }
}

void profile_merge_meta(struct profile *into, const struct profile_meta *meta)
{
    struct profile_meta *m = &into->meta;
    m->window = m->start_wall_ns == 0 ? meta->window : 0;
    earliest(&m->start_wall_ns, meta->start_wall_ns);
    largest(&m->end_wall_ns, meta->end_wall_ns);
    if (m->period_ns == 0) {
        m->period_ns = meta->period_ns;
        m->frequency_hz = meta->frequency_hz;
    }
    first_known(&m->service, meta->service);
    first_known(&m->host, meta->host);
    first_known(&m->mode, meta->mode);
    first_known(&m->reason, meta->reason);
    m->own_cpu_ns += meta->own_cpu_ns;
    largest(&m->own_rss_bytes, meta->own_rss_bytes);
    largest(&m->own_rss_peak_bytes, meta->own_rss_peak_bytes);
    largest(&m->excluded, meta->excluded);
    largest(&m->unsampled, meta->unsampled);
    if (m->mean_hz == 0 || (meta->mean_hz > 0 && meta->mean_hz < m->mean_hz)) {
        m->mean_hz = meta->mean_hz;
    }
    first_known(&m->budget, meta->budget);
    m->lost_records += meta->lost_records;
    m->stops.count += meta->stops.count;
    m->stops.broken_calls += meta->stops.broken_calls;
    m->stops.median_ns = meta->stops.median_ns > m->stops.median_ns ? meta->stops.median_ns : m->stops.median_ns;
    m->stops.long_ns = meta->stops.long_ns > m->stops.long_ns ? meta->stops.long_ns : m->stops.long_ns;
    for (unsigned i = 0; i < STACK_END_COUNT; i++) {
        m->stack_ends[i] += meta->stack_ends[i];
    }
    for (unsigned i = 0; i < SHARE_COUNT; i++) {
        m->shares[i] += meta->shares[i];
    }
    for (unsigned i = 0; i < CONSISTENT_COUNT; i++) {
        m->consistent[i] += meta->consistent[i];
    }
    for (unsigned i = 0; i < WOVEN_COUNT; i++) {
        m->woven[i] += meta->woven[i];
    }
    m->continuous |= meta->continuous;
}

/* Lines say which build it is too, where both know theirs. */
static bool same_source(const struct frame *a, const struct frame *b)
{
    return a->name == b->name && a->file == b->file && a->caller == b->caller &&
           (a->line == b->line || a->line == 0 || b->line == 0);
}

uint32_t profile_named_frame(struct profile *p, const struct frame *frame)
{
    uint32_t id = profile_frame(p, frame);
    if (id == 0 || frame->address == 0) {
        return id;
    }
    if (same_source(&p->frames.at[id], frame)) {
        return id;
    }
    struct frame plain = *frame;
    plain.address = 0;
    return profile_frame(p, &plain);
}

/* ---- a whole profile ---- */

/* By id in `from`: that in `into`, 0 where it did not fit. */
struct merge {
    struct profile *into;
    const struct profile *from;
    uint32_t *strings, *modules, *frames, *processes, *threads, *nodes, *samples;
    uint64_t later_ns; /* by so much than `into` it began */
    uint32_t events[PROFILE_EVENTS_MAX];
};

/* Not all of the strings are in use: names of what was dropped, texts of `meta`. */
static uint32_t string_of(struct merge *m, uint32_t id)
{
    if (id != 0 && m->strings[id] == 0) {
        m->strings[id] = profile_string(m->into, profile_text(m->from, id));
    }
    return m->strings[id];
}

static void add_modules(struct merge *m)
{
    for (uint32_t i = 1; i < m->from->modules.len; i++) {
        struct module module = m->from->modules.at[i];
        module.path = string_of(m, module.path);
        module.build_id = string_of(m, module.build_id);
        m->modules[i] = profile_module(m->into, &module);
    }
}

static uint32_t add_frame(struct merge *m, uint32_t id, uint32_t caller)
{
    struct frame frame = m->from->frames.at[id];
    frame.module = m->modules[frame.module];
    frame.name = string_of(m, frame.name);
    frame.system_name = string_of(m, frame.system_name);
    frame.file = string_of(m, frame.file);
    frame.caller = caller;
    return profile_named_frame(m->into, &frame);
}

/* The callers of a frame come after it, and it is found by them. */
static void add_frames(struct merge *m)
{
    for (uint32_t i = 1; i < m->from->frames.len; i++) {
        uint32_t chain[PROFILE_INLINES_MAX], caller = 0;
        for (size_t depth = profile_expand(m->from, i, chain); depth-- > 0;) {
            uint32_t id = chain[depth];
            m->frames[id] = m->frames[id] != 0 ? m->frames[id] : add_frame(m, id, caller);
            caller = m->frames[id];
        }
    }
}

static void add_processes(struct merge *m)
{
    for (uint32_t i = 1; i < m->from->processes.len; i++) {
        struct process process = m->from->processes.at[i];
        size_t known = m->into->processes.len;
        process.name = string_of(m, process.name);
        process.container = string_of(m, process.container);
        process.appid = string_of(m, process.appid);
        process.runtime = string_of(m, process.runtime);
        process.entry = string_of(m, process.entry);
        process.remedy = string_of(m, process.remedy);
        uint32_t id = m->processes[i] = profile_process(m->into, &process);
        if (id != 0 && m->into->processes.len == known) {
            struct process *there = &m->into->processes.at[id];
            uint64_t cpu_ns = there->cpu_ns + process.cpu_ns;
            *there = process; /* what is known of it later is more */
            there->cpu_ns = cpu_ns;
        }
    }
}

static void add_threads(struct merge *m)
{
    for (uint32_t i = 1; i < m->from->threads.len; i++) {
        const struct thread *thread = &m->from->threads.at[i];
        struct str labels[PROFILE_LABELS];
        for (unsigned l = 0; l < PROFILE_LABELS; l++) {
            labels[l] = profile_text(m->from, thread->label[l]);
        }
        uint32_t plain = profile_thread(m->into, m->processes[thread->process], thread->tid,
                                        string_of(m, thread->name));
        m->threads[i] = plain != 0 ? profile_labelled(m->into, plain, labels) : 0;
    }
}

static void add_samples(struct merge *m)
{
    for (uint32_t i = 1; i < m->from->samples.len; i++) {
        const struct sample *sample = &m->from->samples.at[i];
        uint32_t thread = m->threads[sample->thread];
        m->samples[i] = profile_add(m->into, thread, m->nodes[sample->node], sample->cpu_ns, sample->count);
    }
    vec_each(&m->from->moments.list, moment)
    {
        uint32_t sample = m->samples[moment->sample];
        if (sample != 0) {
            moments_add(&m->into->moments, sample, m->later_ns + moment->step * m->from->moments.step_ns,
                        moment->weight * NS_PER_US);
        }
    }
    vec_each(&m->from->waits, wait)
    {
        profile_add_wait(m->into, m->threads[wait->thread], m->nodes[wait->node], wait->wait_ns);
    }
    vec_each(&m->from->occurrences, occurrence)
    {
        profile_add_event(m->into, m->events[occurrence->event], m->threads[occurrence->thread],
                          m->nodes[occurrence->node], occurrence->amount);
    }
}

static uint32_t event_of(struct merge *m, const struct event_type *type)
{
    uint32_t name = string_of(m, type->name), unit = string_of(m, type->unit);
    for (uint32_t i = 0; i < m->into->event_types.len; i++) {
        if (m->into->event_types.at[i].name == name) {
            return i;
        }
    }
    uint32_t id = profile_event_type(m->into, "", "");
    if (id < PROFILE_EVENTS_MAX) {
        m->into->event_types.at[id] = (struct event_type){name, unit};
    }
    return id;
}

/* The earlier of both is the beginning of what they are together. Only the first that has moments brings them to a
 * profile that has none. */
static void join_moments(struct merge *m)
{
    struct profile *into = m->into;
    uint64_t there_ns = into->meta.start_wall_ns, here_ns = m->from->meta.start_wall_ns;
    if (m->from->moments.list.len > 0 && into->moments.most == 0) {
        profile_keep_moments(into, 0);
    }
    if (there_ns != 0 && here_ns != 0 && here_ns < there_ns) {
        moments_shift(&into->moments, there_ns - here_ns);
    }
    m->later_ns = there_ns != 0 && here_ns > there_ns ? here_ns - there_ns : 0;
}

static void add_meta(struct merge *m)
{
    struct profile_meta meta = m->from->meta;
    join_moments(m);
    meta.service = string_of(m, meta.service);
    meta.host = string_of(m, meta.host);
    meta.mode = string_of(m, meta.mode);
    meta.reason = string_of(m, meta.reason);
    meta.budget = string_of(m, meta.budget);
    profile_merge_meta(m->into, &meta);
    m->into->watches_waits |= m->from->watches_waits;
    m->into->collapsed += m->from->collapsed;
    m->into->dropped += m->from->dropped;
}

static void add_all(struct merge *m)
{
    add_meta(m);
    add_modules(m);
    add_frames(m);
    add_processes(m);
    add_threads(m);
    for (uint32_t i = 1; i < m->from->nodes.len; i++) {
        const struct node *node = &m->from->nodes.at[i];
        uint32_t parent = m->nodes[node->parent];
        bool fits = node->parent == 0 || parent != 0;
        m->nodes[i] = fits ? profile_child(m->into, parent, m->frames[node->frame]) : 0;
    }
    for (uint32_t i = 0; i < m->from->event_types.len; i++) {
        m->events[i] = event_of(m, &m->from->event_types.at[i]);
    }
    add_samples(m);
}

bool profile_merge(struct profile *into, const struct profile *from, struct err *err)
{
    size_t counts[] = {from->strings.len, from->modules.len, from->frames.len,
                       from->processes.len, from->threads.len, from->nodes.len, from->samples.len};
    size_t all = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        all += counts[i] + 1;
    }
    uint32_t *ids = calloc(all, sizeof *ids);
    if (ids == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory to merge %zu ids", all);
    }
    struct merge m = {.into = into, .from = from};
    uint32_t **tables[] = {&m.strings, &m.modules, &m.frames, &m.processes, &m.threads, &m.nodes, &m.samples};
    uint32_t *next = ids;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *tables[i] = next;
        next += counts[i] + 1;
    }
    add_all(&m);
    free(ids);
    return true;
}
