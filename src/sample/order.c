/* Puts the records of several rings into time order: a record waits until every ring has been drained
 * once more, because only then can nothing older appear. Memory is bounded; when it fills up, records
 * go out early and are counted. */
#include "sample/order.h"

#include <stdlib.h>

void order_init(struct order *order, size_t max_bytes)
{
    *order = (struct order){0};
    buf_init(&order->bytes, max_bytes);
    buf_init(&order->spare, max_bytes);
}

void order_release(struct order *order)
{
    vec_release(&order->entries);
    buf_release(&order->bytes);
    buf_release(&order->spare);
}

void *order_room(struct order *order, uint64_t time_ns, size_t len)
{
    size_t padded = (len + 7) & ~(size_t)7; /* call chains are read as aligned 64-bit words */
    char *room = buf_room(&order->bytes, padded);
    if (room == NULL) {
        order->bytes.failed = false;
        return NULL;
    }
    struct order_entry *entry = vec_push(&order->entries);
    if (entry == NULL) {
        return NULL;
    }
    *entry = (struct order_entry){time_ns, (uint32_t)order->bytes.len, (uint32_t)len,
                                  order->sequence++};
    order->bytes.len += padded;
    if (time_ns > order->newest_ns) {
        order->newest_ns = time_ns;
    }
    return room;
}

static int by_time(const void *left, const void *right)
{
    const struct order_entry *a = left, *b = right;
    if (a->time_ns != b->time_ns) {
        return a->time_ns < b->time_ns ? -1 : 1;
    }
    int32_t apart = (int32_t)(a->sequence - b->sequence); /* the counter may have wrapped */
    return (apart > 0) - (apart < 0);
}

/* Moves the waiting records [from, …) to the front, and their bytes to the other buffer. */
static void keep_rest(struct order *order, size_t from)
{
    size_t rest = order->entries.len - from, bytes = 0;
    for (size_t i = 0; i < rest; i++) {
        bytes += (order->entries.at[from + i].len + 7u) & ~(size_t)7;
    }
    char *copy = bytes == 0 ? NULL : buf_room(&order->spare, bytes);
    if (bytes > 0 && copy == NULL) {
        order->spare.failed = false;
        memmove(order->entries.at, order->entries.at + from, rest * sizeof *order->entries.at);
        order->entries.len = rest; /* the handed-out bytes stay in the way until the next round */
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < rest; i++) {
        struct order_entry entry = order->entries.at[from + i];
        memcpy(copy + used, order->bytes.ptr + entry.offset, entry.len);
        entry.offset = (uint32_t)used;
        used += (entry.len + 7u) & ~(size_t)7;
        order->entries.at[i] = entry;
    }
    order->entries.len = rest;
    if (rest == 0) {
        order->bytes.len = 0;
        return;
    }
    struct buf full = order->bytes;
    order->bytes = order->spare;
    order->bytes.len = used;
    order->spare = full;
    order->spare.len = 0;
}

static void hand_out(struct order *order, uint64_t until_ns,
                     void (*each)(void *context, const void *record, size_t len), void *context)
{
    if (order->entries.len > 0) {
        qsort(order->entries.at, order->entries.len, sizeof *order->entries.at, by_time);
    }
    size_t done = 0;
    while (done < order->entries.len && order->entries.at[done].time_ns <= until_ns) {
        const struct order_entry *entry = &order->entries.at[done++];
        each(context, order->bytes.ptr + entry->offset, entry->len);
    }
    keep_rest(order, done);
}

void order_pass(struct order *order)
{
    order->newest_before_ns = order->newest_ns;
}

void order_round(struct order *order, uint64_t drained_ns,
                 void (*each)(void *context, const void *record, size_t len), void *context)
{
    bool crowded = order->bytes.len > order->bytes.max / 2;
    uint64_t safe_ns = drained_ns < order->newest_before_ns ? drained_ns : order->newest_before_ns;
    order->early += crowded;
    hand_out(order, crowded ? UINT64_MAX : safe_ns, each, context);
    order_pass(order);
}

void order_flush(struct order *order, void (*each)(void *context, const void *record, size_t len),
                 void *context)
{
    hand_out(order, UINT64_MAX, each, context);
}
