/* The table of readable processes that the sampler publishes and catchers search, without a lock: a catcher
 * announces which table it uses (hazard pointer), and a replaced table is freed when nobody announces it.
 * Rows are found by pid, and a thread's inner id by its tid. */
#include "capture/catch/catch_table.h"

#include <stdlib.h>

static int by_pid_and_serial(const void *a, const void *b)
{
    uint32_t left = ((const struct catch_target *)a)->pid;
    uint32_t right = ((const struct catch_target *)b)->pid;
    uint64_t older = ((const struct catch_target *)a)->serial, newer = ((const struct catch_target *)b)->serial;
    return left != right ? (left > right) - (left < right) : (older > newer) - (older < newer);
}

static int by_tid(const void *a, const void *b)
{
    uint32_t left = ((const struct catch_tid *)a)->tid, right = ((const struct catch_tid *)b)->tid;
    return (left > right) - (left < right);
}

static void mark_more(struct catch_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        table->target[i].more = i + 1 < table->count && table->target[i + 1].pid == table->target[i].pid;
    }
}

struct catch_table *catch_table_make(const struct catch_target *targets, size_t count)
{
    struct catch_table *table = malloc(sizeof *table + count * sizeof *targets);
    if (table == NULL) {
        return NULL;
    }
    *table = (struct catch_table){.count = count};
    if (count > 0) {
        memcpy(table->target, targets, count * sizeof *targets);
        qsort(table->target, count, sizeof *targets, by_pid_and_serial);
        mark_more(table);
    }
    return table;
}

/* Sequentially consistent on both sides: either the announcement is seen by who replaces the table, or
 * the replacement is seen here. */
const struct catch_table *catch_table_enter(struct catch_table *const *place,
                                            struct catch_hazard *hazard)
{
    const struct catch_table *table = __atomic_load_n(place, __ATOMIC_SEQ_CST), *again = table;
    do {
        table = again;
        __atomic_store_n(&hazard->table, table, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* emulated processors reorder the two otherwise */
        again = __atomic_load_n(place, __ATOMIC_SEQ_CST);
    } while (again != table);
    return table;
}

void catch_table_leave(struct catch_hazard *hazard)
{
    __atomic_store_n(&hazard->table, NULL, __ATOMIC_RELEASE);
}

const struct catch_target *catch_table_find(const struct catch_table *table, uint32_t pid)
{
    size_t low = 0, high = table == NULL ? 0 : table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->target[middle].pid < pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return table != NULL && low < table->count && table->target[low].pid == pid ? &table->target[low] : NULL;
}

uint32_t catch_table_inner_tid(const struct catch_target *target, uint32_t tid)
{
    struct catch_tid key = {.tid = tid};
    const struct catch_tid *found =
        target->tids == NULL || target->tid_count == 0
            ? NULL
            : bsearch(&key, target->tids, target->tid_count, sizeof key, by_tid);
    return found != NULL ? found->inner : tid;
}

void catch_table_replace(struct catch_table **place, struct catch_table *table)
{
    table->older = *place;
    __atomic_store_n(place, table, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static bool is_used(const struct catch_table *table, const struct catch_hazard *hazards,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (__atomic_load_n(&hazards[i].table, __ATOMIC_SEQ_CST) == table) {
            return true;
        }
    }
    return false;
}

bool catch_table_collect(struct catch_table *table, const struct catch_hazard *hazards,
                         size_t count)
{
    struct catch_table **link = &table->older;
    while (*link != NULL) {
        struct catch_table *old = *link;
        if (is_used(old, hazards, count)) {
            link = &old->older;
            continue;
        }
        *link = old->older;
        free(old);
    }
    return table->older == NULL;
}
