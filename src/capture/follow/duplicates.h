/*
 * duplicates: threads that have events of two followers, and so each sample twice.
 *
 * os/perf.h tells how that comes about. The later follower's events are stopped, what they wrote is dropped, and they
 * end.
 */
#ifndef CAPTURE_FOLLOW_DUPLICATES_H
#define CAPTURE_FOLLOW_DUPLICATES_H

#include "capture/follow/follow.h"

struct duplicates;

extern const struct concern duplicates_concern;

/* Null when memory ends. */
struct duplicates *duplicates_new(struct follow *f);

/* Does the sample come from a second event of its thread? Then it is to be dropped. */
bool duplicates_has(struct duplicates *d, const struct record *sample);

#endif
