/* remapping: without perf no record tells of mappings, so those of a process that runs are read again, at first often
 * because it is starting, later for libraries that are loaded late. Used by the sampler alone, each round. */
#ifndef CAPTURE_STACKS_REMAPPING_H
#define CAPTURE_STACKS_REMAPPING_H

#include "capture/account/accounting.h"
#include "capture/follow/follow.h"

void remapping_round(struct follow *f, const struct accounting *accounting, uint64_t now_ns);

#endif
