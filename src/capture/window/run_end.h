/* run_end: what a terminal is shown at a run's end beside the summary, functions and paths (encode/report.h). */
#ifndef CAPTURE_WINDOW_RUN_END_H
#define CAPTURE_WINDOW_RUN_END_H

#include "capture/log.h"
#include "profile/profile.h"

/* Appends the lines, each begun by a line end. Nothing in a log, with -q, where there is no stack or no memory, or p is
 * null. The frames have to be named; the profile's strings may grow. */
void run_end_add(const struct log *log, struct profile *p, struct buf *out);

#endif
