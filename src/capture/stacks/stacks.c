/* stacks: one sample is put together, the native half below the runtime's or woven into it, the kernel's on top, and
 * added to the profile: of perf's samples, of those of the perf-less sampler, of other events and of threads that
 * sleep. The halves themselves are the other files' (stacks_private.h). */
#include "capture/stacks/stacks_private.h"
#include "capture/stacks/labels.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 1024 }; /* of one half of a stack; the kernel gives at most 127 by default */

static struct halves split(const struct record *sample)
{
    struct halves halves = {0};
    bool in_user = sample->user;
    for (size_t i = 0; i < sample->as.sample.chain_len; i++) {
        const uint64_t *at = &sample->as.sample.chain[i];
        if (*at >= CHAIN_MARK_LEAST) {
            in_user = *at == CHAIN_MARK_USER;
            continue;
        }
        const uint64_t **half = in_user ? &halves.user : &halves.kernel;
        size_t *len = in_user ? &halves.user_len : &halves.kernel_len;
        *half = *len == 0 ? at : *half;
        *len += *len < DEPTH_MAX;
    }
    return halves;
}

static bool add_native(struct stacks *s, struct profile *p, uint32_t *node)
{
    bool fits = true;
    for (size_t i = s->scratch->native_count; fits && i > 0; i--) {
        fits = descend(p, node, &s->scratch->native[i - 1]);
    }
    return fits;
}

static bool add_user(struct stacks *s, struct profile *p, struct target *target,
                     const struct record *sample, const struct halves *halves,
                     const struct caught *caught, uint32_t *node)
{
    s->scratch->native_count = 0;
    if (s->unwinder != NULL) {
        stacks_take_unwound(s, p, target, sample, halves, caught);
    } else {
        stacks_take_chain(s, p, target, halves, sample->time_ns);
    }
    stacks_take_walked(s, target, caught);
    return s->scratch->walked_count > 0 ? stacks_add_both(s, p, node) : add_native(s, p, node);
}

static bool add_kernel(struct profile *p, const struct halves *halves, uint32_t *node)
{
    struct module module = {.path = profile_cstring(p, "[kernel]"), .image = IMAGE_KERNEL};
    uint32_t id = halves->kernel_len == 0 ? 0 : profile_module(p, &module);
    bool fits = true;
    for (size_t i = halves->kernel_len; fits && i > 0; i--) {
        struct frame frame = {.address = halves->kernel[i - 1] - (i > 1),
                              .module = id,
                              .kind = FRAME_KERNEL};
        fits = descend(p, node, &frame);
    }
    return fits;
}

/* A sample without any address: an exiting thread, or code outside every mapping. */
static bool add_unknown(struct profile *p, uint32_t *node)
{
    return stacks_mark(p, FRAME_NATIVE, "[unknown]", node);
}

bool stacks_init(struct stacks *s, struct targets *targets, struct readers *readers,
                 struct unwinder *unwinder, uint64_t registers)
{
    *s = (struct stacks){.targets = targets,
                         .readers = readers,
                         .unwinder = unwinder,
                         .registers = registers,
                         .scratch = malloc(sizeof *s->scratch)};
    return s->scratch != NULL;
}

void stacks_release(struct stacks *s)
{
    vec_release(&s->modules);
    free(s->scratch);
}

void stacks_end_window(struct stacks *s, struct profile *p)
{
    memcpy(p->meta.stack_ends, s->ends, sizeof s->ends);
    memcpy(p->meta.shares, s->shares, sizeof s->shares);
    memcpy(p->meta.woven, s->woven, sizeof s->woven);
    memcpy(p->meta.consistent, s->consistent, sizeof s->consistent);
    memset(s->ends, 0, sizeof s->ends);
    memset(s->shares, 0, sizeof s->shares);
    memset(s->woven, 0, sizeof s->woven);
    memset(s->consistent, 0, sizeof s->consistent);
}

/* 0: no room. */
static uint32_t node_of(struct stacks *s, struct profile *p, struct target *target,
                        const struct record *sample, const struct caught *caught)
{
    struct halves halves = split(sample);
    uint32_t node = 0;
    bool fits = add_user(s, p, target, sample, &halves, caught, &node) &&
                add_kernel(p, &halves, &node) && (node != 0 || add_unknown(p, &node));
    return fits ? node : 0;
}

/* The profile is full: of the stack only the leaf is kept, which many others share. */
static bool collapse(struct stacks *s, struct profile *p, const struct halves *halves,
                     uint32_t runtime_leaf, uint32_t *node)
{
    const struct stacks_scratch *from = s->scratch;
    const struct halves leaf = {.kernel = halves->kernel, .kernel_len = halves->kernel_len > 0};
    *node = 0;
    p->collapsed++;
    if (!stacks_mark(p, FRAME_NATIVE, "[budget]", node)) {
        return false;
    }
    if (leaf.kernel_len > 0) {
        return add_kernel(p, &leaf, node);
    }
    if (from->native_count > 0) {
        return descend(p, node, &from->native[0]);
    }
    return runtime_leaf == 0 || descend_to(p, node, runtime_leaf);
}

void stacks_add(struct stacks *s, struct profile *p, const struct record *sample,
                const struct caught *caught)
{
    struct target *target = targets_get(s->targets, sample->pid);
    if (target == NULL) {
        return;
    }
    uint32_t thread = targets_thread_id(s->targets, p, target, sample->tid);
    uint32_t node = node_of(s, p, target, sample, caught);
    bool needed = profile_need(p, true);
    if (node == 0) {
        struct halves halves = split(sample);
        node = collapse(s, p, &halves, 0, &node) ? node : 0;
    }
    profile_add_at(p, labels_thread(p, thread, caught), node, sample->as.sample.period_ns, 1, sample->time_ns);
    (void)profile_need(p, needed);
    target->account.sampled_ns += sample->as.sample.period_ns;
    if (sample->time_ns > target->account.read_ns && !sample->as.sample.of_burst) {
        target->account.since_read_ns += sample->as.sample.period_ns;
    }
    s->samples++;
}

/* How much of a stack is copied is decided by the clock's samples alone: another event's copies may be smaller, and its
 * stacks of another kind. */
uint32_t stacks_node_of_event(struct stacks *s, struct profile *p, const struct record *sample,
                              uint32_t *thread)
{
    struct target *target = targets_get(s->targets, sample->pid);
    *thread = 0;
    if (target == NULL) {
        return 0;
    }
    uint64_t ends[STACK_END_COUNT];
    memcpy(ends, s->ends, sizeof ends);
    const struct target_copies copy = target->copy;
    *thread = targets_thread_id(s->targets, p, target, sample->tid);
    uint32_t node = node_of(s, p, target, sample, NULL);
    memcpy(s->ends, ends, sizeof ends);
    target->copy = copy;
    return node;
}

/* Adds a runtime's stack that was read apart from any sample, and the native half in the scratch beside it or,
 * proven to be of one moment, woven. It counts for nothing. */
static bool add_apart(struct stacks *s, struct profile *p, struct target *target, const struct caught *caught,
                      uint8_t verdict, uint32_t *node)
{
    struct stacks_scratch *to = s->scratch;
    struct reader *reader = readers_of(s->readers, target, caught->serial);
    if (reader == NULL || caught->end != RUNTIME_COMPLETE) {
        return false;
    }
    uint64_t woven[WOVEN_COUNT];
    memcpy(woven, s->woven, sizeof woven);
    to->walked[0] = (struct walked){reader, caught, 0};
    to->walked_count = 1;
    to->verdict = verdict;
    bool fits = stacks_add_both(s, p, node);
    memcpy(s->woven, woven, sizeof woven);
    return fits;
}

uint32_t stacks_node_of_sleeper(struct stacks *s, struct profile *p, struct target *target,
                                const struct stacks_sleeper *at)
{
    uint32_t node = 0;
    s->scratch->native_count = 0;
    if (s->of_sleepers != NULL) {
        stacks_take_sleeper(s, p, target, at);
    }
    bool fits = at->caught == NULL ? add_native(s, p, &node)
                                   : add_apart(s, p, target, at->caught, CATCH_PROVEN, &node);
    return fits && stacks_mark(p, FRAME_NATIVE, at->leaf, &node) ? node : 0;
}

uint32_t stacks_node(struct stacks *s, struct profile *p, struct target *target,
                     const struct caught *caught)
{
    uint32_t node = 0;
    s->scratch->native_count = 0;
    return add_apart(s, p, target, caught, caught->verdict, &node) ? node : 0;
}

void stacks_add_settled(struct stacks *s, struct profile *p, uint32_t pid, uint32_t tid,
                        uint64_t cpu_ns)
{
    struct target *target = targets_find(s->targets, pid);
    if (target != NULL && cpu_ns > 0) {
        profile_account(p, targets_thread_id(s->targets, p, target, tid), ACCOUNT_NATIVE_NO_PERF,
                        cpu_ns);
        target->account.settled_ns += cpu_ns;
    }
}

void stacks_settle(struct stacks *s, struct profile *p, uint32_t pid, uint32_t tid, uint64_t cpu_ns)
{
    struct target *target = targets_find(s->targets, pid);
    if (target == NULL || !target->runtime.stops) {
        stacks_add_settled(s, p, pid, tid, cpu_ns);
    } else if (profile_stretch(p, targets_thread_id(s->targets, p, target, tid), cpu_ns)) {
        target->account.sampled_ns += cpu_ns;
    }
}

/* Without a native half only the time is known of a stack that was not read whole. */
static void account_unread(struct stacks *s, struct profile *p, struct target *target, const struct caught *caught,
                           uint8_t end)
{
    enum account account = end == RUNTIME_TORN ? ACCOUNT_PARTIAL : ACCOUNT_UNREADABLE;
    profile_account(p, targets_thread_id(s->targets, p, target, caught->tid), account, caught->weight_ns);
}

static void add_read(struct stacks *s, struct profile *p, struct target *target, const struct caught *caught)
{
    uint32_t node = 0;
    s->scratch->native_count = 0;
    const struct halves none = {0};
    bool fits = stacks_add_both(s, p, &node), needed = profile_need(p, true);
    fits = fits || collapse(s, p, &none, s->scratch->runtime[0], &node);
    uint32_t thread = targets_thread_id(s->targets, p, target, caught->tid);
    profile_add_at(p, labels_thread(p, thread, caught), fits ? node : 0, caught->weight_ns, 1, caught->start_ns);
    (void)profile_need(p, needed);
}

/* Null: all runtimes' were. */
static const struct caught *not_whole(const struct stacks_scratch *from)
{
    for (size_t i = 0; i < from->walked_count; i++) {
        if (from->walked[i].caught->end != RUNTIME_COMPLETE) {
            return from->walked[i].caught;
        }
    }
    return NULL;
}

static const uint64_t *caught_chain(const struct stacks *s, const struct caught *caught)
{
    return caught_registers(caught) + __builtin_popcountll(s->registers);
}

/* A thread that was held comes with what a perf sample has, but for kernel frames. */
static void add_held(struct stacks *s, struct profile *p, struct target *target, const struct caught *caught)
{
    struct record sample = {
        .kind = RECORD_SAMPLE,
        .pid = caught->pid,
        .tid = caught->tid,
        .time_ns = caught->start_ns,
        .user = true,
        .as.sample = {.period_ns = caught->weight_ns,
                      .chain = caught_chain(s, caught),
                      .chain_len = caught->chain_count,
                      .registers = caught_registers(caught),
                      .stack = caught_memory(caught),
                      .stack_len = caught->memory_bytes,
                      .stack_room = caught->memory_bytes},
    };
    uint32_t node = node_of(s, p, target, &sample, caught);
    bool needed = profile_need(p, true);
    const struct halves none = {0};
    node = node != 0 || collapse(s, p, &none, 0, &node) ? node : 0;
    uint32_t thread = targets_thread_id(s->targets, p, target, caught->tid);
    profile_add_at(p, labels_thread(p, thread, caught), node, caught->weight_ns, 1, caught->start_ns);
    (void)profile_need(p, needed);
    target->account.sampled_ns += caught->weight_ns;
    s->samples++;
}

bool stacks_add_perfless(struct stacks *s, struct profile *p, const struct caught *caught)
{
    struct target *target = targets_find(s->targets, caught->pid);
    if (target != NULL && caught->held_ns != 0 && s->unwinder != NULL) {
        add_held(s, p, target, caught);
        return true;
    }
    s->scratch->walked_count = 0;
    if (target != NULL) {
        stacks_take_walked(s, target, caught);
    }
    if (s->scratch->walked_count == 0) {
        stacks_add_settled(s, p, caught->pid, caught->tid, caught->weight_ns);
        return false;
    }
    const struct caught *broken = not_whole(s->scratch);
    if (broken == NULL) {
        add_read(s, p, target, caught);
    } else {
        account_unread(s, p, target, caught, broken->end);
    }
    target->account.sampled_ns += caught->weight_ns;
    s->samples++;
    return true;
}
