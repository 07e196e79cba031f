/* waiting: with --wall, the row that has waits.h look at the waiting threads of interpreters. */
#ifndef CAPTURE_STACKS_WAITING_H
#define CAPTURE_STACKS_WAITING_H

#include "capture/concern.h"
#include "capture/shared.h"
#include "capture/stacks/waits.h"

struct waiting;

extern const struct concern waiting_concern;

/* `readers` null: nothing is watched. Null when memory ends. */
struct waiting *waiting_new(struct shared *shared, struct stacks *stacks, struct readers *readers,
                            struct targets *targets);

bool waiting_is_on(const struct waiting *w);

#endif
