/* The loop of a catcher that perf samples wake: takes the records of its CPU's ring, reads the memory of the newest
 * sample's thread, waits for what the ring still reports about it (switches), proves it and hands it over.
 * Older samples of the same round go unread. */
#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "unwind/unwind.h"

#include <linux/perf_event.h>

enum {
    CHECKS_MAX = 4,  /* at one ring per round: each may find a newer sample */
    WAIT_MAX_S = 5, /* then a round, for what time changes */
    OVERLAP = 4096,
    DEEP_SHARE = 8,
    BEYOND_MAX = 64 * 1024, /* read of a deep stack, when the buffer for them is full */
};

/* ---- the newest sample ---- */

static struct caught *caught_of(struct catch_open *open)
{
    return (struct caught *)(void *)(open->record + open->record_bytes);
}

/* Records that stand behind the newest sample wait until it is closed. */
static void put_aside_back(struct catcher *k)
{
    for (size_t at = 0, room; at < k->aside.bytes;) {
        struct perf_event_header header;
        memcpy(&header, k->aside.at + at, sizeof header);
        void *to = catch_buffer_open(&k->buffer, header.size, header.size, &room);
        if (to == NULL) {
            catch_add(&k->tally.lost, 1);
        } else {
            memcpy(to, k->aside.at + at, header.size);
            catch_buffer_close(&k->buffer, header.size, 0);
        }
        at += header.size;
    }
    k->aside.bytes = 0;
}

void catch_close(struct catcher *k)
{
    struct catch_open *open = &k->open;
    if (!open->is) {
        return;
    }
    struct caught *caught = caught_of(open);
    enum catch_verdict verdict = CATCH_UNREAD;
    if (open->was_read) {
        const struct catch_evidence *e = &open->evidence;
        verdict = catch_prove(e, catch_learned_late(&k->learned, open->copied));
        catch_learn_delays(&k->learned, e, open->copied);
    }
    if (verdict == CATCH_OTHER_CPU && k->bind_again_ns == 0) {
        k->bind_again_ns = k->round.begun_ns; /* somebody bound us to other CPUs */
    }
    if (open->wanted && k->round.reads && open->target->runtime != NULL) {
        catch_learn_verdict(&k->learned, verdict);
    }
    if (open->was_read && verdict != CATCH_PROVEN) {
        catch_read_again(k, open->target, open->tid, caught);
    }
    caught->verdict = (uint8_t)verdict;
    catch_add(&k->tally.verdicts[verdict], 1);
    catch_buffer_close(open->buffer, open->record_bytes, caught->bytes);
    open->is = false;
    put_aside_back(k);
}

static bool registers_of(const struct catcher *k, const struct record *r, struct unwind_registers *out)
{
    return r->as.sample.registers != NULL && !r->as.sample.is_32bit &&
           unwind_registers_of_perf(out, k->owner->format.registers, r->as.sample.registers);
}

static void take_registers(struct catcher *k, const struct record *r)
{
    struct catch_open *open = &k->open;
    struct unwind_registers registers;
    bool wanted = false;
    for (const struct catch_target *t = open->target; t != NULL; t = t->more ? t + 1 : NULL) {
        wanted |= t->runtime != NULL && t->runtime->wants_registers;
    }
    if (wanted && registers_of(k, r, &registers)) {
        open->registers = catch_registers(&registers);
        open->has_registers = true;
    }
}

static uint64_t end_of_copy(const struct catcher *k, const struct catch_target *target, const struct record *r)
{
    struct unwind_registers registers;
    bool full = r->as.sample.stack_len >= r->as.sample.stack_room;
    if (r->as.sample.stack_room == 0 || !(full || target->gaps) || !registers_of(k, r, &registers)) {
        return 0;
    }
    /* the copy's last page is read again: where it is still the same, so is what lies beyond */
    uint64_t sp = unwind_sp(&registers), end = sp + r->as.sample.stack_len;
    uint64_t from = (end & ~(uint64_t)(OVERLAP - 1)) - OVERLAP;
    return from > sp ? from : sp;
}

/* Memory beyond the copy goes to a larger buffer of its own; when that is full, without. */
static void make_room(struct catcher *k, struct catch_open *open, size_t least)
{
    struct catch_buffer *deep = __atomic_load_n(&k->deep, __ATOMIC_ACQUIRE);
    if (open->beyond != 0 && deep != NULL) {
        size_t share = catch_buffer_unused(deep) / DEEP_SHARE; /* later samples want some, too */
        size_t most = share < CATCH_MEMORY_MAX ? share & ~(size_t)7 : CATCH_MEMORY_MAX;
        open->buffer = deep;
        open->record = catch_buffer_open(deep, least, least + most, &open->room);
    }
    if (open->record == NULL) {
        open->buffer = &k->buffer;
        size_t most = least + (open->beyond != 0 ? BEYOND_MAX : 0);
        open->record = catch_buffer_open(&k->buffer, least, most, &open->room);
    }
}

static void open_sample(struct catcher *k, const void *record, size_t len, const struct record *r)
{
    struct catch_open *open = &k->open;
    *open = (struct catch_open){
        .target = catch_table_find(k->table, r->pid),
        .record_bytes = record_trimmed_bytes(r, len),
        .pid = r->pid,
        .tid = r->tid,
        .cpu = r->cpu,
        .time_ns = r->time_ns,
        .copied = r->as.sample.stack_len,
    };
    open->beyond = open->target != NULL && open->target->deep ? end_of_copy(k, open->target, r) : 0;
    open->wanted = catch_is_wanted(open->target, open->beyond);
    take_registers(k, r);
    make_room(k, open, open->record_bytes + catch_room_for(open->wanted ? open->target : NULL));
    if (open->record == NULL) {
        catch_add(&k->tally.lost, 1);
        return;
    }
    record_trim(record, len, r, open->record);
    open->room -= open->record_bytes;
    *caught_of(open) = (struct caught){
        .bytes = sizeof(struct caught), .pid = r->pid, .tid = r->tid, .end = RUNTIME_NO_THREAD};
    open->evidence = (struct catch_evidence){
        .cpu = r->cpu, .sample_ns = r->time_ns, .switches = k->owner->switches,
        .soon_ns = k->learned.soon.most_ns};
    open->is = true;
}

static void read_sample(struct catcher *k)
{
    struct catch_open *open = &k->open;
    open->was_read = catch_read(k, open->target, open->tid, open->beyond, caught_of(open),
                                open->room, &open->evidence);
}

/* ---- the ring ---- */

static void note_switch(struct catch_open *open, const struct record *r)
{
    struct catch_evidence *e = &open->evidence;
    bool after_read = open->was_read && r->time_ns > e->end_ns;
    if (!open->is || r->tid != open->tid || r->time_ns < open->time_ns || after_read) {
        return;
    }
    if (r->as.sched.out && r->as.sched.preempt) {
        e->left_ns = e->preempted ? e->left_ns : r->time_ns;
        e->preempted = true;
    } else {
        e->resumed = true;
    }
}

static void put_other(struct catcher *k, const void *record, size_t len)
{
    if (k->aside.bytes + len > sizeof k->aside.at) {
        catch_close(k);
    }
    if (k->open.is) {
        memcpy(k->aside.at + k->aside.bytes, record, len);
        k->aside.bytes += len;
        return;
    }
    size_t room;
    void *to = catch_buffer_open(&k->buffer, len, len, &room);
    if (to == NULL) {
        catch_add(&k->tally.lost, 1);
        return;
    }
    memcpy(to, record, len);
    catch_buffer_close(&k->buffer, len, 0);
}

static bool is_switch(const void *record)
{
    struct perf_event_header header;
    memcpy(&header, record, sizeof header);
    return header.type == PERF_RECORD_SWITCH;
}

void catch_take(void *context, unsigned ring, const void *record, size_t len)
{
    (void)ring;
    struct catcher *k = context;
    struct record r;
    k->vain = 0;
    if (is_switch(record) && !k->open.is) {
        return; /* a thread that switches often fills the ring with them */
    }
    if (!record_parse(record, len, &k->owner->format, &r, NULL)) {
        put_other(k, record, len); /* who takes it counts it */
    } else if (r.kind == RECORD_SAMPLE) {
        catch_close(k);
        open_sample(k, record, len, &r);
    } else if (r.kind == RECORD_SWITCH) {
        note_switch(&k->open, &r);
    } else {
        put_other(k, record, len);
    }
}

/* After a read, what came meanwhile: whether the thread came back, perhaps another sample. */
static void harvest(struct catcher *k, unsigned ring, bool reads)
{
    for (unsigned check = 0; check < CHECKS_MAX; check++) {
        perf_drain_caught(k->owner->perf, ring, catch_take, k);
        bool readable = reads && k->open.is && !k->open.was_read && k->open.wanted;
        if (!readable || check + 1 == CHECKS_MAX) {
            break;
        }
        read_sample(k);
        if (!k->open.was_read) {
            break;
        }
    }
    catch_close(k);
}

void catch_drain_ring(struct catcher *k, unsigned ring)
{
    catch_begin(k);
    harvest(k, ring, false);
    catch_end(k);
}

void catch_run_ring(struct catcher *k)
{
    int fd = perf_caught_fd(k->owner->perf, k->ring);
    catch_settle_in(k);
    catch_accounting_open(&k->accounting);
    k->round.reads = true;
    for (;;) {
        uint64_t most_ns = k->round.reads ? WAIT_MAX_S * NS_PER_S : k->owner->idle_ns;
        enum catch_wake wake = catch_wait(k, k->round.reads ? fd : -1, most_ns);
        if (wake == CATCH_STOP) {
            break;
        }
        k->vain += wake == CATCH_WOKEN;
        catch_begin(k);
        harvest(k, k->ring, k->round.reads);
        catch_end(k);
    }
    catch_drain_ring(k, k->ring);
    catch_accounting_close(&k->accounting);
}
