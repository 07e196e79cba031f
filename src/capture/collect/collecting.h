/*
 * collecting: the row that has collect.h start, poll and stop what the runtimes of followed processes can tell of
 * themselves.
 *
 * Once a second each process that is followed is offered to the rows with the verb; where no row of the registry has it
 * nothing is ever walked. What a runtime hands over goes into the window that is being filled.
 */
#ifndef CAPTURE_COLLECT_COLLECTING_H
#define CAPTURE_COLLECT_COLLECTING_H

#include "capture/collect/collect.h"
#include "capture/follow/follow.h"

struct collecting_row;

extern const struct concern collecting_concern;

/* `rows` is the registry (runtimes.c). Null when memory ends. */
struct collecting_row *collecting_new(struct follow *f, const struct runtime *const *rows);

#endif
