/* loop: the rounds of a run, from the first wait to the last window, and what is released then. */
#ifndef CAPTURE_RUN_LOOP_H
#define CAPTURE_RUN_LOOP_H

#include "capture/run/rooms.h"

/* The exit status. */
int loop_run(struct rooms *r);

/* Ends a run that has not begun, too. finish_ns, monotonic: when its end began, which is to last no longer than it may.
 * The number of things that could not be written. */
unsigned loop_release(struct rooms *r, uint64_t finish_ns);

#endif
