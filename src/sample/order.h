/*
 * order: records of several rings, put in time order.
 *
 * Each ring is (nearly) in time order, the rings among themselves are not: the first sample of a
 * new thread is regularly read before the FORK and MMAP2 records that explain it. So records wait:
 * after every ring has been drained once more, nothing older than the newest time of the round
 * before can still appear, and everything up to there is handed out (the round rule).
 *
 *     per round:  for each record  order_room(...)
 *                 order_round(...)            hands out what is safe
 *     at the end: order_flush(...)            hands out the rest
 *
 * Records lie aligned to 8, and live until they were handed out. The memory is bounded by
 * max_bytes: a round that has filled more than half of it hands out everything early, which can
 * misplace a record in time but loses none; `early` counts these rounds. order_room is null when
 * max_bytes or the memory ends; after order_flush there is room again.
 */
#ifndef SAMPLE_ORDER_H
#define SAMPLE_ORDER_H

#include "base/str.h"
#include "base/vec.h"

struct order_entry {
    uint64_t time_ns;
    uint32_t offset, len; /* in bytes */
    uint32_t sequence;    /* keeps records of equal time in the order they came */
};

struct order {
    VEC(struct order_entry) entries;
    struct buf bytes;
    struct buf spare;     /* swapped with `bytes`, so that a round allocates nothing */
    uint64_t newest_ns;       /* of this round */
    uint64_t newest_before_ns; /* of the round before */
    uint64_t early;
    uint32_t sequence;
};

void order_init(struct order *order, size_t max_bytes);
void order_release(struct order *order);

/* Room for a record of `len` bytes, which the caller fills before the next call. */
void *order_room(struct order *order, uint64_t time_ns, size_t len);

/* Ends a round whose rings were drained up to `drained_ns`, UINT64_MAX where they are empty: nothing newer is handed
 * out. */
void order_round(struct order *order, uint64_t drained_ns,
                 void (*each)(void *context, const void *record, size_t len), void *context);

/* Ends a round without handing out, when the next one follows at once: what waits is moved once less. */
void order_pass(struct order *order);

void order_flush(struct order *order,
                 void (*each)(void *context, const void *record, size_t len), void *context);

#endif
