/*
 * collecting: profiles that runtimes make of themselves (runtime.h, verb collect), in the unit of all others.
 *
 * Concept. Where a process's stacks cannot be read, for its runtime resolves addresses and there are no registers
 * (target.runtime.collects, by stacks/readers.c), that runtime is asked for a profile of its own. Its files are read as
 * they come. What they say of running threads are stacks and how often each was met, not how long it ran: a
 * recorder sees some of the threads, by a clock on the wall. So each thread's CPU time, as the system counts it and as
 * the window's accounting has it without a stack, is shared out among its stacks, and a process's sum is what
 * it was. What has no stack of its thread is "[no runtime samples]".
 *
 * Time in native code, where waiting looks like running, has at most what the thread's other samples leave.
 *
 * Rows. collecting reads what was brought before the accounting of a window is closed, sharing_out comes after. Both
 * have one state.
 *
 * Errors. Why a process is not asked, or cannot be, is told once for each cause, and with its process in the profile.
 */
#ifndef CAPTURE_COLLECT_COLLECTING_H
#define CAPTURE_COLLECT_COLLECTING_H

#include "capture/follow/follow.h"

struct collecting;

extern const struct concern collecting_concern;
extern const struct concern sharing_out_concern;

/* Null when memory ends. */
struct collecting *collecting_new(struct follow *f);

/* Starts the thread that speaks with runtimes, if there may be something to ask; before confine_reader. */
void collecting_run(struct collecting *c);

/* Did some runtime tell stacks, in some window? */
/* Is any runtime about to be asked, or being asked for the first time? */
bool collecting_begins(const struct collecting *c);

bool collecting_any_stack(const struct collecting *c);

#endif
