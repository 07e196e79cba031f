#include "capture/run/run_private.h"
#include "os/clock.h"

/* What a record from the rings of other events carries on its way through the order of time:
 * which event's it is, plus one. */
enum { TAG_OF_FIRST = 1 };

void session_open_extra(struct session *s)
{
    if (s->perf_on) {
        (void)extra_open(&s->extra, &s->perf, s->settings);
    }
}

void session_prepare_off_cpu(struct session *s)
{
    s->watches_off_cpu =
        extra_tell_switches(&s->extra) &&
        offcpu_init(&s->offcpu, &s->stacks, s->reads_runtimes ? &s->readers : NULL, &s->targets,
                    clock_mono_ns(), NULL);
}

static const char *asked_by(const struct session *s, size_t other)
{
    return other == s->extra.switches ? "--off-cpu" : "-e";
}

void session_log_extra(struct session *s)
{
    if (!s->perf_on && s->settings->events.count > 0) {
        log_say(&s->log, LOG_WARNING, "-e needs perf events: %s", s->access.why.text);
    }
    if (!s->perf_on && s->settings->off_cpu) {
        log_say(&s->log, LOG_WARNING,
                "--off-cpu needs perf events; --wall shows where threads of interpreters wait");
    }
    for (size_t i = 0; i < s->extra.count; i++) {
        if (s->extra.open[i].refused.kind != ERR_NONE) {
            log_say(&s->log, LOG_WARNING, "%s: %s; CPU time is sampled all the same",
                    asked_by(s, i), s->extra.open[i].refused.text);
        }
    }
}

/* ---- records ---- */

static bool is_of_use(const struct session *s, unsigned other, const struct record *record)
{
    if (record->kind == RECORD_SAMPLE) {
        return other < s->extra.switches;
    }
    return s->watches_off_cpu && (record->kind == RECORD_SWITCH || record->kind == RECORD_LOST);
}

/* What does not fit is no lost CPU time: the kernel's count tells of it. */
static void on_ring_record(void *context, unsigned other, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    const struct record_format format = extra_format(&s->extra, other);
    uint64_t lost = s->lost_records;
    s->records++;
    if (!record_parse(ptr, len, &format, &record, NULL)) {
        s->malformed++;
        return;
    }
    if (!is_of_use(s, other, &record)) {
        return;
    }
    size_t kept = record_trimmed_bytes(&record, len);
    void *room = session_room(s, record.time_ns, kept);
    s->lost_records = lost;
    if (room != NULL) {
        record_trim(ptr, len, &record, room);
        record_set_tag(room, kept, TAG_OF_FIRST + other);
    }
}

void session_drain_extra(struct session *s)
{
    if (s->extra.perf != NULL) {
        perf_drain_extra(&s->perf, on_ring_record, s);
    }
}

void session_on_other(struct session *s, const void *ptr, size_t len)
{
    struct record record;
    unsigned other = record_tag(ptr, len) - TAG_OF_FIRST;
    const struct record_format format = extra_format(&s->extra, other);
    bool good = record_parse(ptr, len, &format, &record, NULL);
    if (good && record.kind == RECORD_LOST) {
        offcpu_lost(&s->offcpu, s->profile);
    }
    if (!good || record.pid == 0 || record.pid == UINT32_MAX) {
        return;
    }
    if (record.kind == RECORD_SAMPLE && session_is_excluded(s, &record)) {
        extra_drop(&s->extra, other, &record);
    } else if (record.kind == RECORD_SAMPLE) {
        extra_add(&s->extra, &s->stacks, s->profile, other, &record);
    } else if (record.kind == RECORD_SWITCH) {
        offcpu_switch(&s->offcpu, s->profile, &record);
    }
}

/* ---- windows ---- */

void session_look_off_cpu(struct session *s, uint64_t now_ns)
{
    if (s->watches_off_cpu && offcpu_due(&s->offcpu, now_ns)) {
        offcpu_look(&s->offcpu, s->profile, now_ns);
    }
}

void session_begin_extra(struct session *s)
{
    extra_begin(&s->extra, s->profile);
    if (!s->offcpu.listed_all) { /* what waits already waits in this window, as far as it is seen */
        s->offcpu.first_ns = s->window_start_ns;
    }
    s->profile->watches_waits = s->watches_off_cpu || s->watches_waits;
}

void session_count_extra(struct session *s)
{
    extra_count(&s->extra);
}

void session_end_extra(struct session *s)
{
    extra_end(&s->extra, &s->targets, s->profile);
    if (s->watches_off_cpu) {
        offcpu_end_window(&s->offcpu, s->profile, clock_mono_ns());
    }
    if (s->watches_off_cpu && s->offcpu.denied) {
        log_once(&s->log, LOG_WARNING,
                 "--off-cpu: where some threads sleep may not be read: their time is \"[off-CPU]\"; "
                 "run as their user, or add SYS_PTRACE");
    }
    if (s->perf_on && perf_extra_short(&s->perf) > 0) {
        log_once(&s->log, LOG_WARNING,
                 "not enough descriptors to sample other events in all threads; raise ulimit -n");
    }
}
