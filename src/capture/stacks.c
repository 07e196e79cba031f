#include "capture/stacks.h"

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

/* Enters the user half from the root. Looks mappings up from the leaf, because the leaf is certain
 * and everything beyond the first unmapped address is not. */
static bool add_user(struct stacks *s, struct profile *p, struct target *target,
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
    struct frame frame = {.name = profile_cstring(p, "[unknown]"), .kind = FRAME_NATIVE};
    return descend(p, node, &frame);
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
    bool fits = add_user(s, p, target, &halves, sample->time_ns, &node) &&
                add_kernel(p, &halves, &node) && (node != 0 || add_unknown(p, &node));
    profile_add(p, thread, fits ? node : 0, sample->as.sample.period_ns, 1);
    target->sampled_ns += sample->as.sample.period_ns;
    if (sample->time_ns > target->glanced_at_ns) {
        target->since_glance_ns += sample->as.sample.period_ns;
    }
    s->samples++;
}
