/*
 * trees: processes that descend from one another, and what the events of each such tree counted.
 *
 * Of a process that ended (accounting.h) only a sum is known: what the events' counters have beyond the others. The
 * sampling clock and the accounting differ by some per cent, so that on a busy machine the difference over all
 * processes says nothing of a few short ones. Events are inherited along descent; hence sums are made, and shared
 * out, tree by tree. A process has its tree from its birth on (targets.h), whoever of its ancestors ends and is
 * forgotten. Only where the end of a follower was learnt after its process had been forgotten, two windows later, its
 * last counts belong to no tree, which is one by itself.
 *
 * Counters do not have what the kernel does for a task after its events have ended. Where hundreds of attached threads
 * end that is a tenth of what their process used (os/perf.h), and would be missing from what is left for the others. So
 * a process whose own threads are counted apart explains of its tree's counters what these counted, no more.
 *
 * Call order, at a window's end: trees_begin; trees_of for each target, for trees_explain;
 * trees_settle; trees_of again, to take from its rest; trees_release.
 */
#ifndef CAPTURE_ACCOUNT_TREES_H
#define CAPTURE_ACCOUNT_TREES_H

#include "capture/follow/targets.h"
#include "os/perf.h"

struct tree {
    uint64_t counted_ns;   /* by its events in this window */
    uint64_t explained_ns; /* of it: by its own threads' counters, the accounting, or samples where there are neither */
    int64_t beside_ns;     /* what the accounting has beside explained_ns: below 0, less */
    uint64_t sampled_ns;   /* of those that ended and whose times were never read: of their samples */
    uint64_t least_ns;    /* that it used at least: an ancestor's time of waited-for children has it */
    struct tail tails;     /* of those that ended: what they may have used beyond */
    struct tail to_tails;  /* what is left for each part, … */
    uint64_t to_sampled_ns, to_least_ns; /* … and beyond all of them */
    bool has_counters;
};

struct trees {
    struct targets *targets;
    VEC(struct tree) all;  /* 0: what belongs to no other */
    struct map by_tree;    /* target.tree -> index */
    struct map *followed;  /* pid of a follower -> its tree */
};

/* False when memory ends. `followed` is kept from window to window: events go on counting for what an ended process
 * has started. */
bool trees_begin(struct trees *t, struct targets *targets, struct map *followed, struct perf *perf);

struct tree *trees_of(struct trees *t, const struct target *target);

/* What one that is left explains of its tree's counters, accounted_ns by the accounting. */
void trees_explain(struct tree *tree, const struct target *target, uint64_t accounted_ns);

/* What all of them have at least, without what an ancestor waited for; counted_ns: by all events together. */
uint64_t trees_accounted_ns(const struct trees *t, uint64_t counted_ns);

/* This one's part of it; without counters of its own, that of all such. */
uint64_t trees_part_ns(const struct trees *t, const struct tree *tree, uint64_t accounted_ns);

/* counted_ns: of all together. */
void trees_settle(struct trees *t, uint64_t counted_ns);

void trees_release(struct trees *t);

#endif
