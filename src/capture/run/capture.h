/*
 * capture: a profiling run, from the settings to the exit status.
 *
 * The only place where the stages meet: os/ gives rings and /proc, sample/ decodes and orders,
 * targets.h and stacks.h find whose code it is, the profile gathers weights, accounting.h settles them
 * with the kernel's accounting, and the publisher names, encodes and writes.
 *
 * In command mode the exit status is the command's own, as launch.h has it; otherwise 0 when a
 * profile was made and 1 when none could be. Messages go to the log the settings name.
 */
#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include "capture/observer.h"
#include "capture/settings.h"
#include "capture/world.h"

/* Asks `world` about processes; `observer` may be null. Both are borrowed for the run. */
int capture_run(const struct settings *settings, const struct world *world, const struct observer *observer);

#endif
