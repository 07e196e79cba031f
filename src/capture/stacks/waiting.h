/* waiting: with --wall, or with --off-cpu where no records of context switches come, the row that has waits.h look at
 * waiting threads, and tells what keeps them from being seen. */
#ifndef CAPTURE_STACKS_WAITING_H
#define CAPTURE_STACKS_WAITING_H

#include "capture/concern.h"
#include "capture/shared.h"
#include "capture/stacks/waits.h"

struct waiting;

extern const struct concern waiting_concern;

/* `on` false: nothing is watched. `readers` null: runtimes are not read. Null when memory ends. */
struct waiting *waiting_new(struct shared *shared, struct stacks *stacks, struct readers *readers,
                            struct targets *targets, bool on);

bool waiting_is_on(const struct waiting *w);

/* Has the stack of any thread that waits been read so far? */
bool waiting_any_stack(const struct waiting *w);

#endif
