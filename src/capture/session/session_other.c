#include "capture/session/session_private.h"
#include "os/clock.h"

/* What a record from the rings of other events carries on its way through the order of time:
 * which event's it is, plus one. */
enum { TAG_OF_FIRST = 1 };

void session_open_others(struct session *s)
{
    if (s->perf_on) {
        (void)others_open(&s->others, &s->perf, s->settings);
    }
}

void session_prepare_off_cpu(struct session *s)
{
    s->watches_off_cpu =
        others_tell_switches(&s->others) &&
        offcpu_init(&s->offcpu, &s->stacks, s->reads_runtimes ? &s->readers : NULL, &s->targets,
                    clock_mono_ns(), NULL);
}

static const char *asked_by(const struct session *s, size_t other)
{
    return other == s->others.switches ? "--off-cpu" : "-e";
}

void session_say_others(struct session *s)
{
    if (!s->perf_on && s->settings->sampling.events.count > 0) {
        log_say(&s->log, LOG_WARNING, "-e needs perf events: %s", s->access.why.text);
    }
    if (!s->perf_on && s->settings->sampling.off_cpu) {
        log_say(&s->log, LOG_WARNING,
                "--off-cpu needs perf events; --wall shows where threads of interpreters wait");
    }
    for (size_t i = 0; i < s->others.count; i++) {
        if (s->others.open[i].refused.kind != ERR_NONE) {
            log_say(&s->log, LOG_WARNING, "%s: %s; CPU time is sampled all the same",
                    asked_by(s, i), s->others.open[i].refused.text);
        }
    }
}

/* ---- records ---- */

static bool is_of_use(const struct session *s, unsigned other, const struct record *record)
{
    if (record->kind == RECORD_SAMPLE) {
        return other < s->others.switches;
    }
    return s->watches_off_cpu && (record->kind == RECORD_SWITCH || record->kind == RECORD_LOST);
}

/* What does not fit is no lost CPU time: the kernel's count tells of it. */
static void on_ring_record(void *context, unsigned other, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    const struct record_format format = others_format(&s->others, other);
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

void session_drain_others(struct session *s)
{
    if (s->others.perf != NULL) {
        perf_drain_others(&s->perf, on_ring_record, s);
    }
}

void session_on_other(struct session *s, const void *ptr, size_t len)
{
    struct record record;
    unsigned other = record_tag(ptr, len) - TAG_OF_FIRST;
    const struct record_format format = others_format(&s->others, other);
    bool good = record_parse(ptr, len, &format, &record, NULL);
    if (good && record.kind == RECORD_LOST) {
        offcpu_lost(&s->offcpu, s->profile);
    }
    if (!good || record.pid == 0 || record.pid == UINT32_MAX) {
        return;
    }
    if (record.kind == RECORD_SAMPLE && session_is_left_out(s, &record)) {
        others_drop(&s->others, other, &record);
    } else if (record.kind == RECORD_SAMPLE) {
        others_add(&s->others, &s->stacks, s->profile, other, &record);
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

void session_begin_others(struct session *s)
{
    others_begin(&s->others, s->profile);
    if (!s->offcpu.listed_all) { /* what waits already waits in this window, as far as it is seen */
        s->offcpu.first_ns = s->window_start_ns;
    }
    s->profile->watches_waits = s->watches_off_cpu || s->watches_waits;
}

void session_count_others(struct session *s)
{
    others_count(&s->others);
}

void session_end_others(struct session *s)
{
    others_end(&s->others, &s->targets, s->profile);
    if (s->watches_off_cpu) {
        offcpu_end_window(&s->offcpu, s->profile, clock_mono_ns());
    }
    if (s->watches_off_cpu && s->offcpu.denied) {
        log_once(&s->log, LOG_WARNING,
                 "--off-cpu: where some threads sleep may not be read: their time is \"[off-CPU]\"; "
                 "run as their user, or add SYS_PTRACE");
    }
    if (s->perf_on && perf_others_short(&s->perf) > 0) {
        log_once(&s->log, LOG_WARNING,
                 "not enough descriptors to sample other events in all threads; raise ulimit -n");
    }
}
