/* extra_events: opens the events of -e and --off-cpu, and adds their samples to the profile by weight: the event's
 * period, or the one that the kernel chose for the sample. The end of a window compares these weights with the kernel's
 * own counts: what is missing becomes "[lost]", what is too much belongs to the next window. */
#include "capture/stacks/extra_events.h"

static bool is_open(const struct extra_events *o, size_t other)
{
    return o->perf != NULL && perf_has_extra(o->perf) && o->open[other].refused.kind == ERR_NONE;
}

static struct perf_extra asked_for(const struct event *event, const struct settings *settings)
{
    uint32_t hz = event->frequency_hz > 0 ? event->frequency_hz : settings->sampling.frequency_hz;
    return (struct perf_extra){.name = event->name,
                               .type = event->type,
                               .config = event->config,
                               .period = event->period,
                               .frequency_hz = hz};
}

/* Without the right to sample kernel code such events open, and never come. */
static void refuse_hidden(struct extra_events *o)
{
    for (size_t i = 0; i < o->switches; i++) {
        struct perf_extra *one = &o->open[i];
        if (o->events->at[i].in_kernel && !perf_sampling(o->perf)->kernel) {
            err_set(&one->refused, ERR_DENIED, 0,
                    "%s happen in the kernel, which may not be sampled here; set "
                    "kernel.perf_event_paranoid to 1 or less on the host, or add CAP_PERFMON",
                    one->name);
        }
    }
}

bool extra_open(struct extra_events *o, struct perf *perf, const struct settings *settings)
{
    *o = (struct extra_events){.perf = perf, .events = &settings->sampling.events};
    for (size_t i = 0; i < settings->sampling.events.count; i++) {
        o->open[o->count++] = asked_for(&settings->sampling.events.at[i], settings);
    }
    o->switches = o->count;
    if (settings->sampling.off_cpu) {
        o->open[o->count++] = (struct perf_extra){.name = "context switches", .switches = true};
    }
    refuse_hidden(o);
    bool any = o->count > 0 && perf_open_extra(perf, o->open, o->count);
    o->perf = any ? perf : NULL;
    return any;
}

bool extra_tell_switches(const struct extra_events *o)
{
    return o->switches < o->count && is_open(o, o->switches);
}

struct record_format extra_format(const struct extra_events *o, unsigned other)
{
    unsigned known = other < o->count ? other : 0;
    return (struct record_format){perf_extra_sample_type(o->perf, known),
                                  perf_sampling(o->perf)->registers};
}

void extra_begin(struct extra_events *o, struct profile *p)
{
    for (size_t i = 0; o->perf != NULL && i < o->switches; i++) {
        o->type[i] = is_open(o, i) ? profile_event_type(p, o->events->at[i].label, "count")
                                   : (uint32_t)PROFILE_EVENTS_MAX;
    }
}

static uint64_t scaled(const struct extra_events *o, size_t other, uint64_t amount)
{
    return (uint64_t)((double)amount * o->events->at[other].scale + 0.5);
}

static uint64_t weight_of(const struct extra_events *o, unsigned other, const struct record *sample)
{
    return o->open[other].period > 0 ? o->open[other].period : sample->as.sample.period_ns;
}

void extra_drop(struct extra_events *o, unsigned other, const struct record *sample)
{
    if (other < o->switches) {
        o->weighed[other] += weight_of(o, other, sample);
    }
}

void extra_add(struct extra_events *o, struct stacks *stacks, struct profile *p, unsigned other,
                const struct record *sample)
{
    if (other >= o->switches) {
        return;
    }
    uint64_t weight = weight_of(o, other, sample);
    uint32_t thread;
    uint32_t node = stacks_node_of_event(stacks, p, sample, &thread);
    o->weighed[other] += weight;
    profile_add_event(p, o->type[other], thread, node, scaled(o, other, weight));
}

/* A thread of the process; of one that is not known any more, of the first. */
static uint32_t thread_in(struct targets *targets, struct profile *p, uint32_t pid)
{
    struct target *target = targets_find(targets, pid);
    return target != NULL ? targets_thread_id(targets, p, target, pid) : p->threads.len > 1;
}

void extra_count(struct extra_events *o)
{
    for (size_t i = 0; i < o->switches; i++) {
        o->counted[i] =
            is_open(o, i) ? perf_take_extra_count(o->perf, (unsigned)i, &o->pid[i]) : 0;
    }
}

/* What the kernel counted and no sample stands for. Samples taken since the count was are the next
 * window's. */
static void settle(struct extra_events *o, size_t other, uint32_t thread, struct profile *p)
{
    uint64_t counted = o->counted[other], weighed = o->weighed[other];
    if (counted > weighed) {
        profile_add_event(p, o->type[other], thread, 0, scaled(o, other, counted - weighed));
    }
    o->weighed[other] = counted > weighed ? 0 : weighed - counted;
}

void extra_end(struct extra_events *o, struct targets *targets, struct profile *p)
{
    for (size_t i = 0; i < o->switches; i++) {
        if (is_open(o, i)) {
            settle(o, i, thread_in(targets, p, o->pid[i]), p);
        }
    }
}
