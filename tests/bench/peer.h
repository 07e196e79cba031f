/*
 * peer: the same samples unwound by libdwfl of elfutils, for comparison.
 *
 * libdwfl is the library's way to unwind a thread of which only registers and memory are at hand
 * (dwfl_attach_state). It gets the files that were mapped, and reads registers, the copy of the
 * stack and the memory beyond it from the sample, as pillion does. Its caches stay from sample to
 * sample.
 *
 * Built against the distribution's libdw; without its headers there is no peer, and peer_new is
 * null.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "samples.h"

enum { PEER_FRAMES_MAX = 4096 };

struct peer;

/* `s` is borrowed. */
struct peer *peer_new(struct samples *s);
void peer_free(struct peer *peer);

/* Unwinds a sample; how many frames it found. *ended: it came to an end that it takes for the
 * stack's. */
size_t peer_unwind(struct peer *peer, const struct lab_sample *sample, bool *ended);

/* The library's version; "" without it. */
const char *peer_name(void);

#endif
