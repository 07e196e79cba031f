/*
 * flame_block: one profile, or a comparison of two, on its way into the flame graph's page: what the static part is
 * written from, and its data block (flame.h).
 *
 *     struct flame f = {.p = p};
 *     bool ok = flame_prepare(&f, err) && … flame_put_block(page, &f, 0);
 *     flame_release(&f);
 *
 * flame_prepare adds strings to both profiles, and else changes nothing in them. The number of a block is its place
 * in the page: 0 is the first sample type's. Errors: ERR_MEMORY, and of the page's sink.
 */
#ifndef ENCODE_FLAME_BLOCK_H
#define ENCODE_FLAME_BLOCK_H

#include "encode/changes.h"
#include "encode/flame_data.h"

enum { FLAME_PROCESS_ROWS_MAX = 100 };

/* What the page is made from. */
struct flame {
    struct profile *p;
    struct profile *base; /* null unless two profiles are compared */
    struct profile_totals sum, base_sum;
    struct fold fold, base_fold;
    struct flame_tally tally;
    struct flame_times times;
    struct changes changes; /* of a comparison */
    uint32_t *heaviest;    /* process ids, heaviest first, FLAME_PROCESS_ROWS_MAX at most */
    uint64_t *sampled_ns;  /* per process id */
    size_t process_count;
    uint64_t unit_ns;
    bool exact; /* every weight is a whole number of units */
};

bool flame_prepare(struct flame *f, struct err *err);
bool flame_put_block(struct page *page, struct flame *f, unsigned number);

/* May be called again, and of what was never prepared. */
void flame_release(struct flame *f);

/* Of a process: by the kernel's accounting, else of its samples. */
uint64_t flame_process_ns(const struct flame *f, uint32_t process);

/* "profile" where nobody named it. */
struct str flame_service(const struct profile *p);

#endif
