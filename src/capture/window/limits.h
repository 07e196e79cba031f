/*
 * limits: the profiler stays within --max-cpu and --max-memory.
 *
 * budget.h decides how much may be sampled; this concern does it, with all that it reaches, and publishes what holds at
 * present as shared->throttle. What was done without goes into each window.
 */
#ifndef CAPTURE_WINDOW_LIMITS_H
#define CAPTURE_WINDOW_LIMITS_H

#include "capture/account/accounting.h"
#include "capture/stacks/catching.h"
#include "capture/stacks/stacks.h"
#include "capture/upload/uploads.h"
#include "capture/window/publisher.h"

/* What it does without, or asks what it has used. All borrowed. */
struct limits_reach {
    struct follow *follow;
    struct accounting *accounting;
    struct catching *catching;
    struct stacks *stacks;
    struct publisher *publisher;
    struct uploads *uploads;
};

struct limits;

extern const struct concern limits_concern;

/* Null when memory ends. */
struct limits *limits_new(const struct limits_reach *reach);

/* How much memory may be resident: as asked for, and no more than a share of what the container has. */
void limits_choose_memory(struct shared *s);

#endif
