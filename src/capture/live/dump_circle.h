/* circle: deadlocks, as circles of threads that each wait for what the next one holds. */
#ifndef CAPTURE_LIVE_DUMP_CIRCLE_H
#define CAPTURE_LIVE_DUMP_CIRCLE_H

#include "capture/live/dump.h"

/* Numbers the circles of a process from `before` + 1 on, in `circle` of their threads; returns how many there are. */
uint32_t circles_find(struct dump_thread *threads, size_t count, uint32_t before);

#endif
