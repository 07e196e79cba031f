/*
 * labels: what a runtime tells of a thread at a sample beside its stack, as labels of the profile.
 *
 * It is of the moment at which the stack was read, and goes with it: a thread whose stack could not be
 * read has none.
 */
#ifndef CAPTURE_LABELS_H
#define CAPTURE_LABELS_H

#include "capture/catch/catch.h"
#include "profile/profile.h"

/* The thread (profile_thread) under what was caught of it; `caught` null: nothing was. */
uint32_t labels_thread(struct profile *p, uint32_t thread, const struct caught *caught);

#endif
