/*
 * merge: several profiles in one, saved ones that are read, and the windows of a run.
 *
 * A reader adds to whatever the profile holds: samples of the same thread and stack are summed,
 * processes with the same identity are one, and the same window read twice is counted twice (see
 * profile.h). Two files of the same path need not be the same build, and what they say of the whole
 * window needs a rule each: that is here.
 */
#ifndef PROFILE_MERGE_H
#define PROFILE_MERGE_H

#include "base/err.h"
#include "profile/profile.h"

/* Adds all that a named profile holds, but not what is behind it (profile.next). What does not fit is dropped as
 * profile.h has it. False: no memory for the tables of ids, and nothing was added. */
bool profile_merge(struct profile *into, const struct profile *from, struct err *err);

/* Only what `meta` says; its strings are ids of `into`. The window becomes the span of both, costs
 * and losses are summed, and of texts and rates the first known one stays. */
void profile_merge_meta(struct profile *into, const struct profile_meta *meta);

/* As profile_frame, for a frame that has its name already. An address that is known under another
 * name, line or caller enters without its address: it is of another build. */
uint32_t profile_named_frame(struct profile *p, const struct frame *frame);

#endif
