/*
 * controller: the process that started the profiler, as --controller-pid names it. When it has ended, the run does,
 * with a last window. One that is gone from the start has ended, too.
 */
#ifndef CAPTURE_WINDOW_CONTROLLER_H
#define CAPTURE_WINDOW_CONTROLLER_H

#include "capture/concern.h"
#include "capture/shared.h"

struct controller;

extern const struct concern controller_concern;

/* Null when memory ends. */
struct controller *controller_new(struct shared *shared);

#endif
