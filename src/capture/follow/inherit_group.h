/*
 * inherit_group: processes whose events were inherited from one another.
 *
 * An event keeps its stack copy's size and its ring for life, and what a process starts inherits the event. To change
 * either for one process, the whole group gets new events: the process that was followed, and every living one that
 * inherited from it. From then on each has its own.
 *
 * What one of them starts in the meantime is not on the list, and the events it inherits end with the old ones.
 * inherit_group_follow_newborn gives it events of its own once the records of its start have been read. (One that is
 * followed twice has duplicate samples until duplicates.c finds them; one that is missed has none.)
 */
#ifndef CAPTURE_FOLLOW_INHERIT_GROUP_H
#define CAPTURE_FOLLOW_INHERIT_GROUP_H

#include "capture/follow/targets.h"
#include "os/perf.h"

struct inherit_group {
    VEC(struct target *) members;
    struct target *owner; /* null: it is not known, nothing can be changed */
};

/* Those whose events come from the same process as the target's; false when memory ends. Released with
 * inherit_group_release in any case. */
bool inherit_group_list(const struct perf *perf, struct targets *targets, struct target *target,
                 struct inherit_group *out);
void inherit_group_release(struct inherit_group *group);

/* Gives each member events of its own: caught or not as it says, with copies of `stack_bytes`, 0: of its
 * present size. False, and all stays as it was, when not all of their threads can be followed. */
bool inherit_group_refollow(struct perf *perf, const struct inherit_group *group, uint32_t stack_bytes);

/* The same for all but one, whose events end. */
bool inherit_group_refollow_but(struct perf *perf, struct inherit_group *group, const struct target *one);

/* Returns how many were followed. */
size_t inherit_group_follow_newborn(struct perf *perf, struct targets *targets);

#endif
