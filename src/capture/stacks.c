#include "capture/stacks.h"
#include "capture/labels.h"
#include "capture/resolve.h"
#include "profile/weave.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 1024,      /* of one half of a stack; the kernel gives at most 127 by default */
    ADDRESS_LEAST = 0x1000, /* the first page is never mapped: such an address is no code */
    NATIVE_MAX = UNWIND_FRAMES_MAX + 4, /* with marks */
    RUNTIME_SHOWN_MAX = WEAVE_RUNTIMES_MAX * RUNTIME_FRAMES_MAX,
    WOVEN_MAX = NATIVE_MAX + RUNTIME_SHOWN_MAX,
};

/* The frames of one of the runtimes that the thread runs. */
struct walked {
    struct reader *reader;
    const struct caught *caught;
    size_t from; /* in scratch.runtime */
};

/* One stack in the making; lists are leaf first. */
struct stacks_scratch {
    struct unwind_result unwound;
    struct frame native[NATIVE_MAX];
    uint64_t image[NATIVE_MAX];
    uint8_t native_kind[NATIVE_MAX];      /* enum weave_native */
    size_t native_count;
    struct resolve resolve;
    struct walked walked[WEAVE_RUNTIMES_MAX];
    struct weave_stack stack[WEAVE_RUNTIMES_MAX]; /* of these */
    size_t walked_count;
    uint8_t verdict; /* on the sample that they were read at */
    uint32_t runtime[RUNTIME_SHOWN_MAX];  /* frames of the profile */
    uint8_t runtime_kind[RUNTIME_SHOWN_MAX]; /* enum weave_runtime */
    struct weave_frame woven[WOVEN_MAX];
};

/* The two halves of a call chain, leaf first. */
struct halves {
    const uint64_t *kernel, *user;
    size_t kernel_len, user_len;
};

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

/* One frame deeper. False when the profile is full: the path must not go on from the root then. */
static bool descend(struct profile *p, uint32_t *node, const struct frame *frame)
{
    *node = profile_child(p, *node, profile_frame(p, frame));
    return *node != 0;
}

static bool descend_to(struct profile *p, uint32_t *node, uint32_t frame)
{
    *node = profile_child(p, *node, frame);
    return *node != 0;
}

static bool add_mark(struct profile *p, enum frame_kind kind, const char *name, uint32_t *node)
{
    struct frame frame = {.name = profile_cstring(p, name), .kind = (uint8_t)kind};
    return descend(p, node, &frame);
}

static void put_native(struct stacks_scratch *to, uint64_t image, struct frame frame)
{
    if (to->native_count < NATIVE_MAX) {
        to->image[to->native_count] = image;
        to->native_kind[to->native_count] = WEAVE_NATIVE;
        to->native[to->native_count++] = frame;
    }
}

static void put_mark(struct stacks_scratch *to, struct profile *p, const char *name)
{
    put_native(to, IMAGE_NONE, (struct frame){.name = profile_cstring(p, name)});
}

/* ---- the native half, by the kernel's chain ---- */

/* Looks mappings up from the leaf, because the leaf is certain and everything beyond the first
 * unmapped address is not. */
static void take_chain(struct stacks *s, struct profile *p, struct target *target,
                       const struct halves *halves, uint64_t now_ns)
{
    for (size_t depth = 0; depth < halves->user_len; depth++) {
        uint64_t address = halves->user[depth];
        if (address < ADDRESS_LEAST) {
            break; /* the outermost frame returns to 0 */
        }
        address -= depth > 0;
        struct mapping *mapping = depth == 0
                                      ? targets_mapping(s->targets, target, address, now_ns)
                                      : targets_known_mapping(target, address);
        if (mapping == NULL) {
            s->cut++;
            break;
        }
        put_native(s->scratch, mapping->image,
                   (struct frame){.address = address - mapping->bias,
                                  .module = targets_module_id(s->targets, p, mapping),
                                  .kind = FRAME_NATIVE});
    }
}

/* ---- the native half, by unwinding ---- */

struct lookup {
    struct stacks *stacks;
    struct target *target;
    uint64_t now_ns;
};

/* Only the leaf is certain to be code: what else is not mapped is no reason to read maps again. */
static bool find_place(void *context, uint64_t address, struct unwind_place *out)
{
    const struct lookup *l = context;
    struct targets *targets = l->stacks->targets;
    struct mapping *mapping = targets_known_mapping(l->target, address);
    if (mapping == NULL) {
        return false;
    }
    *out = (struct unwind_place){
        .start = mapping->start,
        .limit = mapping->limit,
        .bias = mapping->bias,
        .image = mapping->image,
        .table = images_table(targets->images, mapping->image),
        .frame_pointers = images_has_frame_pointers(targets->images, mapping->image),
    };
    images_find_perf_map(targets->images, mapping->image, l->now_ns);
    return true;
}

static bool ask_runtimes(void *context, const struct unwind_question *question, struct unwind_answer *out)
{
    const struct lookup *l = context;
    return resolve_ask(&l->stacks->scratch->resolve, question, out);
}

static struct unwind_space space_of(struct lookup *l, struct profile *p, struct memory_reader *memory)
{
    bool asks = resolve_begin(&l->stacks->scratch->resolve, l->target, p, memory);
    return (struct unwind_space){
        .id = l->target->space,
        .find = find_place,
        .resolve = asks ? ask_runtimes : NULL,
        .code = memory,
        .context = l,
    };
}

/* Puts the functions that a runtime told of this frame in its place. */
static bool put_resolved(struct stacks_scratch *to, uint64_t address)
{
    const struct resolved *r = resolve_find(&to->resolve, address);
    for (size_t i = 0; r != NULL && i < r->count; i++) {
        put_native(to, IMAGE_NONE, to->resolve.function[r->from + i]);
    }
    return r != NULL;
}

static uint32_t module_of(struct stacks *s, struct profile *p, struct target *target,
                          const struct unwind_frame *frame)
{
    size_t place = images_place(frame->image);
    while (s->modules.len <= place) {
        if (vec_push(&s->modules) == NULL) {
            return 0;
        }
    }
    struct stacks_module *memo = &s->modules.at[place];
    if (memo->window != s->targets->window || memo->image != frame->image) {
        struct mapping *mapping = targets_known_mapping(target, frame->address);
        if (mapping == NULL) {
            return 0;
        }
        *memo = (struct stacks_module){frame->image, targets_module_id(s->targets, p, mapping),
                                       s->targets->window};
    }
    return memo->module;
}

static void take_frames(struct stacks *s, struct profile *p, struct target *target)
{
    const struct unwind_result *r = &s->scratch->unwound;
    bool known = r->count > 0 && r->frame[r->count - 1].image != IMAGE_NONE;
    for (size_t i = 0; i < r->count; i++) {
        const struct unwind_frame *at = &r->frame[i];
        bool guess_begins = i > 0 && (at->flags & FRAME_GUESSED) != 0 &&
                            (r->frame[i - 1].flags & FRAME_GUESSED) == 0;
        if (i > 0 && i == r->joint) {
            put_mark(s->scratch, p, "[frames left out]");
        }
        if (guess_begins && at->image != IMAGE_NONE) {
            put_mark(s->scratch, p, "[guessed]");
        }
        if (!put_resolved(s->scratch, at->address) && at->image != IMAGE_NONE) {
            put_native(s->scratch, at->image,
                       (struct frame){.address = at->elf_address,
                                      .module = module_of(s, p, target, at),
                                      .kind = FRAME_NATIVE});
        }
    }
    if (r->end != STACK_COMPLETE && r->end != STACK_GUESSED && known) {
        put_mark(s->scratch, p, "[truncated]");
    }
}

/* What a catcher read of the stack's far end, as if it were the process's memory now: the end of the copy
 * once more, by which the unwinder tells whether the rest is still that of the sample, and the rest. */
struct beyond {
    const struct record *sample;
    const struct caught *caught;
    uint64_t base; /* of the copy */
};

static bool read_beyond(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    const struct beyond *b = context;
    uint64_t copied = b->sample->as.sample.stack_len, in_copy = address - b->base;
    uint64_t offset = address - b->caught->memory_address, limit = b->caught->memory_bytes;
    if (address >= b->caught->memory_address && offset <= limit && len <= limit - offset) {
        memcpy(out, caught_memory(b->caught) + offset, len);
        return true;
    }
    if (address >= b->base && in_copy <= copied && len <= copied - in_copy) {
        memcpy(out, b->sample->as.sample.stack + in_copy, len);
        return true;
    }
    return err_set(err, ERR_MALFORMED, 0, "%#llx was not read", (unsigned long long)address);
}

/* What the size of copies is chosen by. Above the outermost frame stands what no unwinder reads: a thread's own data, a
 * process's arguments and environment. */
static void note_size(struct target *target, const struct record *sample,
                      const struct unwind_result *result)
{
    enum { BEYOND_BYTES = 256 }; /* that the end of the frames is told by */
    size_t copied = sample->as.sample.stack_len, len = result->reach + BEYOND_BYTES;
    len = len < copied ? len : copied;
    target->stacks_seen++;
    target->stacks_short += result->end == STACK_TRUNCATED;
    target->stack_most = len > target->stack_most ? (uint32_t)len : target->stack_most;
    bool needs_half = len > target->stack_bytes / 2;
    target->stacks_half += needs_half;
    target->stacks_fit = needs_half ? 0 : target->stacks_fit + 1;
}

static void take_unwound(struct stacks *s, struct profile *p, struct target *target,
                         const struct record *sample, const struct caught *caught)
{
    struct unwind_registers registers;
    if (sample->as.sample.is_32bit || sample->as.sample.registers == NULL ||
        !unwind_registers_of_perf(&registers, s->registers, sample->as.sample.registers)) {
        return; /* a kernel thread, one that exits, code of the other processor mode */
    }
    const struct world *world = s->targets->images->world;
    struct memory_reader memory = world->memory(world->context, target->pid, sample->time_ns);
    struct beyond beyond = {sample, caught, unwind_sp(&registers)};
    struct memory_reader kept = {read_beyond, &beyond};
    bool has_kept = caught != NULL && caught->memory_bytes > 0;
    struct lookup lookup = {s, target, sample->time_ns};
    (void)targets_mapping(s->targets, target, unwind_ip(&registers), sample->time_ns);
    const struct unwind_space space = space_of(&lookup, p, &memory);
    const struct unwind_stack stack = {unwind_sp(&registers), sample->as.sample.stack,
                                       sample->as.sample.stack_len,
                                       has_kept                     ? &kept
                                       : target->ended || s->coarse ? NULL
                                                                    : &memory};
    struct unwind_result *result = &s->scratch->unwound;
    unwind(s->unwinder, &registers, &stack, &space, UNWIND_FRAMES_MAX, result);
    s->ends[result->end]++;
    if (!sample->as.sample.of_burst) {
        note_size(target, sample, result);
    }
    take_frames(s, p, target);
}

/* ---- the runtime's half ---- */

static const enum runtime_share share_of[CATCH_VERDICT_COUNT] = {
    [CATCH_PROVEN] = SHARE_PROVEN,       [CATCH_LATE] = SHARE_LATE,
    [CATCH_OTHER_CPU] = SHARE_ELSEWHERE, [CATCH_LONG] = SHARE_RAN_ON,
    [CATCH_MOVED] = SHARE_ELSEWHERE,     [CATCH_ASLEEP] = SHARE_RAN_ON,
    [CATCH_NOT_PREEMPTED] = SHARE_RAN_ON, [CATCH_UNREAD] = SHARE_UNREAD,
};

static enum weave_runtime kind_of(const struct runtime_frame *frame)
{
    return (frame->flags & RUNTIME_FRAME_SHIM) != 0    ? WEAVE_SHIM
           : (frame->flags & RUNTIME_FRAME_ENTRY) != 0 ? WEAVE_ENTRY
                                                       : WEAVE_FRAME;
}

/* The frames of the profile that were caught; false: the profile is full. */
static bool take_runtime(struct stacks *s, struct profile *p, const struct walked *walked)
{
    uint32_t *frames = &s->scratch->runtime[walked->from];
    uint8_t *kinds = &s->scratch->runtime_kind[walked->from];
    const struct caught *caught = walked->caught;
    readers_frames(s->readers, walked->reader, p, caught->frame, caught->frame_count, frames);
    for (size_t i = 0; i < caught->frame_count; i++) {
        kinds[i] = (uint8_t)kind_of(&caught->frame[i]);
        if (frames[i] == 0) {
            return false;
        }
    }
    return true;
}

/* One frame in the place of all: the thread ran on while it was read, or its memory could not be. */
static void take_failure(struct stacks *s, struct profile *p, const struct walked *walked)
{
    const struct runtime *runtime = walked->reader->runtime;
    char name[64];
    snprintf(name, sizeof name, "[%s: %s]", runtime->name,
             walked->caught->end == RUNTIME_TORN ? "torn" : "unreadable");
    struct frame frame = {.kind = (uint8_t)runtime->kind, .name = profile_cstring(p, name)};
    s->scratch->runtime[walked->from] = profile_frame(p, &frame);
    s->scratch->runtime_kind[walked->from] = WEAVE_ENTRY;
}

static bool is_whole(const struct walked *walked)
{
    return walked->caught->end == RUNTIME_COMPLETE;
}

/* The frames of all runtimes that the thread runs, one behind the other. */
static bool take_runtimes(struct stacks *s, struct profile *p)
{
    struct stacks_scratch *to = s->scratch;
    size_t from = 0;
    for (size_t i = 0; i < to->walked_count; i++) {
        struct walked *walked = &to->walked[i];
        walked->from = from;
        if (!is_whole(walked)) {
            take_failure(s, p, walked);
        } else if (!take_runtime(s, p, walked)) {
            return false;
        }
        size_t count = is_whole(walked) ? walked->caught->frame_count : 1;
        to->stack[i] = (struct weave_stack){&to->runtime_kind[from], count};
        from += count;
    }
    return true;
}

/* What stands above a frame of the runtime on the way to the leaf, and has no frame of its own. */
static bool add_behind(struct profile *p, const struct reader *reader,
                       const struct runtime_frame *frame, uint32_t *node)
{
    enum frame_kind kind = reader->runtime->kind;
    bool fits = (frame->flags & RUNTIME_FRAME_CUT) == 0 ||
                add_mark(p, kind, "[frames left out]", node);
    return fits && ((frame->flags & RUNTIME_FRAME_COLLECTS) == 0 || add_mark(p, kind, "[gc]", node));
}

static bool add_runtime_frame(struct stacks *s, struct profile *p, const struct weave_frame *at, uint32_t *node)
{
    const struct walked *walked = &s->scratch->walked[at->runtime - 1];
    return descend_to(p, node, s->scratch->runtime[walked->from + at->index]) &&
           (!is_whole(walked) || add_behind(p, walked->reader, &walked->caught->frame[at->index], node));
}

/* `mark`: the native leaf is of another moment. */
static bool add_woven(struct stacks *s, struct profile *p, size_t count, bool mark, uint32_t *node)
{
    const struct stacks_scratch *from = s->scratch;
    bool fits = true, inside = false;
    for (size_t i = count; fits && i > 0; i--) {
        const struct weave_frame *at = &from->woven[i - 1];
        if (at->runtime != 0) {
            inside = true;
            fits = add_runtime_frame(s, p, at, node);
            continue;
        }
        if (mark && inside) {
            mark = false;
            fits = add_mark(p, FRAME_NATIVE, "[~]", node);
        }
        fits = fits && descend(p, node, &from->native[at->index]);
    }
    return fits;
}

/* What a native frame is to the runtimes that the thread runs. */
static uint8_t native_kind_of(const struct stacks_scratch *from, size_t native)
{
    for (size_t i = 0; i < from->walked_count; i++) {
        enum runtime_native kind =
            readers_native(from->walked[i].reader, from->image[native], from->native[native].address);
        if (kind != RUNTIME_NATIVE_PLAIN) {
            return (uint8_t)(kind == RUNTIME_NATIVE_LOOP ? WEAVE_LOOP + i : WEAVE_PLUMBING);
        }
    }
    return WEAVE_NATIVE;
}

static bool add_both(struct stacks *s, struct profile *p, uint32_t *node)
{
    struct stacks_scratch *to = s->scratch;
    bool proven = to->verdict == CATCH_PROVEN;
    size_t count;
    if (!take_runtimes(s, p)) {
        return false;
    }
    to->native_count = s->runtime_alone ? 0 : to->native_count;
    for (size_t i = 0; i < to->native_count; i++) {
        to->native_kind[i] = native_kind_of(to, i);
    }
    for (size_t i = 0; i < to->walked_count; i++) {
        proven = proven && is_whole(&to->walked[i]);
    }
    if (proven && to->native_count > 0) {
        s->woven[weave(to->native_kind, to->native_count, to->stack, to->walked_count, to->woven, &count)]++;
        return add_woven(s, p, count, false, node);
    }
    bool mark = weave_apart(to->native_kind, to->native_count, to->stack, to->walked_count, to->woven, &count);
    s->woven[WOVEN_APART] += to->native_count > 0;
    return add_woven(s, p, count, mark, node);
}

static bool runs(enum runtime_end end)
{
    return end != RUNTIME_EMPTY && end != RUNTIME_NO_THREAD;
}

/* The runtimes that the thread runs; counts what became of the reading. `first` tells of the sample. */
static void take_walked(struct stacks *s, const struct target *target, const struct caught *first)
{
    struct stacks_scratch *to = s->scratch;
    to->walked_count = 0;
    if (first == NULL || s->readers == NULL) {
        return;
    }
    const struct reader *any = target->reader;
    s->shares[SHARE_UNREAD] += first->serial == 0 && any != NULL && any->runtime != NULL && any->runtime->walk != NULL;
    bool good = true;
    to->verdict = first->verdict;
    for (const struct caught *caught = first; caught != NULL; caught = caught_next(caught)) {
        struct reader *reader = caught->serial == 0 ? NULL : readers_of(s->readers, target, caught->serial);
        if (reader == NULL || reader->runtime == NULL) {
            continue;
        }
        readers_walked(s->readers, reader, caught->end);
        if (runs(caught->end) && to->walked_count < WEAVE_RUNTIMES_MAX) {
            to->walked[to->walked_count++] = (struct walked){reader, caught, 0};
            good = good && caught->end == RUNTIME_COMPLETE;
        }
    }
    if (to->walked_count > 0) {
        s->shares[good ? share_of[first->verdict] : SHARE_TORN]++;
    }
}

/* ---- all of it ---- */

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
        take_unwound(s, p, target, sample, caught);
    } else {
        take_chain(s, p, target, halves, sample->time_ns);
    }
    take_walked(s, target, caught);
    return s->scratch->walked_count > 0 ? add_both(s, p, node) : add_native(s, p, node);
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
    return add_mark(p, FRAME_NATIVE, "[unknown]", node);
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
    memset(s->ends, 0, sizeof s->ends);
    memset(s->shares, 0, sizeof s->shares);
    memset(s->woven, 0, sizeof s->woven);
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
    if (!add_mark(p, FRAME_NATIVE, "[budget]", node)) {
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
    profile_add(p, labels_thread(p, thread, caught), node, sample->as.sample.period_ns, 1);
    (void)profile_need(p, needed);
    target->sampled_ns += sample->as.sample.period_ns;
    if (sample->time_ns > target->glanced_at_ns && !sample->as.sample.of_burst) {
        target->since_glance_ns += sample->as.sample.period_ns;
    }
    s->samples++;
}

/* What decides how much of a stack the clock's samples copy is told by them alone: another event's copies
 * may be smaller, and its stacks of another kind. */
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
    uint32_t seen = target->stacks_seen, cut = target->stacks_short, half = target->stacks_half;
    uint32_t most = target->stack_most, fit = target->stacks_fit;
    *thread = targets_thread_id(s->targets, p, target, sample->tid);
    uint32_t node = node_of(s, p, target, sample, NULL);
    memcpy(s->ends, ends, sizeof ends);
    target->stacks_seen = seen;
    target->stacks_short = cut;
    target->stacks_half = half;
    target->stack_most = most;
    target->stacks_fit = fit;
    return node;
}

uint32_t stacks_node_of_sleeper(struct stacks *s, struct profile *p, struct target *target,
                                const struct stacks_sleeper *at)
{
    uint32_t node = 0;
    s->scratch->native_count = 0;
    if (s->unwinder != NULL) {
        const struct world *world = s->targets->images->world;
        struct unwind_registers registers = unwind_registers_at(at->ip, at->sp);
        struct memory_reader memory = world->memory(world->context, target->pid, at->time_ns);
        struct lookup lookup = {s, target, at->time_ns};
        (void)targets_mapping(s->targets, target, at->ip, at->time_ns);
        const struct unwind_space space = space_of(&lookup, p, &memory);
        const struct unwind_stack stack = {at->sp, at->stack, at->len, &memory};
        unwind(s->unwinder, &registers, &stack, &space, UNWIND_FRAMES_MAX, &s->scratch->unwound);
        take_frames(s, p, target);
    }
    return add_native(s, p, &node) && add_mark(p, FRAME_NATIVE, at->leaf, &node) ? node : 0;
}

uint32_t stacks_node(struct stacks *s, struct profile *p, struct target *target,
                     const struct caught *caught)
{
    struct stacks_scratch *to = s->scratch;
    struct reader *reader = readers_of(s->readers, target, caught->serial);
    uint32_t node = 0;
    if (reader == NULL || caught->end != RUNTIME_COMPLETE) {
        return 0;
    }
    to->native_count = 0;
    to->walked[0] = (struct walked){reader, caught, 0};
    to->walked_count = 1;
    to->verdict = caught->verdict;
    return add_both(s, p, &node) ? node : 0;
}

void stacks_add_settled(struct stacks *s, struct profile *p, uint32_t pid, uint32_t tid,
                        uint64_t cpu_ns)
{
    struct target *target = targets_find(s->targets, pid);
    if (target != NULL && cpu_ns > 0) {
        profile_account(p, targets_thread_id(s->targets, p, target, tid), ACCOUNT_NATIVE_NO_PERF,
                        cpu_ns);
        target->settled_ns += cpu_ns;
    }
}

bool stacks_add_tick(struct stacks *s, struct profile *p, const struct caught *caught)
{
    struct target *target = targets_find(s->targets, caught->pid);
    s->scratch->walked_count = 0;
    if (target != NULL) {
        take_walked(s, target, caught);
    }
    if (s->scratch->walked_count == 0) {
        stacks_add_settled(s, p, caught->pid, caught->tid, caught->weight_ns);
        return false;
    }
    uint32_t node = 0;
    s->scratch->native_count = 0;
    const struct halves none = {0};
    bool fits = add_both(s, p, &node), needed = profile_need(p, true);
    fits = fits || collapse(s, p, &none, s->scratch->runtime[0], &node);
    uint32_t thread = targets_thread_id(s->targets, p, target, caught->tid);
    profile_add(p, labels_thread(p, thread, caught), fits ? node : 0, caught->weight_ns, 1);
    (void)profile_need(p, needed);
    target->sampled_ns += caught->weight_ns;
    s->samples++;
    return true;
}
