/*
 * The records of extra events and of context switches: opened, drained, put in the order of time with a tag, and handed
 * to extra_events.h and offcpu.h.
 */
#include "capture/stacks/extra_records.h"
#include "capture/stacks/records.h"
#include "os/clock.h"

#include <stdlib.h>

/* What a record from the rings of extra events carries on its way through the order of time: which event's it is,
 * plus one. */
enum { TAG_OF_FIRST = 1 };

struct extra_records {
    struct shared *shared;
    struct follow *follow;
    struct extra_records_path path;
    struct extra_events events;
    bool watches_off_cpu;
    struct offcpu offcpu;
};

struct extra_records *extra_records_new(struct shared *shared)
{
    struct extra_records *e = calloc(1, sizeof *e);
    if (e != NULL) {
        e->shared = shared;
    }
    if (e != NULL && shared->perf_on) {
        (void)extra_open(&e->events, shared->perf, shared->settings);
    }
    return e;
}

void extra_records_connect(struct extra_records *e, struct follow *f, const struct extra_records_path *path)
{
    e->follow = f;
    e->path = *path;
    e->watches_off_cpu =
        extra_tell_switches(&e->events) &&
        offcpu_init(&e->offcpu, path->stacks, catching_readers(path->catching), &f->targets,
                    clock_mono_ns(), NULL);
}

static void release(void *state)
{
    struct extra_records *e = state;
    if (e->watches_off_cpu) {
        offcpu_release(&e->offcpu);
    }
    free(e);
}

bool extra_records_watch_off_cpu(const struct extra_records *e)
{
    return e->watches_off_cpu;
}

static const char *asked_by(const struct extra_records *e, size_t other)
{
    return other == e->events.switches ? "--off-cpu" : "-e";
}

void extra_records_report(const struct extra_records *e)
{
    if (!e->shared->perf_on && e->shared->settings->sampling.events.count > 0) {
        log_say(&e->shared->log, LOG_WARNING, "-e needs perf events: %s", e->shared->access.why.text);
    }
    if (!e->shared->perf_on && e->shared->settings->sampling.off_cpu) {
        log_say(&e->shared->log, LOG_INFO,
                "--off-cpu without perf events: how long threads wait is exact; where is looked at ten times a second, "
                "so the places of shorter waits are an estimate");
    }
    for (size_t i = 0; i < e->events.count; i++) {
        if (e->events.open[i].refused.kind != ERR_NONE) {
            log_say(&e->shared->log, LOG_WARNING, "%s: %s; CPU time is sampled all the same",
                    asked_by(e, i), e->events.open[i].refused.text);
        }
    }
}

/* ---- records ---- */

static bool is_of_use(const struct extra_records *e, unsigned other, const struct record *record)
{
    if (record->kind == RECORD_SAMPLE) {
        return other < e->events.switches;
    }
    return e->watches_off_cpu && (record->kind == RECORD_SWITCH || record->kind == RECORD_LOST);
}

/* What does not fit is no lost CPU time: the kernel's count tells of it. */
static void on_ring_record(void *context, unsigned other, const void *ptr, size_t len)
{
    struct extra_records *e = context;
    struct record record;
    const struct record_format format = extra_format(&e->events, other);
    uint64_t lost = e->shared->window.lost_records;
    bool good = record_parse(ptr, len, &format, &record, NULL);
    records_count_one(e->path.records, !good);
    if (!good) {
        return;
    }
    if (!is_of_use(e, other, &record)) {
        return;
    }
    size_t kept = record_trimmed_bytes(&record, len);
    void *room = records_room(e->path.records, record.time_ns, kept);
    e->shared->window.lost_records = lost;
    if (room != NULL) {
        record_trim(ptr, len, &record, room);
        record_set_tag(room, kept, TAG_OF_FIRST + other);
    }
}

void extra_records_drain(struct extra_records *e)
{
    if (e->events.perf != NULL) {
        perf_drain_extra(e->shared->perf, on_ring_record, e);
    }
}

void extra_records_take(struct extra_records *e, const void *ptr, size_t len)
{
    struct record record;
    unsigned other = record_tag(ptr, len) - TAG_OF_FIRST;
    const struct record_format format = extra_format(&e->events, other);
    bool good = record_parse(ptr, len, &format, &record, NULL);
    if (good && record.kind == RECORD_LOST) {
        offcpu_lost(&e->offcpu, e->shared->window.profile);
    }
    if (!good || record.pid == 0 || record.pid == UINT32_MAX) {
        return;
    }
    if (record.kind == RECORD_SAMPLE && find_is_excluded(e->path.find, &record)) {
        extra_drop(&e->events, other, &record);
    } else if (record.kind == RECORD_SAMPLE) {
        extra_add(&e->events, e->path.stacks, e->shared->window.profile, other, &record);
    } else if (record.kind == RECORD_SWITCH) {
        offcpu_switch(&e->offcpu, e->shared->window.profile, &record);
    }
}

void extra_records_exit(struct extra_records *e, const struct record *exit)
{
    if (e->watches_off_cpu) {
        offcpu_exit(&e->offcpu, e->shared->window.profile, exit->pid, exit->tid);
    }
}

/* ---- the rows ---- */

static void count(void *state)
{
    struct extra_records *e = state;
    extra_count(&e->events);
}

static void check_sleepers(void *state, uint64_t now_ns)
{
    struct extra_records *e = state;
    if (e->watches_off_cpu && offcpu_due(&e->offcpu, now_ns)) {
        offcpu_look(&e->offcpu, e->shared->window.profile, now_ns);
    }
}

static void window_begin(void *state)
{
    struct extra_records *e = state;
    extra_begin(&e->events, e->shared->window.profile);
    if (!e->offcpu.listed_all) { /* what waits already waits in this window, as far as it is seen */
        e->offcpu.first_ns = e->shared->window.start_ns;
    }
    e->shared->window.profile->watches_waits |= e->watches_off_cpu;
}

static void window_end(void *state)
{
    struct extra_records *e = state;
    struct shared *s = e->shared;
    extra_end(&e->events, &e->follow->targets, s->window.profile);
    if (e->watches_off_cpu) {
        offcpu_end_window(&e->offcpu, s->window.profile, clock_mono_ns());
    }
    if (e->watches_off_cpu && e->offcpu.denied) {
        log_once(&s->log, LOG_WARNING,
                 "--off-cpu: where some threads sleep may not be read: their time is \"[off-CPU]\"; "
                 "run as their user, or add SYS_PTRACE");
    }
    if (s->perf_on && perf_extra_short(s->perf) > 0) {
        log_once(&s->log, LOG_WARNING,
                 "not enough descriptors to sample other events in all threads; raise ulimit -n");
    }
}

const struct concern extra_counters_concern = {
    .name = "extra counters",
    .window_end = count,
};

const struct concern extra_records_concern = {
    .name = "extra records",
    .round = check_sleepers,
    .window_begin = window_begin,
    .window_end = window_end,
    .release = release,
};
