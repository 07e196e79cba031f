/* cpus: says when CPUs go off-line and when others come. */
#ifndef CAPTURE_FOLLOW_CPUS_H
#define CAPTURE_FOLLOW_CPUS_H

#include "capture/follow/follow.h"

struct cpus;

extern const struct concern cpus_concern;

/* Null when memory ends. */
struct cpus *cpus_new(struct shared *shared);

#endif
