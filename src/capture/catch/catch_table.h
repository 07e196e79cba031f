/*
 * catch_table: what catchers may read, published without a lock.
 *
 * The sampler puts a whole new table in the place of the one before. A catcher announces which table it
 * uses (its hazard) before it reads it, and then checks that it is still the current one; so a
 * table that was replaced, and that no hazard names, is used by nobody and never will be.
 */
#ifndef CAPTURE_CATCH_TABLE_H
#define CAPTURE_CATCH_TABLE_H

#include "capture/catch/catch.h"

struct catch_table {
    struct catch_table *older; /* replaced, but still in use when last checked */
    size_t count;
    struct catch_target target[]; /* by pid, then by serial */
};

/* One per catcher, each in a cache line of its own. */
struct catch_hazard {
    const struct catch_table *table; /* atomic */
    char apart[64 - sizeof(void *)];
};

/* A copy of the list; the lists of tids stay borrowed. Null when memory ends. */
struct catch_table *catch_table_make(const struct catch_target *targets, size_t count);

/* Catchers: the table in place (null: there is none yet), until catch_table_leave. */
const struct catch_table *catch_table_enter(struct catch_table *const *place,
                                            struct catch_hazard *hazard);
void catch_table_leave(struct catch_hazard *hazard);

/* The first row of the process; null: nobody may read it. */
const struct catch_target *catch_table_find(const struct catch_table *table, uint32_t pid);

/* The thread's id as the target numbers it. */
uint32_t catch_table_inner_tid(const struct catch_target *target, uint32_t tid);

/* The sampler: puts `table` in place; what was there comes first in its chain of older ones. */
void catch_table_replace(struct catch_table **place, struct catch_table *table);

/* Frees the older tables that are not in use; true when none is left. */
bool catch_table_collect(struct catch_table *table, const struct catch_hazard *hazards,
                         size_t count);

#endif
