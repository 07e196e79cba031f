/*
 * rooms: a run's wiring. Everything that is made for a run, and the table of its concerns.
 *
 *     rooms_init
 *     rooms_open_perf    as far as it is allowed; what arms sampling comes here, for a command waits for it
 *     rooms_make         all the rest but threads
 *     rooms_start        gives up rights, then has the first thread: before anything of a target is read; a command
 *                        that waits is let go first, for this takes half a millisecond
 *     … the run (run.h) …
 *     rooms_release
 */
#ifndef CAPTURE_RUN_ROOMS_H
#define CAPTURE_RUN_ROOMS_H

#include "capture/account/polling.h"
#include "capture/collect/collecting.h"
#include "capture/run/rows.h"
#include "capture/run/run.h"
#include "capture/stacks/extra_records.h"
#include "capture/stacks/records.h"
#include "capture/stacks/stops.h"
#include "capture/stacks/waiting.h"
#include "capture/upload/uploads.h"
#include "capture/window/publisher.h"
#include "capture/window/windows.h"
#include "unwind/unwind.h"

struct rooms {
    const struct run_input *input;
    struct shared shared;
    int signals;
    struct follow follow;
    struct find *find;
    struct bursts *bursts;
    struct duplicates *duplicates;
    struct polling *polling;
    struct unwinder unwinder;
    struct stacks stacks;
    struct catching *catching;
    struct stops *stops;
    struct extra_records *extra;
    struct waiting *waiting;
    struct dump *dump; /* null: it is no dump */
    struct records *records;
    struct collecting *collecting;
    struct publisher *publisher;
    struct windows *windows;
    struct uploads uploads;
    struct rows rows;
};

void rooms_init(struct rooms *r, const struct run_input *input);

/* What perf refuses is a sentence, never the end of the run. */
void rooms_open_perf(struct rooms *r);

/* False: the run cannot begin, and the log says why; the process is about to end. */
bool rooms_make(struct rooms *r);

/* False: no thread can be had, and the log says so. */
bool rooms_start(struct rooms *r);

/* After the publisher was stopped. False when the observer failed. */
bool rooms_release(struct rooms *r);

/* Ends a window and begins the next. */
void rooms_end_window(struct rooms *r);

#endif
