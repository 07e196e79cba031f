/* stacks_native: the native half of a stack, leaf first, into the scratch: by the kernel's chain of frame pointers, or
 * by unwinding the registers and the copy of the stack that came with a sample. Addresses become file-relative here,
 * and what was cut, guessed or truncated gets its mark. */
#include "capture/stacks/stacks_private.h"
#include "base/err.h"

#include <string.h>

enum { ADDRESS_LEAST = 0x1000 }; /* the first page is never mapped: such an address is no code */

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

/* Finds the mappings from the leaf on, because the leaf is certain and everything beyond the first
 * unmapped address is not. */
void stacks_take_chain(struct stacks *s, struct profile *p, struct target *target,
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
        .unreadable = images_may_stall(targets->images, mapping->image),
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
    const struct readers *readers = l->stacks->readers; /* null: nobody reads runtimes */
    bool shows_tiers = readers != NULL && readers->settings->runtime.shows_tiers;
    bool asks = resolve_begin(&l->stacks->scratch->resolve, l->target, p, shows_tiers);
    return (struct unwind_space){
        .id = l->target->space,
        .find = find_place,
        .resolve = asks ? ask_runtimes : NULL,
        .code = memory,
        .context = l,
    };
}

/* Puts the functions that a runtime told of this frame in its place. */
static bool put_resolved(struct stacks_scratch *to, uint32_t question)
{
    const struct resolved *r = question != 0 ? resolve_find(&to->resolve, question) : NULL;
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
        if (!put_resolved(s->scratch, at->question) && at->image != IMAGE_NONE) {
            put_native(s->scratch, at->image,
                       (struct frame){.address = at->elf_address,
                                      .module = module_of(s, p, target, at),
                                      .kind = FRAME_NATIVE});
        }
    }
    if (!r->at_start && known) {
        put_mark(s->scratch, p, "[truncated]");
    }
}

/* What a catcher read of the stack's far end, as if it were the process's memory now: the end of the copy
 * once more, by which the unwinder sees whether the rest is still that of the sample, and the rest. */
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

/* Above the outermost frame stands what no unwinder reads: a thread's own data, a process's arguments and
 * environment. */
void stacks_note_size(struct target *target, size_t copied, uint64_t sp, const struct unwind_result *result)
{
    enum { BEYOND_BYTES = 256, PAGE_BYTES = 4096 }; /* that the end of the frames is told by; of memory */
    size_t len = result->reach + BEYOND_BYTES;
    len = len < copied ? len : copied;
    target->copy.seen++;
    bool cut = result->end == STACK_TRUNCATED && result->reach >= copied;
    bool gap = copied < target->copy.bytes && (sp + copied) % PAGE_BYTES == 0;
    target->copy.cut += cut && !gap; /* a larger one would end there, too */
    target->copy.gaps += cut && gap;
    target->copy.most = len > target->copy.most ? (uint32_t)len : target->copy.most;
    target->copy.half += len > target->copy.bytes / 2;
}

void stacks_take_unwound(struct stacks *s, struct profile *p, struct target *target,
                         const struct record *sample, const struct halves *halves, const struct caught *caught)
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
    bool has_kept = caught != NULL && caught->memory_bytes > 0 && caught->held_ns == 0; /* a held one's is the copy */
    struct lookup lookup = {s, target, sample->time_ns};
    (void)targets_mapping(s->targets, target, unwind_ip(&registers), sample->time_ns);
    const struct unwind_space space = space_of(&lookup, p, &memory);
    struct memory_reader *now = target->ended || s->coarse ? NULL : &memory;
    const struct unwind_stack stack = {
        .base = unwind_sp(&registers),
        .copy = sample->as.sample.stack,
        .len = sample->as.sample.stack_len,
        .beyond = has_kept ? &kept : now,
        .chain = halves->user,
        .chain_len = halves->user_len,
    };
    struct unwind_result *result = &s->scratch->unwound;
    unwind(s->unwinder, &registers, &stack, &space, UNWIND_FRAMES_MAX, result);
    s->ends[result->end]++;
    if (!sample->as.sample.of_burst) {
        stacks_note_size(target, sample->as.sample.stack_len, unwind_sp(&registers), result);
    }
    take_frames(s, p, target);
}

static void unwind_sleeper(struct stacks *s, struct profile *p, struct target *target, const struct stacks_sleeper *at)
{
    const struct world *world = s->targets->images->world;
    struct unwind_registers registers = unwind_registers_at(at->ip, at->sp);
    struct memory_reader memory = world->memory(world->context, target->pid, at->time_ns);
    struct lookup lookup = {s, target, at->time_ns};
    const struct unwind_space space = space_of(&lookup, p, &memory);
    const struct unwind_stack stack = {.base = at->sp, .copy = at->stack, .len = at->len, .beyond = &memory};
    unwind(s->of_sleepers, &registers, &stack, &space, UNWIND_FRAMES_MAX, &s->scratch->unwound);
}

/* Without perf no record tells of a library that was loaded since, and a process that sleeps is not asked. */
static bool has_new_mappings(struct stacks *s, struct target *target, uint64_t now_ns)
{
    bool polled = target->capture_mode == CAPTURE_PROC || target->capture_mode == CAPTURE_RUNTIME;
    uint64_t before = target->space;
    if (polled) {
        (void)targets_mapping(s->targets, target, 0, now_ns); /* nothing is there: it reads them, if not just now */
    }
    return target->space != before;
}

void stacks_take_sleeper(struct stacks *s, struct profile *p, struct target *target, const struct stacks_sleeper *at)
{
    (void)targets_mapping(s->targets, target, at->ip, at->time_ns);
    unwind_sleeper(s, p, target, at);
    if (!s->scratch->unwound.at_start && has_new_mappings(s, target, at->time_ns)) {
        unwind_sleeper(s, p, target, at);
    }
    take_frames(s, p, target);
}
