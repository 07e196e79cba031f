/*
 * stacks: one decoded sample becomes a path in the profile's call tree.
 *
 * The call chain comes leaf first with context marks; it is entered root first. A user address is
 * looked up in the process's mappings and stored relative to its file; a caller's address is stored
 * minus one, so that it lies within the call instruction. A frame-pointer walk that leaves mapped code
 * has followed a register that was no frame pointer: what it found beyond is dropped and counted in
 * `cut`.
 */
#ifndef CAPTURE_STACKS_H
#define CAPTURE_STACKS_H

#include "capture/targets.h"
#include "sample/record.h"

struct stacks {
    struct targets *targets;
    uint64_t samples;
    uint64_t cut; /* samples whose chain left mapped code */
};

/* Adds the sample to the profile with its period as weight. */
void stacks_add(struct stacks *s, struct profile *p, const struct record *sample);

#endif
