#include "profile/merge.h"

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
    if (meta->own_rss_peak_bytes > m->own_rss_peak_bytes) {
        m->own_rss_peak_bytes = meta->own_rss_peak_bytes;
    }
    if (m->mean_hz == 0 || (meta->mean_hz > 0 && meta->mean_hz < m->mean_hz)) {
        m->mean_hz = meta->mean_hz;
    }
    first_known(&m->budget, meta->budget);
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
