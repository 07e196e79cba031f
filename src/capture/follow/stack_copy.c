#include "capture/follow/stack_copy.h"
#include "capture/follow/inherit_group.h"

#include <stdlib.h>

/* The kernel takes multiples of 8. */
static uint32_t half(uint32_t bytes)
{
    return bytes / 2 & ~7U;
}

/* At once as far as the largest stack so far, taken twice, allows: each step costs new events. */
static uint32_t smaller(uint32_t now, uint32_t most)
{
    now = half(now);
    while (half(now) >= DUMPS_CHEAP_BYTES && most <= now / 4) {
        now = half(now);
    }
    return now;
}

static bool is_too_small(const struct target *target)
{
    uint32_t seen = target->copy.seen, cut = target->copy.cut;
    return (seen >= DUMPS_SEEN_LEAST && cut * 50 > seen) ||
           (target->copy.bytes < DUMPS_CHEAP_BYTES && cut >= DUMPS_CUT_FEW);
}

static bool is_too_large(const struct target *target)
{
    uint32_t left = half(target->copy.bytes);
    if (left < DUMPS_CHEAP_BYTES) {
        return left >= DUMPS_LEAST_BYTES && target->copy.fit >= DUMPS_FIT_LEAST &&
               target->copy.most <= left;
    }
    return target->copy.seen >= DUMPS_SPARE_LEAST &&
           target->copy.half * 100 < target->copy.seen;
}

uint32_t dumps_wanted(const struct target *target)
{
    uint32_t now = target->copy.bytes;
    if (is_too_small(target)) {
        bool most_are = target->copy.cut * 2 > target->copy.seen;
        return !most_are && now * 2 < DUMPS_MOST_BYTES ? now * 2 : DUMPS_MOST_BYTES;
    }
    return is_too_large(target) ? smaller(now, target->copy.most) : now;
}

static bool may_change(const struct target *target)
{
    return !target->ended && !target->runtime.caught && target->copy.changes < DUMPS_CHANGES_MAX &&
           (target->rung == RUNG_PERF || target->rung == RUNG_PERF_USER);
}

/* A process that grows is served before one that could shrink; shrinking is not worth new events for
 * a whole family. */
static struct target *neediest(const struct perf *perf, struct targets *targets)
{
    struct target *found = NULL;
    vec_each(&targets->all, slot)
    {
        struct target *target = *slot;
        uint32_t wanted = may_change(target) ? dumps_wanted(target) : target->copy.bytes;
        if (wanted > target->copy.bytes) {
            return target;
        }
        if (wanted < target->copy.bytes && perf_is_followed(perf, target->pid)) {
            found = target;
        }
    }
    return found;
}

/* A size that one of a family needs, the next one of its kind will need as well: compilers that a
 * build starts one after the other. */
static bool resize(struct perf *perf, struct family *family, uint32_t wanted)
{
    bool good = family_refollow(perf, family, wanted);
    vec_each(&family->members, slot)
    {
        struct target *one = *slot;
        one->copy.bytes = good ? wanted : one->copy.bytes;
        one->copy.seen = one->copy.cut = one->copy.half = one->copy.fit = 0;
        one->copy.changes++;
    }
    return good;
}

uint32_t dumps_adapt(struct perf *perf, struct targets *targets)
{
    struct target *target = neediest(perf, targets);
    struct family family = {0};
    bool good = target != NULL && family_list(perf, targets, target, &family) &&
                family.owner != NULL && resize(perf, &family, dumps_wanted(target));
    family_release(&family);
    return good ? target->pid : 0;
}
