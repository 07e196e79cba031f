/* A catcher's read of a thread that it holds by a brief stop (os/stop.h): registers, frames of runtimes and the top
 * of the stack, all of one moment. What goes wrong leaves the thread running and the read to be done without; a stop
 * that does not come in time is waited for outside the round, so that nobody else waits with it. */
#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "os/clock.h"
#include "os/proc.h"
#include "unwind/unwind.h"

enum {
    REFUSED_S = 60,      /* a thread that may not be held is tried again after it … */
    FRAME_BYTES = 16,
    BLOCK_BYTES = 2048,  /* of another stack, at a time */
    BLOCKS_MAX = 8,
    BROKEN_MS = 1000,    /* … and one whose system call was ended by a stop */
};

void catch_allow_stops(struct catch *c, uint64_t registers)
{
    c->held_registers = registers;
}

static size_t register_bytes(const struct catch *c)
{
    return (size_t)__builtin_popcountll(c->held_registers) * sizeof(uint64_t);
}

size_t catch_room_to_hold(const struct catch *c, const struct catch_target *target)
{
    size_t chain = target->chains ? CATCH_CHAIN_MAX * sizeof(uint64_t) : 0;
    return target->stops ? target->stack_bytes + register_bytes(c) + chain : 0;
}

/* From SP upwards, as far as it is mapped. */
static size_t take_stack(struct memory_batch *memory, uint64_t sp, size_t most, unsigned char *to)
{
    struct memory_piece piece = {.address = sp, .out = to, .len = (uint32_t)most};
    return memory_batch_read(memory, &piece, 1, NULL) ? piece.got & ~(size_t)7 : 0;
}

static bool all_registers(const struct catcher *k, struct unwind_registers *out)
{
    return unwind_registers_of_perf(out, k->owner->held_registers, k->held.registers);
}

/* A stop and a signal that come together meet at the handler's first instruction. What has run is what they
 * interrupted, whose stack may be another one. */
static bool leave_handler(struct catcher *k, struct memory_batch *memory, const struct unwind_registers *all)
{
    unsigned char frame[UNWIND_SIGNAL_BYTES];
    struct memory_piece piece = {.address = unwind_signal_frame(all), .out = frame, .len = sizeof frame};
    if (piece.address == 0 || !memory_batch_read(memory, &piece, 1, NULL) || piece.got < sizeof frame) {
        return false;
    }
    unwind_interrupted(frame, k->owner->held_registers, k->held.registers);
    return true;
}

/* perf's order: where the three stand in it depends on the mask alone. */
static struct runtime_registers registers_of(struct catcher *k, struct memory_batch *memory)
{
    struct unwind_registers all;
    if (!all_registers(k, &all) || (leave_handler(k, memory, &all) && !all_registers(k, &all))) {
        return (struct runtime_registers){0};
    }
    return catch_registers(&all);
}

/* ---- frame pointers ---- */

struct chain {
    struct memory_batch *memory;
    const unsigned char *bytes; /* of memory from `at` on: the stack that was read, then another block */
    uint64_t at;
    size_t len;
    unsigned char block[BLOCK_BYTES];
    unsigned blocks;
};

static bool has_words(const struct chain *c, uint64_t at)
{
    return at >= c->at && c->len >= FRAME_BYTES && at - c->at <= c->len - FRAME_BYTES;
}

/* A frame's two words: the caller's frame pointer, and where it returns to. */
static bool read_frame(struct chain *c, uint64_t fp, uint64_t words[2])
{
    if (!has_words(c, fp)) {
        if (c->blocks == BLOCKS_MAX || fp % sizeof *words != 0) {
            return false;
        }
        c->blocks++;
        c->at = fp;
        c->bytes = c->block;
        c->len = take_stack(c->memory, fp, sizeof c->block, c->block);
    }
    bool has = has_words(c, fp);
    if (has) {
        memcpy(words, c->bytes + (fp - c->at), FRAME_BYTES);
    }
    return has;
}

/* Returns how many addresses it put into `out`; 0 where they never left what was read. Go runs parts of itself on the
 * system's stack, and the goroutine that called them has its own. */
static uint32_t follow_chain(struct chain *c, const struct runtime_registers *registers, uint64_t *out)
{
    uint32_t count = 0;
    uint64_t frame[2], fp = registers->fp;
    out[count++] = registers->ip;
    while (count < CATCH_CHAIN_MAX && fp != 0 && read_frame(c, fp, frame) && frame[1] != 0) {
        out[count++] = frame[1];
        fp = frame[0] != fp ? frame[0] : 0;
    }
    return c->blocks > 0 ? count : 0;
}

/* While it is held. */
static void take(struct catcher *k, const struct catch_target *target, uint32_t tid, struct caught *out, size_t room)
{
    struct remote_caller caller = {.remote = target->remote};
    struct memory_batch memory = remote_batch(&caller);
    const struct runtime_registers at = registers_of(k, &memory);
    size_t registers = register_bytes(k->owner), used = sizeof *out;
    size_t behind = registers + (target->chains ? CATCH_CHAIN_MAX * sizeof(uint64_t) : 0);
    k->open.registers = at;
    k->open.has_registers = true;
    out->serial = target->serial;
    if (target->runtime != NULL) {
        used = catch_take_frames(k, target, tid, true, &memory, out);
    }
    k->open.has_registers = false;
    size_t most = used + behind < room ? room - used - behind : 0;
    most = most < target->stack_bytes ? most : target->stack_bytes;
    unsigned char *to = (unsigned char *)out + used;
    out->memory_address = at.sp;
    out->memory_bytes = (uint32_t)take_stack(&memory, out->memory_address, most, to);
    to += out->memory_bytes;
    memcpy(to, k->held.registers, registers);
    if (target->chains) {
        struct chain chain = {
            .memory = &memory, .bytes = to - out->memory_bytes, .at = out->memory_address, .len = out->memory_bytes};
        out->chain_count = follow_chain(&chain, &at, (uint64_t *)(void *)(to + registers));
    }
    out->bytes = (uint32_t)(used + out->memory_bytes + registers + out->chain_count * sizeof(uint64_t));
    catch_count_calls(k, &caller.counts);
}

static void note_failure(struct catcher *k, struct catch_plan *plan, uint32_t tid, enum stop_outcome outcome)
{
    if (outcome == STOP_DENIED) {
        plan->hold_again_ns = k->round.begun_ns + REFUSED_S * NS_PER_S;
        __atomic_store_n(&k->refused_tid, tid, __ATOMIC_RELAXED);
    }
    catch_add(&k->tally.pending_stops, outcome == STOP_PENDING);
}

bool catch_read_held(struct catcher *k, const struct catch_target *target, uint32_t tid, struct caught *out,
                     size_t room)
{
    struct catch_plan *plan = catch_plans_get(&k->plans, target, tid);
    if (!k->stopper.opened || k->stopper.pending || k->round.begun_ns < plan->hold_again_ns) {
        return false;
    }
    out->start_ns = clock_mono_ns();
    enum stop_outcome outcome = stop_begin(&k->stopper, tid, target->as_user ? &target->identity : NULL,
                                           k->owner->held_registers, &k->held);
    if (outcome != STOP_HELD) {
        note_failure(k, plan, tid, outcome);
        return false;
    }
    take(k, target, tid, out, room);
    stop_end(&k->stopper);
    out->end_ns = clock_mono_ns();
    uint64_t held_ns = out->end_ns - out->start_ns;
    out->held_ns = held_ns < UINT32_MAX ? (uint32_t)held_ns : UINT32_MAX;
    if (k->held.call == STOP_BROKE_CALL) {
        plan = catch_plans_get(&k->plans, target, tid);
        plan->hold_again_ns = k->round.begun_ns + BROKEN_MS * NS_PER_MS;
        catch_add(&k->tally.broken_calls, 1);
    }
    k->round.has_read = true;
    return true;
}

bool catch_settle_stop(struct catcher *k)
{
    bool goes_on = true;
    while (goes_on && !stop_settle(&k->stopper)) {
        goes_on = !__atomic_load_n(&k->owner->stop, __ATOMIC_ACQUIRE);
    }
    return goes_on;
}
