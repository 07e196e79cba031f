/* A catcher's own thread: binding it to its CPU and ranking it, sleeping until it is woken, and one read of one
 * thread's memory with the evidence for its proof. Everything here happens while the target waits, so nothing is
 * allocated and no lock is taken. */
#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "os/clock.h"

#include <sched.h>

enum {
    BIND_AGAIN_S = 60,
    LOW_NICE = -20, /* asked for; what was not granted is no matter */
    DEEP_STEP = 64 * 1024,
    DEEP_READ_MAX_US = 85, /* with the step in hand: so as to end within CATCH_READ_MAX_US */
    DEEP_ALONE_MAX_US = 400, /* without frames, which must be proven: a stack's far end proves itself */
    VAIN_MAX = 64,
    VAIN_WAIT_MS = 10,
    POLICY_DEADLINE = 6, /* SCHED_DEADLINE, which not every sched.h has */
    HURRY_NS = 1000 * 1000, /* as long as a small module runs */
};

/* ---- the thread ---- */

static void bind(struct catcher *k, uint64_t now_ns)
{
    bool bound = thread_bind(k->cpu, NULL);
    k->bind_again_ns = bound ? 0 : now_ns + BIND_AGAIN_S * NS_PER_S;
    catch_set(&k->tally.bound, bound);
}

static void rank(struct catcher *k)
{
    k->ranked_slice_ns = k->learned.slice_ns;
    thread_rank(true, LOW_NICE, k->ranked_slice_ns, &k->rank);
}

void catch_settle_in(struct catcher *k)
{
    bind(k, clock_mono_ns());
    rank(k);
}

/* From waking to sleeping. */
static void charge(const struct catcher *k)
{
    if (k->owner->own != NULL && k->round.woke_ns != 0) {
        own_cost_add(k->owner->own, clock_mono_ns() - k->round.woke_ns);
    }
}

/* A descriptor that is always readable although nothing comes (its CPU went away) must not make a busy
 * loop of us. */
enum catch_wake catch_wait(struct catcher *k, int fd, uint64_t timeout_ns)
{
    if (fd >= 0 && k->vain >= VAIN_MAX) {
        fd = -1;
        timeout_ns = VAIN_WAIT_MS * NS_PER_MS;
    }
    charge(k);
    bool woken = waker_wait(k->waker, fd, timeout_ns);
    k->round.woke_ns = clock_mono_ns();
    if (__atomic_load_n(&k->owner->stop, __ATOMIC_ACQUIRE)) {
        return CATCH_STOP;
    }
    return woken ? CATCH_WOKEN : CATCH_TIME;
}

void catch_begin(struct catcher *k)
{
    k->round.begun_ns = clock_mono_ns();
    __atomic_store_n(&k->round.running, true, __ATOMIC_RELEASE);
    k->table = catch_table_enter(&k->owner->table, k->hazard);
    k->round.has_read = false;
    k->round.reads = catch_learn_round(&k->learned, k->round.begun_ns);
    catch_add(&k->tally.wakes, 1);
}

static bool is_half_full(const struct catch_buffer *b)
{
    return b != NULL && catch_buffer_unused(b) < b->size / 2;
}

static void ask_for_room(struct catcher *k)
{
    bool full = is_half_full(&k->buffer) ||
                is_half_full(__atomic_load_n(&k->deep, __ATOMIC_RELAXED));
    bool hurries = k->hurry.wanted && k->round.begun_ns - k->hurry.latest_ns >= HURRY_NS;
    k->hurry.latest_ns = hurries ? k->round.begun_ns : k->hurry.latest_ns;
    k->hurry.wanted = false;
    if ((full || hurries) && !__atomic_exchange_n(&k->asked_for_room, true, __ATOMIC_RELAXED)) {
        waker_set(k->owner->half_full);
    }
}

void catch_end(struct catcher *k)
{
    ask_for_room(k);
    __atomic_store_n(&k->round.taken_ns, k->round.begun_ns, __ATOMIC_RELEASE);
    __atomic_store_n(&k->round.count, k->round.count + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&k->round.running, false, __ATOMIC_RELEASE);
    k->table = NULL;
    catch_table_leave(k->hazard);
    catch_set(&k->tally.given_up, !k->round.reads);
    if (k->bind_again_ns != 0 && k->round.begun_ns >= k->bind_again_ns) {
        bind(k, k->round.begun_ns);
    }
    if (!k->round.has_read) {
        struct catch_evidence unused; /* the next read's turn is to be the only one */
        catch_accounting_note(&k->accounting, 0, &unused);
        return;
    }
    uint64_t hold_ns = clock_mono_ns() - k->round.begun_ns;
    catch_set(&k->tally.starved, catch_learned_starved(&k->learned));
    if (catch_learn_hold(&k->learned, hold_ns) && !k->rank.fifo) {
        rank(k);
    }
}

/* ---- a read ---- */

bool catch_is_wanted(const struct catch_target *target, uint64_t beyond)
{
    return target != NULL && target->remote != NULL && (target->runtime != NULL || beyond != 0 || target->stops);
}

size_t catch_room_for(const struct catch_target *target)
{
    const size_t one = sizeof(struct caught) + RUNTIME_FRAMES_MAX * sizeof(struct runtime_frame);
    size_t room = 0;
    for (; target != NULL && target->runtime != NULL; target = target->more ? target + 1 : NULL) {
        room += one;
    }
    return room > 0 ? room : sizeof(struct caught);
}

struct runtime_registers catch_registers(const struct unwind_registers *all)
{
    return (struct runtime_registers){unwind_ip(all), unwind_sp(all), unwind_fp(all),
                                      {unwind_kept(all, 0), unwind_kept(all, 1)}};
}

/* Walks the thread as one runtime has it; returns how many bytes that takes of `out`. */
static size_t take_frames(struct catcher *k, const struct catch_target *target, uint32_t tid, bool stands,
                          struct memory_batch *memory, struct caught *out)
{
    struct runtime_stack *stack = &k->stack;
    const struct runtime_thread thread = {
        .tid = catch_table_inner_tid(target, tid),
        .registers = target->runtime->wants_registers && k->open.has_registers ? &k->open.registers : NULL,
        .proven_later = stands,
        .takes_parts = !stands,
    };
    stack->count = 0;
    stack->end = RUNTIME_UNREADABLE;
    stack->marks = stack->reads = stack->retries = stack->task_bytes = 0;
    stack->interpreter = 0;
    target->runtime->walk(target->state, catch_plans_get(&k->plans, target, tid)->bytes, &thread, memory, stack);
    uint32_t count = stack->count < RUNTIME_FRAMES_MAX ? stack->count : RUNTIME_FRAMES_MAX;
    memcpy(out->frame, stack->frame, count * sizeof stack->frame[0]);
    out->serial = target->serial;
    out->next_at = 0;
    out->frame_count = count;
    out->end = stack->end;
    out->marks = stack->marks;
    out->interpreter = stack->interpreter;
    out->task_bytes = stack->task_bytes;
    memcpy(out->task, stack->task, stack->task_bytes);
    k->hurry.wanted |= (stack->marks & RUNTIME_SHORT_LIVED) != 0;
    out->reads = stack->reads;
    if (stack->end < RUNTIME_END_COUNT) {
        catch_add(&k->tally.ends[stack->end], 1);
    }
    return sizeof *out + count * sizeof out->frame[0];
}

/* By every runtime of the process that walks, one behind the other; returns how many bytes they take. */
size_t catch_take_frames(struct catcher *k, const struct catch_target *target, uint32_t tid, bool stands,
                         struct memory_batch *memory, struct caught *out)
{
    size_t used = take_frames(k, target, tid, stands, memory, out);
    for (struct caught *last = out; target->more;) {
        target++;
        struct caught *next = (struct caught *)(void *)((unsigned char *)out + used);
        *next = (struct caught){.pid = out->pid, .tid = out->tid};
        last->next_at = (uint32_t)((unsigned char *)next - (unsigned char *)last);
        used += take_frames(k, target, tid, stands, memory, next);
        last = next;
    }
    return used;
}

void catch_count_calls(struct catcher *k, const struct remote_counts *counts)
{
    catch_add(&k->tally.calls, counts->calls);
    catch_add(&k->tally.bytes, counts->bytes);
    catch_add(&k->tally.unmapped, counts->unmapped);
    catch_add(&k->tally.denied, counts->denied);
    catch_add(&k->tally.gone, counts->gone);
}

static bool any_complete(const struct caught *caught)
{
    while (caught != NULL && caught->end != RUNTIME_COMPLETE) {
        caught = caught_next(caught);
    }
    return caught != NULL;
}

/* The thread was not proven to stand still, so what was read once may be of several moments. */
void catch_read_again(struct catcher *k, const struct catch_target *target, uint32_t tid,
                      struct caught *out)
{
    if (k->owner->unprovable || target->runtime == NULL || !any_complete(out)) {
        return;
    }
    struct remote_caller caller = {.remote = target->remote};
    struct memory_batch memory = remote_batch(&caller);
    out->bytes = (uint32_t)catch_take_frames(k, target, tid, false, &memory, out);
    out->memory_bytes = 0; /* it would stand behind other frames now */
    catch_count_calls(k, &caller.counts);
}

/* Upwards in steps, until something is not mapped, the room is full, or the next step might take
 * longer than the proof allows. */
static void take_beyond(uint64_t from, uint64_t most_us, struct memory_batch *memory,
                        struct caught *out, size_t room)
{
    unsigned char *to = (unsigned char *)(uintptr_t)caught_memory(out);
    size_t got = 0, most = room < CATCH_MEMORY_MAX ? room : CATCH_MEMORY_MAX;
    uint64_t before_ns = out->start_ns, now_ns = clock_mono_ns();
    uint64_t until_ns = out->start_ns + most_us * NS_PER_US;
    out->memory_address = from;
    while (got < most && now_ns + (now_ns - before_ns) <= until_ns) {
        size_t step = DEEP_STEP - (size_t)((from + got) & (DEEP_STEP - 1));
        step = step < most - got ? step : most - got;
        struct memory_piece piece = {.address = from + got, .out = to + got, .len = (uint32_t)step};
        if (!memory_batch_read(memory, &piece, 1, NULL)) {
            break;
        }
        got += piece.got;
        if (piece.got < step) {
            break;
        }
        before_ns = now_ns;
        now_ns = clock_mono_ns();
    }
    out->memory_bytes = (uint32_t)got & ~(uint32_t)7;
}

static void take_memory(struct catcher *k, const struct catch_target *target, uint32_t tid,
                        uint64_t beyond, struct caught *out, size_t room)
{
    struct remote_caller caller = {.remote = target->remote};
    struct memory_batch memory = remote_batch(&caller);
    bool stands = !k->owner->unprovable;
    size_t used = target->runtime != NULL ? catch_take_frames(k, target, tid, stands, &memory, out) : sizeof *out;
    if (beyond != 0 && used < room) {
        take_beyond(beyond, target->runtime != NULL ? DEEP_READ_MAX_US : DEEP_ALONE_MAX_US,
                    &memory, out, room - used);
    }
    out->bytes = (uint32_t)(used + out->memory_bytes);
    catch_count_calls(k, &caller.counts);
}

/* An ordinary thread never preempts a realtime one; that one's samples would all be late. */
static bool may_stand(struct catcher *k, const struct catch_plan *plan, uint32_t tid)
{
    if (!plan->known) {
        return true;
    }
    if (plan->policy == SCHED_FIFO || plan->policy == SCHED_RR || plan->policy == POLICY_DEADLINE) {
        catch_set(&k->tally.realtime_tid, tid);
        return false;
    }
    if (!k->rank.fifo && plan->nice < k->rank.nice) {
        __atomic_store_n(&k->tally.favoured_nice, plan->nice, __ATOMIC_RELAXED);
        catch_set(&k->tally.favoured_tid, tid);
    }
    return true;
}

bool catch_read(struct catcher *k, const struct catch_target *target, uint32_t tid, uint64_t beyond,
                struct caught *out, size_t room, struct catch_evidence *e)
{
    struct catch_plan *plan = catch_plans_get(&k->plans, target, tid);
    if (!may_stand(k, plan, tid)) {
        return false;
    }
    e->unprovable = k->owner->unprovable;
    e->cpu_before = e->unprovable ? 0 : thread_cpu(); /* it would tell nothing, and be a system call there */
    e->start_ns = out->start_ns = clock_mono_ns();
    take_memory(k, target, tid, beyond, out, room);
    e->end_ns = out->end_ns = clock_mono_ns();
    e->cpu_after = e->unprovable ? 0 : thread_cpu();
    plan = target->more ? catch_plans_get(&k->plans, target, tid) : plan;
    if (!catch_plan_stat(plan, target->pid, tid, &e->state, &e->stat_cpu)) {
        e->state = 0;
    }
    if (k->accounting.opened) {
        catch_accounting_note(&k->accounting, k->round.begun_ns, e);
    }
    out->serial = target->serial;
    k->round.has_read = true;
    return true;
}
