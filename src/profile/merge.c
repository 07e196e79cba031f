#include "profile/merge.h"

#include <stdlib.h>

/* A node whose stack did not fit: everything below it is lost too. */
#define LOST_NODE UINT32_MAX

/* For each id of `from` the id in `into`; allocated as one block. */
struct ids {
    uint32_t *module, *frame, *process, *thread, *node;
};

static uint32_t text(struct profile *into, const struct profile *from, uint32_t string)
{
    return profile_string(into, profile_text(from, string));
}

static void earliest(uint64_t *into, uint64_t other)
{
    if (*into == 0 || (other != 0 && other < *into)) {
        *into = other;
    }
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
    earliest(&m->start_wall_ns, meta->start_wall_ns);
    if (meta->end_wall_ns > m->end_wall_ns) {
        m->end_wall_ns = meta->end_wall_ns;
    }
    if (m->period_ns == 0) {
        m->period_ns = meta->period_ns;
        m->frequency_hz = meta->frequency_hz;
    }
    first_known(&m->service, meta->service);
    first_known(&m->host, meta->host);
    first_known(&m->mode, meta->mode);
    first_known(&m->reason, meta->reason);
    m->own_cpu_ns += meta->own_cpu_ns;
    if (meta->own_rss_bytes > m->own_rss_bytes) {
        m->own_rss_bytes = meta->own_rss_bytes;
    }
    m->lost_records += meta->lost_records;
    for (unsigned i = 0; i < STACK_END_COUNT; i++) {
        m->stack_ends[i] += meta->stack_ends[i];
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

static void merge_modules(struct profile *into, const struct profile *from, struct ids *ids)
{
    for (size_t i = 1; i < from->modules.len; i++) {
        struct module m = from->modules.at[i];
        m.path = text(into, from, m.path);
        m.build_id = text(into, from, m.build_id);
        m.image = 0; /* a key of the other profile's symbol store */
        ids->module[i] = profile_module(into, &m);
    }
}

static uint32_t merged_frame(struct profile *into, const struct profile *from,
                             const struct ids *ids, uint32_t frame)
{
    struct frame f = from->frames.at[frame];
    uint32_t old_name = f.name, old_caller = f.caller;
    f.module = ids->module[f.module];
    f.name = text(into, from, f.name);
    f.system_name = text(into, from, f.system_name);
    f.file = text(into, from, f.file);
    f.caller = ids->frame[f.caller];
    bool fits = (f.name != 0 || old_name == 0) && (f.caller != 0 || old_caller == 0);
    return fits ? profile_named_frame(into, &f) : 0;
}

/* What a frame is inlined into may stand behind it, and goes first. */
static void merge_frames(struct profile *into, const struct profile *from, struct ids *ids)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    for (size_t i = 1; i < from->frames.len; i++) {
        for (size_t at = profile_expand(from, (uint32_t)i, chain); at-- > 0;) {
            if (ids->frame[chain[at]] == 0) {
                ids->frame[chain[at]] = merged_frame(into, from, ids, chain[at]);
            }
        }
    }
}

static void merge_process(struct profile *into, const struct profile *from, struct ids *ids,
                          size_t i)
{
    struct process t = from->processes.at[i];
    uint64_t cpu_ns = t.cpu_ns;
    t.cpu_ns = 0;
    t.name = text(into, from, t.name);
    t.container = text(into, from, t.container);
    t.appid = text(into, from, t.appid);
    t.runtime = text(into, from, t.runtime);
    t.remedy = text(into, from, t.remedy);
    ids->process[i] = profile_process(into, &t);
    struct process *known = &into->processes.at[ids->process[i]];
    if (ids->process[i] != 0) {
        known->cpu_ns += cpu_ns;
        first_known(&known->container, t.container);
        first_known(&known->appid, t.appid);
        first_known(&known->runtime, t.runtime);
        first_known(&known->remedy, t.remedy);
    }
}

static void merge_threads(struct profile *into, const struct profile *from, struct ids *ids)
{
    for (size_t i = 1; i < from->processes.len; i++) {
        merge_process(into, from, ids, i);
    }
    for (size_t i = 1; i < from->threads.len; i++) {
        struct thread t = from->threads.at[i];
        ids->thread[i] = profile_thread(into, ids->process[t.process], t.tid,
                                        text(into, from, t.name));
    }
}

/* A parent always comes before its children. */
static void merge_nodes(struct profile *into, const struct profile *from, struct ids *ids)
{
    for (size_t i = 1; i < from->nodes.len; i++) {
        uint32_t parent = ids->node[from->nodes.at[i].parent];
        uint32_t frame = ids->frame[from->nodes.at[i].frame];
        uint32_t node = parent == LOST_NODE ? 0 : profile_child(into, parent, frame);
        ids->node[i] = node == 0 ? LOST_NODE : node;
    }
}

static void merge_samples(struct profile *into, const struct profile *from, const struct ids *ids)
{
    for (size_t i = 1; i < from->samples.len; i++) {
        const struct sample *s = &from->samples.at[i];
        uint32_t node = ids->node[s->node];
        profile_add(into, ids->thread[s->thread], node == LOST_NODE ? 0 : node, s->cpu_ns,
                    s->count);
    }
}

static void merge_texts_of_meta(struct profile *into, const struct profile *from)
{
    struct profile_meta meta = from->meta;
    meta.service = text(into, from, meta.service);
    meta.host = text(into, from, meta.host);
    meta.mode = text(into, from, meta.mode);
    meta.reason = text(into, from, meta.reason);
    profile_merge_meta(into, &meta);
    into->dropped += from->dropped;
}

bool profile_merge(struct profile *into, const struct profile *from, struct err *err)
{
    size_t count = from->modules.len + from->frames.len + from->processes.len +
                   from->threads.len + from->nodes.len;
    uint32_t *block = calloc(count, sizeof *block);
    if (block == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory to merge %zu samples", from->samples.len);
    }
    struct ids ids;
    ids.module = block;
    ids.frame = ids.module + from->modules.len;
    ids.process = ids.frame + from->frames.len;
    ids.thread = ids.process + from->processes.len;
    ids.node = ids.thread + from->threads.len;
    merge_texts_of_meta(into, from);
    merge_modules(into, from, &ids);
    merge_frames(into, from, &ids);
    merge_threads(into, from, &ids);
    merge_nodes(into, from, &ids);
    merge_samples(into, from, &ids);
    free(block);
    return true;
}
