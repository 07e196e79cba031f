/*
 * The sampler's way of a record: drained, put in time order, handed out. Rings are drained twice per round: what came
 * before the second time is then safe to hand out.
 */
#include "capture/stacks/records.h"
#include "base/time.h"
#include "capture/account/accounting.h"
#include "capture/stacks/extra_records.h"
#include "os/proc.h"
#include "sample/order.h"
#include "target/stat.h"

#include <stdlib.h>
#include <string.h>

enum {
    FLUSH_MOST_MS = 5,     /* for a catcher that does not get its CPU */
    CAUGHT_LAG_MS = 100,   /* a catcher may be behind; what it hands over is named while its code is there */
};

struct records {
    struct records_path path;
    struct shared *shared;
    struct order order;
    struct records_counts counts;
};

struct records *records_new(const struct records_path *path, uint64_t order_max_bytes)
{
    struct records *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->path = *path;
        r->shared = path->follow->shared;
        order_init(&r->order, order_max_bytes);
    }
    return r;
}

static void release(void *state)
{
    struct records *r = state;
    order_release(&r->order);
    free(r);
}

void records_count_one(struct records *r, bool malformed)
{
    r->counts.records++;
    r->counts.malformed += malformed;
}

const struct records_counts *records_counts(const struct records *r)
{
    return &r->counts;
}

uint32_t records_take_born(struct records *r)
{
    uint32_t born = r->counts.born;
    r->counts.born = 0;
    return born;
}

/* ---- what is handed out ---- */

static void on_sample(struct records *r, struct record *record, const struct caught *caught)
{
    if (record->pid == 0 || record->pid == UINT32_MAX) {
        r->counts.invisible++; /* of another PID namespace, or reaped while it was sampled */
        return;
    }
    if (duplicates_has(r->path.duplicates, record) || !bursts_takes(r->path.bursts, record) ||
        find_excludes(r->path.find, record)) {
        return;
    }
    stacks_add(r->path.stacks, r->shared->window.profile, record, caught);
    r->counts.any_stack = true;
}

/* What a followed process starts, or becomes, is followed as it was. */
static void on_task(struct records *r, const struct record *record)
{
    struct shared *s = r->shared;
    if (record->kind == RECORD_COMM && (record->as.comm.exec || record->pid == record->tid)) {
        accounting_note_rename(r->path.accounting, s->window.profile, record);
    }
    targets_take(&r->path.follow->targets, record);
    struct target *target = targets_find(&r->path.follow->targets, record->pid);
    if (target != NULL && (record->kind == RECORD_FORK || target->capture_mode == CAPTURE_UNKNOWN)) {
        targets_set_mode(&r->path.follow->targets, target, follow_perf_mode(r->path.follow));
    }
    if (record->kind == RECORD_FORK) {
        r->counts.born++;
        bursts_note_birth(r->path.bursts, record);
    }
    find_evaluate(r->path.find, record);
}

/* The kernel takes its events away from a program that may not be read (a set-uid file) within its exec, and
 * says that it ended. Nothing is mapped at that moment: no process ends so by itself. */
static bool goes_on(struct records *r, const struct record *record)
{
    struct follow *f = r->path.follow;
    struct target *target = targets_find(&f->targets, record->pid);
    struct proc_stat stat;
    if (target == NULL || target->ended || target->alive != 1 || !target->reread.has_all ||
        target->maps.len > 0 || !proc_read(record->pid, 0, "stat", &f->selection.text, NULL) ||
        !stat_parse(buf_slice(&f->selection.text), &stat, NULL) || stat_is_ending(&stat)) {
        return false;
    }
    targets_set_mode(&f->targets, target, CAPTURE_PROC);
    follow_report_protected(f, target);
    return true;
}

/* A record, and behind it what a catcher read at its moment. */
static void on_record(void *context, const void *ptr, size_t len)
{
    struct records *r = context;
    struct record record;
    size_t own = record_bytes(ptr, len);
    if (record_tag(ptr, own) != 0) {
        extra_records_take(r->path.extra, ptr, own);
        return;
    }
    const struct caught *caught = own < len ? (const void *)((const char *)ptr + own) : NULL;
    if (!record_parse(ptr, own, &r->shared->format, &record, NULL)) {
        return; /* was counted when it was pushed */
    }
    switch (record.kind) {
    case RECORD_SAMPLE:
        on_sample(r, &record, caught);
        break;
    case RECORD_COMM:
    case RECORD_FORK:
        on_task(r, &record);
        break;
    case RECORD_LOST:
        r->shared->window.lost_records += record.as.lost.count;
        break;
    case RECORD_EXIT:
        if (!goes_on(r, &record)) {
            extra_records_exit(r->path.extra, &record);
            targets_take(&r->path.follow->targets, &record);
        }
        break;
    default:
        targets_take(&r->path.follow->targets, &record);
        find_evaluate(r->path.find, &record);
        break;
    }
}

void *records_room(struct records *r, uint64_t time_ns, size_t bytes)
{
    void *room = order_room(&r->order, time_ns, bytes);
    if (room == NULL) {
        order_flush(&r->order, on_record, r);
        room = order_room(&r->order, time_ns, bytes);
    }
    r->shared->window.lost_records += room == NULL;
    return room;
}

static void on_ring_record(void *context, unsigned ring, const void *ptr, size_t len)
{
    struct records *r = context;
    struct record record;
    (void)ring;
    r->counts.records++;
    if (!record_parse(ptr, len, &r->shared->format, &record, NULL)) {
        r->counts.malformed++;
        return;
    }
    size_t kept = record_trimmed_bytes(&record, len);
    void *room = records_room(r, record.time_ns, kept);
    if (room == NULL) {
        return;
    }
    record_trim(ptr, len, &record, room);
    if (r->shared->observer != NULL) {
        r->shared->observer->ring(r->shared->observer->context, room, kept);
    }
}

/* What a catcher hands over was trimmed there. */
static void on_caught_record(void *context, unsigned cpu, const void *ptr, size_t len,
                             const struct caught *caught)
{
    struct records *r = context;
    struct record record;
    (void)cpu;
    r->counts.records++;
    if (!record_parse(ptr, len, &r->shared->format, &record, NULL)) {
        r->counts.malformed++;
        return;
    }
    size_t more = caught == NULL ? 0 : caught->bytes;
    unsigned char *room = records_room(r, record.time_ns, len + more);
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
    struct records *r = context;
    (void)cpu;
    (void)record;
    (void)len;
    r->counts.records++;
    if (caught->held_ns != 0) {
        stops_note(r->path.stops, caught);
    }
    r->counts.any_stack = stacks_add_perfless(r->path.stacks, r->shared->window.profile, caught) || r->counts.any_stack;
}

static void on_settled(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns)
{
    struct records *r = context;
    stacks_settle(r->path.stacks, r->shared->window.profile, pid, tid, cpu_ns);
}

static void drain_perfless(struct records *r, bool all)
{
    struct catch *catch = catching_timer(r->path.catching);
    if (catch != NULL) {
        catch_drain(catch, on_tick, r);
    }
    if (catch != NULL && all) {
        catch_settle(catch, on_settled, r);
    }
}

/* Takes what is in the rings; returned is up to which time that is everything. */
static uint64_t take_rings(struct records *r, bool all)
{
    uint64_t taken_ns = UINT64_MAX;
    struct catch *catch = catching_rings(r->path.catching);
    perf_drain(r->shared->perf, on_ring_record, r);
    extra_records_drain(r->path.extra);
    if (catch != NULL && all) {
        catch_flush(catch, FLUSH_MOST_MS * NS_PER_MS);
    } else if (catch != NULL) {
        taken_ns = catch_taken_ns(catch, CAUGHT_LAG_MS * NS_PER_MS);
    }
    if (catch != NULL) {
        catch_drain(catch, on_caught_record, r);
    }
    if (r->shared->observer != NULL) {
        r->shared->observer->round(r->shared->observer->context, all);
    }
    return taken_ns;
}

void records_drain(struct records *r)
{
    if (r->shared->perf_on) {
        (void)take_rings(r, true);
        order_flush(&r->order, on_record, r);
    }
    drain_perfless(r, true);
}

bool records_drain_round(struct records *r)
{
    uint64_t before = r->counts.records;
    if (r->shared->perf_on) {
        uint64_t taken_ns = take_rings(r, false);
        if (r->counts.records != before) {
            order_pass(&r->order);
            taken_ns = take_rings(r, false);
        }
        order_round(&r->order, taken_ns, on_record, r);
    }
    drain_perfless(r, false);
    return r->counts.records != before;
}

/* ---- the row ---- */

static void window_end(void *state)
{
    struct records *r = state;
    records_drain(r);
    stacks_end_window(r->path.stacks, r->shared->window.profile);
}

const struct concern records_concern = {
    .name = "records",
    .window_end = window_end,
    .release = release,
};
