/*
 * extra_records: what is sampled besides CPU time (extra_events.h), and context switches (offcpu.h), on their way from
 * their own rings through the order of time. They carry a tag there that says whose they are.
 *
 * Two rows: extra_counters_concern takes the kernel's counts before the window's last records are drained, so that what
 * comes between is the next window's; extra_records_concern does all else.
 */
#ifndef CAPTURE_STACKS_EXTRA_RECORDS_H
#define CAPTURE_STACKS_EXTRA_RECORDS_H

#include "capture/follow/find.h"
#include "capture/stacks/catching.h"
#include "capture/stacks/offcpu.h"
#include "capture/stacks/extra_events.h"

struct extra_records;
struct records;

extern const struct concern extra_counters_concern, extra_records_concern;

/* Opens the events, before anything is followed. Null when memory ends. */
struct extra_records *extra_records_new(struct shared *shared);

/* Once the rest is there. */
struct extra_records_path {
    struct find *find;
    struct stacks *stacks;
    struct catching *catching;
    struct records *records;
};
void extra_records_connect(struct extra_records *e, struct follow *f, const struct extra_records_path *path);

bool extra_records_watch_off_cpu(const struct extra_records *e);

/* Logs which of what was asked for cannot be had, and why. */
void extra_records_report(const struct extra_records *e);

void extra_records_drain(struct extra_records *e);

/* A tagged record, in the order of time; and the end of a thread. */
void extra_records_take(struct extra_records *e, const void *ptr, size_t len);
void extra_records_exit(struct extra_records *e, const struct record *exit);

#endif
