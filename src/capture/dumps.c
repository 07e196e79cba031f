#include "capture/dumps.h"

#include <stdlib.h>

uint32_t dumps_wanted(const struct target *target)
{
    uint32_t now = target->stack_bytes;
    if (target->stacks_seen >= DUMPS_SEEN_LEAST &&
        target->stacks_short * 50 > target->stacks_seen) {
        if (target->stacks_short * 2 > target->stacks_seen) {
            return DUMPS_MOST_BYTES;
        }
        return now * 2 < DUMPS_MOST_BYTES ? now * 2 : DUMPS_MOST_BYTES;
    }
    if (target->stacks_seen >= DUMPS_SPARE_LEAST &&
        target->stacks_half * 100 < target->stacks_seen && now / 2 >= DUMPS_LEAST_BYTES) {
        return now / 2;
    }
    return now;
}

static bool may_change(const struct target *target)
{
    return !target->ended && target->stack_changes < DUMPS_CHANGES_MAX &&
           (target->rung == RUNG_PERF || target->rung == RUNG_PERF_USER);
}

/* The process whose events a process's samples come from: itself, or the ancestor they were inherited
 * from. Null when it is not known any more. */
static struct target *owner_of(const struct perf *perf, struct targets *targets,
                               struct target *target)
{
    enum { GENERATIONS_MAX = 64 };
    for (unsigned i = 0; target != NULL && i < GENERATIONS_MAX; i++) {
        if (perf_is_followed(perf, target->pid)) {
            return target;
        }
        target = targets_find(targets, target->parent_pid);
    }
    return NULL;
}

/* A process that grows is served before one that could shrink; shrinking is not worth new events for
 * a whole family. */
static struct target *neediest(const struct perf *perf, struct targets *targets)
{
    struct target *found = NULL;
    vec_each(&targets->all, slot)
    {
        struct target *target = *slot;
        uint32_t wanted = may_change(target) ? dumps_wanted(target) : target->stack_bytes;
        if (wanted > target->stack_bytes) {
            return target;
        }
        if (wanted < target->stack_bytes && perf_is_followed(perf, target->pid)) {
            found = target;
        }
    }
    return found;
}

static void set_size(struct target *target, uint32_t stack_bytes)
{
    target->stack_bytes = stack_bytes;
    target->stacks_seen = target->stacks_short = target->stacks_half = 0;
    target->stack_changes++;
}

struct family {
    VEC(struct target *) members;
};

/* Listed before any of them gets events: the children of one that has some are no longer the owner's. */
static bool list_family(const struct perf *perf, struct targets *targets,
                        const struct target *owner, struct family *out)
{
    bool good = true;
    for (size_t i = 0; good && i < targets->all.len; i++) {
        struct target *one = targets->all.at[i];
        if (!one->ended && owner_of(perf, targets, one) == owner) {
            struct target **place = vec_push(&out->members);
            good = place != NULL;
            if (good) {
                *place = one;
            }
        }
    }
    return good;
}

/* A size that one of a family needs, the next one of its kind will need as well: compilers that a
 * build starts one after the other. */
static bool follow_family(struct perf *perf, const struct family *family, uint32_t stack_bytes)
{
    vec_each(&family->members, slot)
    {
        struct err err = {0};
        bool good = perf_follow_process(perf, (*slot)->pid, stack_bytes, &err) ||
                    err.kind == ERR_GONE;
        if (!good || err.kind == ERR_LIMIT) { /* not all of its threads */
            return false;
        }
    }
    return true;
}

uint32_t dumps_adapt(struct perf *perf, struct targets *targets)
{
    struct target *target = neediest(perf, targets);
    struct target *owner = target == NULL ? NULL : owner_of(perf, targets, target);
    if (owner == NULL) {
        return 0;
    }
    uint32_t wanted = dumps_wanted(target);
    struct family family = {0};
    bool good = list_family(perf, targets, owner, &family);
    perf_retire(perf, owner->pid);
    good = good && follow_family(perf, &family, wanted);
    perf_replace(perf, !good);
    vec_each(&family.members, member)
    {
        set_size(*member, good ? wanted : (*member)->stack_bytes);
    }
    vec_release(&family.members);
    return good ? target->pid : 0;
}
