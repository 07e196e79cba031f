/* Windows in memory, by age: put in, taken out, and given up when there is no more room: those that
 * lie in a file first, for nothing is lost by that, then the oldest. All of it is called with the
 * uploader's lock held. */
#include "base/time.h"
#include "capture/upload/uploader_private.h"

struct window_key window_key_of(const struct delivery *delivery)
{
    return (struct window_key){delivery->start_wall_ns / NS_PER_MS, delivery->sequence};
}

void item_release(struct uploader *up, struct upload_item *item)
{
    up->used_bytes -= item->is_of_file ? 0 : item->bytes.len;
    buf_release(&item->bytes);
    *item = (struct upload_item){0};
}

static struct upload_item take_out(struct upload_queue *queue, size_t at)
{
    struct upload_item *place = &queue->items.at[at], item = *place;
    queue->items.len--;
    memmove(place, place + 1, (queue->items.len - at) * sizeof *place);
    return item;
}

/* What falls out of memory is lost unless a file holds it. */
static void give_up(struct upload_queue *queue, struct upload_item *item)
{
    if (!item->in_spool) {
        queue->counts.dropped++;
        log_once(queue->up->log, LOG_WARNING,
                 "%s: the queue in memory is full, the oldest windows are lost; give --spool-dir",
                 queue->row->name);
    }
    item_release(queue->up, item);
}

static void drop(struct upload_queue *queue, size_t at)
{
    struct upload_item item = take_out(queue, at);
    give_up(queue, &item);
}

/* The oldest that lies in a file; the length when none does. */
static size_t first_filed(const struct upload_queue *queue, size_t *count)
{
    size_t first = queue->items.len;
    *count = 0;
    for (size_t i = queue->items.len; i-- > 0;) {
        if (queue->items.at[i].in_spool) {
            first = i;
            (*count)++;
        }
    }
    return first;
}

void queue_insert(struct upload_queue *queue, struct upload_item *item)
{
    struct window_key key = window_key_of(&item->delivery);
    if (vec_push(&queue->items) == NULL) {
        give_up(queue, item);
        return;
    }
    size_t at = queue->items.len - 1, filed;
    for (; at > 0 && window_key_less(key, window_key_of(&queue->items.at[at - 1].delivery)); at--) {
        queue->items.at[at] = queue->items.at[at - 1];
    }
    queue->items.at[at] = *item;
    size_t first = first_filed(queue, &filed);
    if (filed > UPLOADER_FILED_MOST) {
        drop(queue, first);
    } else if (queue->items.len > UPLOADER_MOST) {
        drop(queue, 0);
    }
}

void queue_take(struct upload_queue *queue, size_t at)
{
    queue->current = take_out(queue, at);
    queue->has_current = true;
}

/* Files first: nothing is lost by them. */
static bool drop_filed(struct uploader *up)
{
    size_t count = 0;
    for (size_t i = 0; i < up->queue_count && count == 0; i++) {
        size_t first = first_filed(&up->queues[i], &count);
        if (count > 0) {
            drop(&up->queues[i], first);
        }
    }
    return count > 0;
}

static struct upload_queue *queue_with_oldest(struct uploader *up)
{
    struct upload_queue *found = NULL;
    for (size_t i = 0; i < up->queue_count; i++) {
        struct upload_queue *queue = &up->queues[i];
        if (queue->items.len > 0 &&
            (found == NULL || window_key_less(window_key_of(&queue->items.at[0].delivery),
                                              window_key_of(&found->items.at[0].delivery)))) {
            found = queue;
        }
    }
    return found;
}

bool uploader_make_room(struct uploader *up, size_t bytes)
{
    if (bytes > up->most_bytes) {
        return false;
    }
    struct upload_queue *queue = NULL;
    while (up->used_bytes + bytes > up->most_bytes && (drop_filed(up) || (queue = queue_with_oldest(up)) != NULL)) {
        if (queue != NULL) {
            drop(queue, 0);
            queue = NULL;
        }
    }
    return up->used_bytes + bytes <= up->most_bytes;
}
