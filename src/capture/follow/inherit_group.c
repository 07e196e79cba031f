/* inherit_group: whose events come from the same process, and new ones for all of them, or all but one. The old ones
 * end only when the new ones are there, so that no sample is missed. What is born while that happens is on no list: it
 * is found by its birth, which lies before its parent's new events. */
#include "capture/follow/inherit_group.h"
#include "os/clock.h"

enum { GENERATIONS_MAX = 64 };

/* The process whose events a process's samples come from: itself, or the ancestor they were inherited
 * from. Null when it is not known any more. */
static struct target *owner_of(const struct perf *perf, struct targets *targets, struct target *target)
{
    for (unsigned i = 0; target != NULL && i < GENERATIONS_MAX; i++) {
        if (perf_is_followed(perf, target->pid)) {
            return target;
        }
        target = targets_source(targets, target);
    }
    return NULL;
}

/* Listed before any of them gets events: the children of one that has some are no longer the owner's. */
bool inherit_group_list(const struct perf *perf, struct targets *targets, struct target *target,
                 struct inherit_group *out)
{
    *out = (struct inherit_group){.owner = owner_of(perf, targets, target)};
    for (size_t i = 0; out->owner != NULL && i < targets->all.len; i++) {
        struct target *one = targets->all.at[i];
        if (one->ended || owner_of(perf, targets, one) != out->owner) {
            continue;
        }
        struct target **place = vec_push(&out->members);
        if (place == NULL) {
            return false;
        }
        *place = one;
    }
    return true;
}

void inherit_group_release(struct inherit_group *group)
{
    vec_release(&group->members);
}

static bool follow_one(struct perf *perf, struct target *one, uint32_t stack_bytes)
{
    const struct perf_how how = {.stack_bytes = stack_bytes > 0 ? stack_bytes : one->copy.bytes,
                                 .caught = one->runtime.caught};
    struct err err = {0};
    bool good = perf_follow_process(perf, one->pid, &how, &err) || err.kind == ERR_GONE;
    one->runtime.followed_ns = clock_mono_ns();
    return good && err.kind != ERR_LIMIT; /* else not all of its threads */
}

static bool follow_all(struct perf *perf, const struct inherit_group *group, uint32_t stack_bytes)
{
    vec_each(&group->members, slot)
    {
        if (!follow_one(perf, *slot, stack_bytes)) {
            return false;
        }
    }
    return true;
}

bool inherit_group_refollow(struct perf *perf, const struct inherit_group *group, uint32_t stack_bytes)
{
    if (group->owner == NULL) {
        return false;
    }
    perf_retire(perf, group->owner->pid);
    bool good = follow_all(perf, group, stack_bytes);
    perf_replace(perf, !good);
    return good;
}

bool inherit_group_refollow_but(struct perf *perf, struct inherit_group *group, const struct target *one)
{
    for (size_t i = 0; i < group->members.len; i++) {
        if (group->members.at[i] == one) {
            vec_swap_out(&group->members, i);
            break;
        }
    }
    return inherit_group_refollow(perf, group, 0);
}

/* It began before its parent got the events that it could have inherited. */
static bool is_newborn(const struct perf *perf, struct targets *targets, const struct target *one)
{
    const struct target *parent = targets_source(targets, one);
    return !one->ended && one->began_ns != 0 && one->runtime.followed_ns == 0 && parent != NULL &&
           parent != one && one->began_ns < parent->runtime.followed_ns &&
           !perf_is_followed(perf, one->pid);
}

size_t inherit_group_follow_newborn(struct perf *perf, struct targets *targets)
{
    size_t count = 0;
    for (size_t i = 0; i < targets->all.len; i++) {
        struct target *one = targets->all.at[i];
        if (is_newborn(perf, targets, one)) {
            (void)follow_one(perf, one, 0);
            count++;
            i = (size_t)-1; /* its children may stand before it */
        }
    }
    perf_enable(perf);
    return count;
}
