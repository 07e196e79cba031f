#include "base/time.h"
#include "capture/session/session_private.h"

#include <string.h>

enum {
    FLUSH_MOST_MS = 5, /* for a catcher that does not get its CPU */
};

static void on_sample(struct session *s, struct record *record, const struct caught *caught)
{
    if (record->pid == 0 || record->pid == UINT32_MAX) {
        s->invisible++; /* of another PID namespace, or reaped while it was sampled */
        return;
    }
    if (session_is_double(s, record) || !session_takes_sample(s, record) ||
        session_leaves_out(s, record)) {
        return;
    }
    stacks_add(&s->stacks, s->profile, record, caught);
    s->any_stack = true;
}

enum rung session_perf_rung(const struct session *s)
{
    return s->access.kernel ? RUNG_PERF : RUNG_PERF_USER;
}

/* What a followed process starts, or becomes, is followed as it was. */
static void on_task(struct session *s, const struct record *record)
{
    targets_take(&s->targets, record);
    struct target *target = targets_find(&s->targets, record->pid);
    if (target != NULL && (record->kind == RECORD_FORK || target->rung == RUNG_UNKNOWN)) {
        target->rung = (uint8_t)session_perf_rung(s);
    }
    if (record->kind == RECORD_FORK) {
        s->tasks_born++;
        session_note_birth(s, record);
    }
    session_judge(s, record);
}

/* A record, and behind it what a catcher read at its moment. */
static void on_record(void *context, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    size_t own = record_bytes(ptr, len);
    if (record_tag(ptr, own) != 0) {
        session_on_other(s, ptr, own);
        return;
    }
    const struct caught *caught = own < len ? (const void *)((const char *)ptr + own) : NULL;
    if (!record_parse(ptr, own, &s->format, &record, NULL)) {
        return; /* was counted when it was pushed */
    }
    switch (record.kind) {
    case RECORD_SAMPLE:
        on_sample(s, &record, caught);
        break;
    case RECORD_COMM:
    case RECORD_FORK:
        on_task(s, &record);
        break;
    case RECORD_LOST:
        s->lost_records += record.as.lost.count;
        break;
    case RECORD_EXIT:
        if (session_goes_on(s, &record)) {
            break;
        }
        if (s->watches_off_cpu) {
            offcpu_exit(&s->offcpu, s->profile, record.pid, record.tid);
        }
        targets_take(&s->targets, &record);
        break;
    default:
        targets_take(&s->targets, &record);
        session_judge(s, &record);
        break;
    }
}

void *session_room(struct session *s, uint64_t time_ns, size_t bytes)
{
    void *room = order_room(&s->order, time_ns, bytes);
    if (room == NULL) {
        order_flush(&s->order, on_record, s);
        room = order_room(&s->order, time_ns, bytes);
    }
    s->lost_records += room == NULL;
    return room;
}

static void on_ring_record(void *context, unsigned ring, const void *ptr, size_t len)
{
    struct session *s = context;
    struct record record;
    (void)ring;
    s->records++;
    if (!record_parse(ptr, len, &s->format, &record, NULL)) {
        s->malformed++;
        return;
    }
    size_t kept = record_trimmed_bytes(&record, len);
    void *room = session_room(s, record.time_ns, kept);
    if (room == NULL) {
        return;
    }
    record_trim(ptr, len, &record, room);
    if (s->observer != NULL) {
        s->observer->ring(s->observer->context, room, kept);
    }
}

/* What a catcher hands over was trimmed there. */
static void on_caught_record(void *context, unsigned cpu, const void *ptr, size_t len,
                             const struct caught *caught)
{
    struct session *s = context;
    struct record record;
    (void)cpu;
    s->records++;
    if (!record_parse(ptr, len, &s->format, &record, NULL)) {
        s->malformed++;
        return;
    }
    size_t more = caught == NULL ? 0 : caught->bytes;
    unsigned char *room = session_room(s, record.time_ns, len + more);
    if (room != NULL) {
        memcpy(room, ptr, len);
        if (more > 0) {
            memcpy(room + len, caught, more);
        }
    }
}

static void on_tick(void *context, unsigned cpu, const void *record, size_t len,
                    const struct caught *caught)
{
    struct session *s = context;
    (void)cpu;
    (void)record;
    (void)len;
    s->records++;
    s->any_stack = stacks_add_tick(&s->stacks, s->profile, caught) || s->any_stack;
}

static void on_settled(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns)
{
    struct session *s = context;
    stacks_add_settled(&s->stacks, s->profile, pid, tid, cpu_ns);
}

static void drain_ticks(struct session *s, bool all)
{
    if (s->catch != NULL) {
        catch_drain(s->catch, on_tick, s);
    }
    if (s->catch != NULL && all) {
        catch_settle(s->catch, on_settled, s);
    }
}

/* Takes what is in the rings; the answer is up to which time that is everything. */
static uint64_t take_rings(struct session *s, bool all)
{
    uint64_t taken_ns = UINT64_MAX;
    perf_drain(&s->perf, on_ring_record, s);
    session_drain_others(s);
    if (s->catch != NULL && all) {
        catch_flush(s->catch, FLUSH_MOST_MS * NS_PER_MS);
    } else if (s->catch != NULL) {
        taken_ns = catch_taken_ns(s->catch, ROUND_CAUGHT_MS * NS_PER_MS);
    }
    if (s->catch != NULL) {
        catch_drain(s->catch, on_caught_record, s);
    }
    if (s->observer != NULL) {
        s->observer->round(s->observer->context, all);
    }
    return taken_ns;
}

void session_drain(struct session *s)
{
    if (!s->perf_on) {
        drain_ticks(s, true);
        return;
    }
    (void)take_rings(s, true);
    order_flush(&s->order, on_record, s);
}

/* One round; false when nothing came. All rings are looked at twice: what came before the second look is
 * then safe to hand out. */
bool session_drain_round(struct session *s)
{
    uint64_t before = s->records;
    if (!s->perf_on) {
        drain_ticks(s, false);
        return s->records != before;
    }
    uint64_t taken_ns = take_rings(s, false);
    bool any = s->records != before;
    if (any) {
        order_pass(&s->order);
        taken_ns = take_rings(s, false);
    }
    order_round_until(&s->order, taken_ns, on_record, s);
    return any;
}
