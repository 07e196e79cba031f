/* tasks: those of event loops that wait, as their runtime's own memory has them (struct runtime, tasks). */
#ifndef CAPTURE_LIVE_DUMP_TASKS_H
#define CAPTURE_LIVE_DUMP_TASKS_H

#include "capture/live/dump.h"

/* Adds a process's, with their stacks, to what was found. Its threads are there. */
void dump_tasks_find(struct dump_found *found, struct dump_process *process, struct profile *p, struct stacks *stacks,
                     struct target *target);

/* The one that awaits it; null: nobody, or it is not known. */
const struct dump_task *dump_tasks_awaits(const struct dump_found *found, const struct dump_process *process,
                                          const struct dump_task *task);

/* Is it the same stack, in the same thread, for the same task? */
bool dump_tasks_alike(const struct dump_task *a, const struct dump_task *b);

/* How many of these are like the first; they are marked as shown. 0: so is the first already. */
size_t dump_tasks_show(struct dump_task *first, size_t count);

#endif
