/*
 * private: what the files of collect share.
 *
 *     collector.c    the thread that speaks with the processes
 *     collecting.c   whom to ask; reading what they wrote
 *     sharing_out.c  threads' CPU time for their samples
 */
#ifndef CAPTURE_COLLECT_PRIVATE_H
#define CAPTURE_COLLECT_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "capture/collect/collecting.h"
#include "capture/collect/collector.h"

/* Of this window. */
struct collected_sample {
    uint32_t tid;          /* 0: of none that lives, … */
    uint32_t thread, node; /* of the profile */
    uint64_t cpu_ns;       /* by the recorder */
    uint64_t wall_ns;      /* when it was taken; 0: not told */
    bool may_wait, of_moment;
    bool in_system;        /* it may wait, and what it runs is the system's */
    bool is_virtual;       /* … or of whichever thread carries it */
};

struct collected {
    uint32_t pid;
    uint64_t start_ticks, program; /* of the target */
    const struct runtime *runtime;
    unsigned wanted;               /* bits of enum runtime_wanted */
    struct collect_job *job;       /* null: it was not asked, or has no profile now */
    uint64_t first_ns;             /* monotonic: it was met */
    uint64_t retry_ns, pause_ns;   /* monotonic: not before this is it asked */
    bool came_late;                /* the window has what it made for the one before; there will be no other */
    bool over;                     /* it is not asked again, … */
    char why[ERR_TEXT_MAX];        /* … because; "": it told all */
    uint64_t cpu_ns, asked_ns;     /* with -a: its clock, and when that was read; 0: not yet */
    struct map tids;               /* number that the process knows -> thread; of one in another PID namespace */
    bool is_inner;
    char release[96];               /* as it calls itself; "": not told yet */
    uint64_t chunk_start_ns;       /* how far its recording was read (jfr_read.h) */
    size_t chunk_bytes;
    VEC(struct collected_sample) samples;
};

struct collecting {
    struct follow *follow;
    struct collector *collector;
    VEC(struct collected) all;
    struct collected *reading;     /* whose file is being read, … */
    bool reads_moments;            /* … and of which kind it is */
    struct buf text;
    unsigned processors;           /* that we may run on; 0: not known */
    uint64_t began_boot_ns;        /* of the run */
    bool any_stack;                /* in some window */
    uint64_t next_ns, read_ns;     /* monotonic: of the next check, and of the next reading */
};

#endif
