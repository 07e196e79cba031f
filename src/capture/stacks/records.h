/*
 * records: from the rings and the catchers, through the order of time, to targets and stacks.
 *
 * Concept. All rings are drained in rounds; records wait in sample/order.h until every ring was drained once more, and
 * are then handed out: those that tell of processes to follow/, samples to stacks.h unless they are duplicates, of
 * another burst, or of an excluded process. Without perf the catchers' samples come straight.
 *
 * Losses. What a ring had no room for, what does not fit into the order, and what catchers could not hand over is
 * counted in shared->window.lost_records.
 */
#ifndef CAPTURE_STACKS_RECORDS_H
#define CAPTURE_STACKS_RECORDS_H

#include "capture/follow/bursts.h"
#include "capture/follow/duplicates.h"
#include "capture/follow/find.h"
#include "capture/stacks/catching.h"
#include "capture/stacks/stacks.h"
#include "capture/stacks/stops.h"

struct extra_records;
struct records;

/* What a record passes. All borrowed. */
struct records_path {
    struct follow *follow;
    struct find *find;
    struct bursts *bursts;
    struct duplicates *duplicates;
    struct catching *catching;
    struct accounting *accounting;
    struct stacks *stacks;
    struct stops *stops;
    struct extra_records *extra; /* null: there are none (a test) */
};

/* So far. */
struct records_counts {
    uint64_t records, malformed;
    uint64_t invisible; /* samples of other PID namespaces */
    uint32_t born;      /* tasks, since records_take_born */
    bool any_stack;     /* some sample had a stack */
};

extern const struct concern records_concern;

/* Null when memory ends. */
struct records *records_new(const struct records_path *path, uint64_t order_max_bytes);

/* One round; false when nothing came. */
bool records_drain_round(struct records *r);

/* Takes and hands out all that is in the rings and with the catchers, whatever its place in time. */
void records_drain(struct records *r);

/* Room for a record to wait in the order of time; null, and one more lost record, when there is none. */
void *records_room(struct records *r, uint64_t time_ns, size_t bytes);

void records_count_one(struct records *r, bool malformed);
const struct records_counts *records_counts(const struct records *r);

/* Tasks that began since this was asked last. */
uint32_t records_take_born(struct records *r);

#endif
