/*
 * stops: with --brief-stops, how long threads are held, and how often.
 *
 * Concept. A catcher tells with each stack how long its thread was held (catch.h). Of these times the window's median
 * and 99th percentile are kept for its summary. What a target loses is bounded by itself: when one stop in a hundred
 * takes longer than STOPS_LONG_US (the target's CPU is wanted by others, too), or all of them together more than
 * STOPS_SHARE of the CPU time that they stand for, the rate is halved, and doubled again after a quiet minute, up to
 * what was asked for. Both are said.
 *
 * A process that another one traces (a debugger, strace, another profiler) is left alone for a minute: its leader's
 * TracerPid is looked at once a second. A thread that could not be held is explained, once for each reason.
 *
 * Used by the sampler alone.
 */
#ifndef CAPTURE_STACKS_STOPS_H
#define CAPTURE_STACKS_STOPS_H

#include "capture/concern.h"
#include "capture/stacks/catching.h"

enum {
    STOPS_LONG_US = 1000,
    STOPS_SHARE = 100, /* one part in so many */
    STOPS_LONG_HZ = 10, /* so many a second may be long now and then, if they are not too much */
    STOPS_AGAIN_S = 60,
};

struct stops;

extern const struct concern stops_concern;

/* Null when memory ends. */
struct stops *stops_new(struct follow *f, struct catching *catching);

/* One stack of a thread that was held. */
void stops_note(struct stops *s, const struct caught *caught);

/* A window's stops, for its summary: a line of its own, or some words; nothing where there were none. */
void stops_describe(const struct profile_stops *stops, struct buf *out);
void stops_tell(const struct profile_stops *stops, struct buf *out);

/* Stops since the last judgement: what one in a hundred takes, how long all of them held a thread, and the CPU time
 * that they stand for. */
struct stops_judgement {
    uint64_t long_ns, held_ns, stood_ns;
};

/* Do they take too much of it? */
bool stops_are_many(const struct stops_judgement *j);

/* The rate that follows from `hz`: half of it, down to STOPS_LONG_HZ, where they are long, and to 1 where they are
 * many; the same where they are neither. */
uint32_t stops_slower_hz(const struct stops_judgement *j, uint32_t hz);

/* Far enough below both bounds for a higher rate, when it lasts. */
bool stops_are_quiet(const struct stops_judgement *j, uint32_t hz);

/* The `share` (0.5, 0.99) of these times, which are put in order; 0 of none. */
uint32_t stops_quantile(uint32_t *ns, size_t count, double share);

/* What one in a hundred takes at least; of few stops, the third longest. Likewise. */
uint32_t stops_usual_longest(uint32_t *ns, size_t count);

#endif
