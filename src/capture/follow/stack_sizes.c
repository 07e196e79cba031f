#include "capture/follow/stack_sizes.h"
#include "base/time.h"
#include "capture/follow/stack_copy.h"

#include <stdlib.h>

enum { ADAPT_MS = 1000 };

struct stack_sizes {
    struct follow *follow;
    uint64_t next_ns;
};

struct stack_sizes *stack_sizes_new(struct follow *f)
{
    struct stack_sizes *sizes = calloc(1, sizeof *sizes);
    if (sizes != NULL) {
        sizes->follow = f;
    }
    return sizes;
}

static void adapt(void *state, uint64_t now_ns)
{
    struct stack_sizes *sizes = state;
    struct follow *f = sizes->follow;
    struct shared *s = f->shared;
    if (!s->perf_on || perf_sampling(s->perf)->stack_bytes == 0 || s->throttle.coarse || now_ns < sizes->next_ns) {
        return;
    }
    uint32_t pid = stack_copy_adapt(s->perf, &f->targets);
    const struct target *target = pid == 0 ? NULL : targets_find(&f->targets, pid);
    if (target != NULL) {
        sizes->next_ns = now_ns + ADAPT_MS * NS_PER_MS;
        follow_newborn(f);
        log_say(&s->log, LOG_DEBUG, "pid %u (%s): samples copy %u KiB of the stack from now on", pid,
                target->name, target->copy.bytes / 1024);
    }
}

const struct concern stack_sizes_concern = {
    .name = "stack sizes",
    .round = adapt,
    .release = free,
};
