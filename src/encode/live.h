/*
 * live: what a process wrote of itself while it runs, read again and again into the profile of a window: what the
 * readers of such files have in common (jfr_read.h, moments_read.h).
 *
 * Samples of what runs are handed to `sample`, for their weight is not yet known: each thread's CPU time is shared out
 * among its own.
 */
#ifndef ENCODE_LIVE_H
#define ENCODE_LIVE_H

#include "profile/profile.h"

struct live_sample {
    uint32_t tid;          /* as the process numbers it; 0: a light thread of its runtime's own, which others run */
    uint32_t thread, node; /* of the profile; 0: no room */
    uint64_t cpu_ns;       /* what it stands for, as who wrote it has it */
    uint64_t wall_ns;      /* when it was taken, since 1970; 0: not told */
    bool may_wait;         /* in native code, where waiting looks like running */
};

struct live {
    uint32_t pid; /* here */
    uint32_t process; /* of the profile: gets the name of its runtime where that is told */
    uint64_t start_ticks;
    struct str comm;
    /* The thread here that the process numbers so; 0: not known. */
    uint32_t (*thread)(void *context, uint32_t tid);
    void (*sample)(void *context, const struct live_sample *sample);
    void *context;
    bool shows_tiers; /* frames' names end in how they ran */
    uint64_t chunk_start_ns; /* how far a recording was read: the chunk, … */
    size_t chunk_bytes;      /* … and so much of it. 0, 0 before the first time */
};

#endif
