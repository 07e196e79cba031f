/*
 * top: `pillion top`, the live view of a run.
 *
 * Concept. A run whose windows are as short as the interval, and are shown instead of written: the publisher hands
 * each, named, to top (whole_run.h), which adds it to its rows (top_model.h). On a terminal a thread of its own draws
 * the screen and takes keys; it asks the run to end as anybody does, by SIGTERM. Elsewhere (pipes, dumb terminals,
 * --once, --json) the publisher's thread writes a table or an object per window.
 *
 * The screen is the terminal's alternate one, written with the few sequences that all terminals since the VT100 know:
 * where to, erase the line, bold, reverse, cursor on and off. A library (curses) would bring a data base of terminals
 * that scratch images do not have, and be larger than all of this. The size is asked for at each redraw, for a profiler
 * in a session of its own is told of no change.
 *
 * While it is shown, what the log would say on that terminal stands in the last line. The terminal is given back at
 * each end: a key, TERM, INT, the end of what is profiled, a terminal that has gone. A command is started without the
 * terminal (launch.h, `shows`), and is ended with SIGTERM when top ends first.
 *
 *     top_new, and publisher_show with top_viewer, before the publisher has its thread
 *     the row: setup takes the terminal, release frees
 */
#ifndef CAPTURE_LIVE_TOP_H
#define CAPTURE_LIVE_TOP_H

#include "capture/concern.h"
#include "capture/shared.h"
#include "capture/window/whole_run.h"

struct top;

extern const struct concern top_concern;

/* Null when memory ends. */
struct top *top_new(struct shared *shared);

struct whole_run_viewer top_viewer(struct top *top);

/* Half a second on a screen, else two, where nothing else was said. */
uint64_t top_interval_ns(const struct settings *settings);

#endif
