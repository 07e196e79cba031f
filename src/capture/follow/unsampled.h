/*
 * unsampled: processes and threads that have no events, for want of descriptors.
 *
 * They are counted from /proc, without stacks. Once a second whoever of them is hot gets events, in the place of the
 * coolest process that has some (only where nothing but attached processes is followed: a command's own tree keeps its
 * events). Single threads are unsampled_threads.h's.
 */
#ifndef CAPTURE_FOLLOW_UNSAMPLED_H
#define CAPTURE_FOLLOW_UNSAMPLED_H

#include "capture/follow/follow.h"

struct unsampled;

extern const struct concern unsampled_concern;

/* Null when memory ends. Adoption reports to it by follow->unsampled. */
struct unsampled *unsampled_new(struct follow *f);

/* The threads of a process that perf has just had no descriptors for. */
void unsampled_note_threads(struct unsampled *u, uint32_t pid);

/* No thread of the process found descriptors: it is counted from /proc until it is hot. */
void unsampled_note_process(struct unsampled *u, struct target *target);

/* Processes that are so at present. */
size_t unsampled_count(const struct unsampled *u);

#endif
