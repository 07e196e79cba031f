/*
 * merge: several profiles as one.
 *
 * profile_merge adds everything `from` holds to `into`: samples of the same thread and stack are
 * summed, processes with the same identity are one. The same window read twice is counted twice.
 * Both must be named (see profile.h), since two files of the same path need not be the same build:
 * an address that `into` knows under another name enters without its address.
 *
 * Limits: `into->max_bytes` holds; what does not fit becomes "[lost]" of its process and is counted
 * in `into->dropped`. Beside that, about 4 bytes per element of `from` are taken and given back.
 */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "profile/profile.h"

bool profile_merge(struct profile *into, const struct profile *from, struct err *err);

/* Only what `meta` says; its strings are ids of `into`. The window becomes the span of both, costs
 * and losses are summed, and of texts and rates the first known one stays. */
void profile_merge_meta(struct profile *into, const struct profile_meta *meta);

/* As profile_frame, for a frame that has its name already. */
uint32_t profile_named_frame(struct profile *p, const struct frame *frame);

#endif
