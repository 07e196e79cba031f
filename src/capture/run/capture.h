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

#include "capture/live/dump.h"
#include "capture/observer.h"
#include "capture/settings.h"
#include "capture/world.h"

/* Asks `world` about processes; `observer` may be null. Both are borrowed for the run. */
int capture_run(const struct settings *settings, const struct world *world, const struct observer *observer);

/* The same for pillion dump: nothing is written, and the request has what is to be shown. Returns 0 when there is a
 * stack in it, else 1. */
int capture_dump(const struct settings *settings, const struct world *world, struct dump_request *request);

#endif
