/*
 * perf_read: what `perf script` prints, into a profile.
 *
 * A sample is a line "comm tid time: period event:" (pid/tid, [cpu], time, period and event as the fields were chosen),
 * then a line per frame "address name+offset (file)", leaf first, or the one frame of a recording without stacks behind
 * the event. Names of threads and functions have blanks; inlined functions are frames "(inlined)"; lines of sources and
 * comments ("# …") are passed over.
 *
 * One event of the file counts: of cpu-clock and task-clock, whose periods are nanoseconds, else of the first, with its
 * name as the sample type. A sample without a period counts as one at 99 Hz, of another event as 1. Times are kept,
 * from the first sample on. With the default fields there is one number, the thread's: threads of one name are a
 * process then.
 *
 * Kinds: kernel by address, Python's own names ("py::f:/a.py"), V8's; else native. Errors: as in collapsed_read.h.
 * The file is read twice, line by line, in place; nothing is kept but PERF_EVENTS_MAX names.
 */
#ifndef ENCODE_PERF_READ_H
#define ENCODE_PERF_READ_H

#include "encode/collapsed_read.h"

enum { PERF_EVENTS_MAX = PROFILE_EVENTS_MAX };

bool perf_is(struct str file);

/* `type`: as in collapsed_read.h. With `whole` the other events are added as events of the profile. */
bool perf_read(struct profile *p, struct str file, struct str type, bool whole, struct collapsed_damage *damage,
               struct err *err);

#endif
