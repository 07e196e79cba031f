/*
 * walk: which labels a Go program has given to the work that a sampled thread does (pprof.Do, SetGoroutineLabels):
 * those of the goroutine that it runs, as Go's own CPU profile has them. Tracers keep ids of traces and spans there.
 *
 * A thread (m) is known by the register that holds the running goroutine (g) in Go code, and believed when it has the
 * thread's own number; it is kept in the plan, since a thread stays the same m. So goroutines that call C, or whose
 * work the runtime does on a stack of its own, have their labels, too, once their thread was met in Go code.
 *
 * Programs that set no labels have no function for it, and are not walked. Go 1.18 to 1.27, x86-64 and AArch64.
 *
 * Limits: RUNTIME_TASK_MAX bytes of labels, by key; one that does not fit is left out.
 */
#ifndef RUNTIME_GO_WALK_H
#define RUNTIME_GO_WALK_H

#include "runtime/runtime.h"

/* What a file is to the walk; null: there are no labels in such a program, or it is of an unknown version. Constant. */
const void *go_walk_binary(struct elf *elf);
bool go_walk_is_any(const void *binary);

enum runtime_answer go_walk_attach(const void *binary, const struct runtime_process *process, void **state,
                                   struct err *why);
void go_walk_detach(void *state);
void go_walk_describe(const void *state, struct buf *out);
void go_walk(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
             struct runtime_stack *out);

/* There are no frames to be named. */
void *go_walk_open_names(const void *state);
void go_walk_close_names(void *names);

#endif
