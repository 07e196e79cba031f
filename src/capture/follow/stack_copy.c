/* How large a copy of its stack a process needs: by the number of stacks that were cut where the copy ends, and of
 * those that needed half of it; and the change itself, of the events of a whole inherit group. The rules are in
 * stack_copy.h. */
#include "capture/follow/stack_copy.h"
#include "capture/follow/inherit_group.h"


/* The kernel takes multiples of 8. */
static uint32_t half(uint32_t bytes)
{
    return bytes / 2 & ~7U;
}

/* At once as far as the largest stack so far, taken twice, allows: each step costs new events. */
static uint32_t smaller(uint32_t now, uint32_t most)
{
    now = half(now);
    while (half(now) >= STACK_COPY_CHEAP_BYTES && most <= now / 4) {
        now = half(now);
    }
    return now;
}

static bool is_too_small(const struct target *target)
{
    uint32_t seen = target->copy.seen, cut = target->copy.cut;
    return (seen >= STACK_COPY_SEEN_MIN && cut * 50 > seen) ||
           (target->copy.bytes < STACK_COPY_CHEAP_BYTES && cut >= STACK_COPY_CUT_FEW);
}

static bool is_too_large(const struct target *target)
{
    return half(target->copy.bytes) >= STACK_COPY_CHEAP_BYTES && target->copy.seen >= STACK_COPY_SPARE_MIN &&
           target->copy.half * 100 < target->copy.seen;
}

uint32_t stack_copy_wanted(const struct target *target)
{
    uint32_t now = target->copy.bytes;
    if (is_too_small(target)) {
        bool most_are = target->copy.cut * 2 > target->copy.seen;
        return !most_are && now * 2 < STACK_COPY_MAX_BYTES ? now * 2 : STACK_COPY_MAX_BYTES;
    }
    return is_too_large(target) ? smaller(now, target->copy.most) : now;
}

uint32_t stack_copy_held_wanted(const struct target *target, uint32_t now, uint32_t most)
{
    const struct target_copies *copy = &target->copy;
    if (copy->cut >= STACK_COPY_CUT_FEW) {
        return now < most / 4 ? 4 * now : now < most ? most : now;
    }
    bool spare = copy->seen >= STACK_COPY_HELD_SEEN && copy->changes < STACK_COPY_HELD_CHANGES &&
                 now / 4 >= STACK_COPY_HELD_MIN && copy->most <= now / 8;
    return spare ? now / 4 : now;
}

bool stack_copy_has_new_gaps(const struct target *target)
{
    const struct target_copies *copy = &target->copy;
    return !target->runtime.gaps && copy->gaps >= STACK_COPY_CUT_FEW &&
           copy->gaps > copy->seen / STACK_COPY_DEEP_PERIOD;
}

static bool may_change(const struct target *target)
{
    return !target->ended && !target->runtime.caught && target->copy.changes < STACK_COPY_CHANGES_MAX &&
           (target->capture_mode == CAPTURE_PERF || target->capture_mode == CAPTURE_PERF_USER);
}

/* A process that grows is served before one that could shrink; shrinking is not worth new events for
 * a whole group. */
static struct target *neediest(const struct perf *perf, struct targets *targets)
{
    struct target *found = NULL;
    vec_each(&targets->all, slot)
    {
        struct target *target = *slot;
        uint32_t wanted = may_change(target) ? stack_copy_wanted(target) : target->copy.bytes;
        if (wanted > target->copy.bytes) {
            return target;
        }
        if (wanted < target->copy.bytes && perf_is_followed(perf, target->pid)) {
            found = target;
        }
    }
    return found;
}

/* A size that one of a group needs, the next one of its kind will need as well: compilers that a
 * build starts one after the other. */
static bool resize(struct perf *perf, struct inherit_group *group, uint32_t wanted)
{
    bool good = inherit_group_refollow(perf, group, wanted);
    vec_each(&group->members, slot)
    {
        struct target *one = *slot;
        one->copy.bytes = good ? wanted : one->copy.bytes;
        one->copy.seen = one->copy.cut = one->copy.gaps = one->copy.half = 0;
        one->copy.changes++;
    }
    return good;
}

uint32_t stack_copy_adapt(struct perf *perf, struct targets *targets)
{
    struct target *target = neediest(perf, targets);
    struct inherit_group group = {0};
    bool good = target != NULL && inherit_group_list(perf, targets, target, &group) &&
                group.owner != NULL && resize(perf, &group, stack_copy_wanted(target));
    inherit_group_release(&group);
    return good ? target->pid : 0;
}
