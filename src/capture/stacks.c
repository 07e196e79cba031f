#include "capture/stacks.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 1024,      /* of one half of a stack; the kernel gives at most 127 by default */
    ADDRESS_LEAST = 0x1000 /* the first page is never mapped: such an address is no code */
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

/* ---- by the kernel's chain ---- */

/* Enters the user half from the root. Looks mappings up from the leaf, because the leaf is certain
 * and everything beyond the first unmapped address is not. */
static bool add_chain(struct stacks *s, struct profile *p, struct target *target,
                      const struct halves *halves, uint64_t now_ns, uint32_t *node)
{
    struct frame frames[DEPTH_MAX];
    size_t depth = 0;
    for (; depth < halves->user_len; depth++) {
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
        frames[depth] = (struct frame){.address = address - mapping->bias,
                                       .module = targets_module_id(s->targets, p, mapping),
                                       .kind = FRAME_NATIVE};
    }
    bool fits = true;
    while (fits && depth > 0) {
        fits = descend(p, node, &frames[--depth]);
    }
    return fits;
}

/* ---- by unwinding ---- */

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

static uint32_t module_of(struct stacks *s, struct profile *p, struct target *target,
                          const struct unwind_frame *frame)
{
    while (s->modules.len <= frame->image) {
        if (vec_push(&s->modules) == NULL) {
            return 0;
        }
    }
    struct stacks_module *memo = &s->modules.at[frame->image];
    if (memo->window != s->targets->window) {
        struct mapping *mapping = targets_known_mapping(target, frame->address);
        if (mapping == NULL) {
            return 0;
        }
        *memo = (struct stacks_module){targets_module_id(s->targets, p, mapping),
                                       s->targets->window};
    }
    return memo->module;
}

static bool add_mark(struct profile *p, const char *name, uint32_t *node)
{
    struct frame frame = {.name = profile_cstring(p, name), .kind = FRAME_NATIVE};
    return descend(p, node, &frame);
}

static bool enter_frames(struct stacks *s, struct profile *p, struct target *target, uint32_t *node)
{
    const struct unwind_result *r = s->result;
    bool certain = r->end == STACK_COMPLETE || r->end == STACK_GUESSED;
    bool known = r->count > 0 && r->frame[r->count - 1].image != IMAGE_NONE;
    bool fits = certain || !known || add_mark(p, "[truncated]", node);
    for (size_t i = r->count; fits && i > 0; i--) {
        const struct unwind_frame *at = &r->frame[i - 1];
        if (at->image == IMAGE_NONE) {
            continue;
        }
        struct frame frame = {.address = at->elf_address,
                              .module = module_of(s, p, target, at),
                              .kind = FRAME_NATIVE};
        fits = descend(p, node, &frame);
        bool guess_ends = (at->flags & FRAME_GUESSED) != 0 && i > 1 &&
                          (r->frame[i - 2].flags & FRAME_GUESSED) == 0;
        fits = fits && (!guess_ends || add_mark(p, "[guessed]", node));
    }
    return fits;
}

static bool add_unwound(struct stacks *s, struct profile *p, struct target *target,
                        const struct record *sample, uint32_t *node)
{
    struct unwind_registers registers;
    if (sample->as.sample.is_32bit || sample->as.sample.registers == NULL ||
        !unwind_registers_of_perf(&registers, s->registers, sample->as.sample.registers)) {
        return true; /* a kernel thread, one that exits, code of the other processor mode */
    }
    const struct world *world = s->targets->images->world;
    struct memory_reader memory = world->memory(world->context, target->pid, sample->time_ns);
    struct lookup lookup = {s, target, sample->time_ns};
    (void)targets_mapping(s->targets, target, unwind_ip(&registers), sample->time_ns);
    const struct unwind_space space = {target->space, find_place, &memory, &lookup};
    const struct unwind_stack stack = {unwind_sp(&registers), sample->as.sample.stack,
                                       sample->as.sample.stack_len,
                                       target->ended ? NULL : &memory};
    unwind(s->unwinder, &registers, &stack, &space, UNWIND_FRAMES_MAX, s->result);
    s->ends[s->result->end]++;
    target->stacks_seen++;
    target->stacks_short += s->result->end == STACK_TRUNCATED;
    target->stacks_half += sample->as.sample.stack_len > target->stack_bytes / 2;
    return enter_frames(s, p, target, node);
}

static bool add_user(struct stacks *s, struct profile *p, struct target *target,
                     const struct record *sample, const struct halves *halves, uint32_t *node)
{
    return s->unwinder != NULL ? add_unwound(s, p, target, sample, node)
                               : add_chain(s, p, target, halves, sample->time_ns, node);
}

/* ---- both halves ---- */

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
    return add_mark(p, "[unknown]", node);
}

bool stacks_init(struct stacks *s, struct targets *targets, struct unwinder *unwinder,
                 uint64_t registers)
{
    *s = (struct stacks){.targets = targets, .unwinder = unwinder, .registers = registers};
    s->result = unwinder == NULL ? NULL : malloc(sizeof *s->result);
    return unwinder == NULL || s->result != NULL;
}

void stacks_release(struct stacks *s)
{
    vec_release(&s->modules);
    free(s->result);
}

void stacks_end_window(struct stacks *s, struct profile *p)
{
    memcpy(p->meta.stack_ends, s->ends, sizeof s->ends);
    memset(s->ends, 0, sizeof s->ends);
}

void stacks_add(struct stacks *s, struct profile *p, const struct record *sample)
{
    struct target *target = targets_get(s->targets, sample->pid);
    if (target == NULL) {
        return;
    }
    uint32_t thread = targets_thread_id(s->targets, p, target, sample->tid);
    struct halves halves = split(sample);
    uint32_t node = 0;
    bool fits = add_user(s, p, target, sample, &halves, &node) &&
                add_kernel(p, &halves, &node) && (node != 0 || add_unknown(p, &node));
    profile_add(p, thread, fits ? node : 0, sample->as.sample.period_ns, 1);
    target->sampled_ns += sample->as.sample.period_ns;
    if (sample->time_ns > target->glanced_at_ns) {
        target->since_glance_ns += sample->as.sample.period_ns;
    }
    s->samples++;
}
