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

/* Enters the user half below `node`. Looks mappings up from the leaf, because the leaf is certain and
 * everything beyond the first unmapped address is not. */
static uint32_t add_user(struct stacks *s, struct profile *p, struct target *target,
                         const struct halves *halves, uint64_t now_ns)
{
    uint32_t frames[DEPTH_MAX];
    size_t depth = 0;
    for (; depth < halves->user_len; depth++) {
        uint64_t address = halves->user[depth] - (depth > 0);
        struct mapping *mapping = address < ADDRESS_LEAST ? NULL
                                                          : targets_mapping(s->targets, target,
                                                                            address, now_ns);
        if (mapping == NULL) {
            s->cut++;
            break;
        }
        struct frame frame = {.address = address - mapping->bias,
                              .module = targets_module_id(s->targets, p, mapping),
                              .kind = FRAME_NATIVE};
        frames[depth] = profile_frame(p, &frame);
        if (frames[depth] == 0) {
            return 0; /* the profile is full */
        }
    }
    uint32_t node = 0;
    for (size_t i = depth; i-- > 0;) {
        node = profile_child(p, node, frames[i]);
    }
    return node;
}

static uint32_t add_kernel(struct profile *p, uint32_t node, const struct halves *halves)
{
    struct module module = {.path = profile_cstring(p, "[kernel]"), .image = IMAGE_KERNEL};
    uint32_t id = halves->kernel_len == 0 ? 0 : profile_module(p, &module);
    for (size_t i = halves->kernel_len; i-- > 0;) {
        struct frame frame = {.address = halves->kernel[i] - (i > 0),
                              .module = id,
                              .kind = FRAME_KERNEL};
        node = profile_child(p, node, profile_frame(p, &frame));
    }
    return node;
}

/* A sample without any address: an exiting thread, or code outside every mapping. */
static uint32_t add_unknown(struct profile *p)
{
    struct frame frame = {.name = profile_cstring(p, "[unknown]"), .kind = FRAME_NATIVE};
    return profile_child(p, 0, profile_frame(p, &frame));
}

void stacks_add(struct stacks *s, struct profile *p, const struct record *sample)
{
    struct target *target = targets_get(s->targets, sample->pid);
    if (target == NULL) {
        return;
    }
    uint32_t thread = targets_thread_id(s->targets, p, target, sample->tid);
    struct halves halves = split(sample);
    uint32_t node = add_user(s, p, target, &halves, sample->time_ns);
    node = add_kernel(p, node, &halves);
    if (node == 0) {
        node = add_unknown(p);
    }
    profile_add(p, thread, node, sample->as.sample.period_ns, 1);
    target->sampled_ns += sample->as.sample.period_ns;
    s->samples++;
}
