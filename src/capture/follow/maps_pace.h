/*
 * maps_pace: when a process's mappings are read from /proc again, where no records of them come.
 *
 * Concept. Without perf events no record says that a library was loaded or another program begun, so the mappings are
 * read anew: often for MAPS_OFTEN_MS, because a new process loads its libraries one after the other; less often,
 * and for MAPS_FOUND_OFTEN_MS, once its runtime is read, because it may become another program; then, and from the
 * first on where it has long been running, each MAPS_SELDOM_MS. A reading costs by its length, and thousands of
 * threads have thousands of stacks: after a long one the pause is longer. What is bounded is the time in which they
 * are read often, not the number of readings, which for 2,000 threads would take ten times as long.
 *
 * That time is the sum of the pauses as they were chosen: where rounds come late, or a process is not checked
 * because it sleeps, it goes on later.
 */
#ifndef CAPTURE_FOLLOW_MAPS_PACE_H
#define CAPTURE_FOLLOW_MAPS_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAPS_NEW_MS = 100,           /* between two readings of a new process's mappings, … */
    MAPS_OFTEN_MS = 5000,        /* … for so long; */
    MAPS_FOUND_MS = 500,         /* the same once its runtime is read: … */
    MAPS_FOUND_OFTEN_MS = 25000, /* … and so long, with the time before */
    MAPS_SELDOM_MS = 10000,      /* then, and of one that has long been running */
    MAPS_BYTES_PER_MS = 200,     /* of text, a line of which costs 1 us: at most that many, whatever else holds */
};

struct maps_pace {
    uint64_t again_ns; /* monotonic: not before */
    uint32_t often_ms; /* so long they have been read often */
};

/* A reading that has just been done. */
struct maps_reading {
    size_t bytes;     /* of the text */
    bool is_new;      /* the process has not long been running */
    bool found;       /* its runtime is read */
    bool passing;     /* it was refused, and will be allowed in a moment: the next one is soon in any case */
};

void maps_pace_next(struct maps_pace *pace, const struct maps_reading *reading, uint64_t now_ns);

#endif
