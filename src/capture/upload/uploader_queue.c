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

/* What falls out of memory is lost unless a file holds it. */
static void drop_oldest(struct upload_queue *queue)
{
    struct upload_item *oldest = &queue->items[0];
    if (!oldest->in_spool) {
        queue->counts.dropped++;
        log_once(queue->up->log, LOG_WARNING,
                 "%s: the queue in memory is full, the oldest windows are lost; give --spool-dir",
                 queue->row->name);
    }
    item_release(queue->up, oldest);
    memmove(oldest, oldest + 1, --queue->item_count * sizeof *oldest);
}

void queue_insert(struct upload_queue *queue, struct upload_item *item)
{
    struct window_key key = window_key_of(&item->delivery);
    if (queue->item_count == UPLOADER_QUEUE) {
        if (window_key_less(key, window_key_of(&queue->items[0].delivery))) {
            struct upload_item kept = queue->items[0];
            queue->items[0] = *item; /* the older one is what falls out */
            *item = kept;
            key = window_key_of(&kept.delivery);
        }
        drop_oldest(queue);
    }
    size_t at = queue->item_count++;
    for (; at > 0 && window_key_less(key, window_key_of(&queue->items[at - 1].delivery)); at--) {
        queue->items[at] = queue->items[at - 1];
    }
    queue->items[at] = *item;
}

void queue_take(struct upload_queue *queue, size_t at)
{
    queue->current = queue->items[at];
    queue->has_current = true;
    queue->item_count--;
    memmove(&queue->items[at], &queue->items[at + 1], (queue->item_count - at) * sizeof queue->items[0]);
}

static struct upload_queue *queue_with_oldest(struct uploader *up)
{
    struct upload_queue *found = NULL;
    for (size_t i = 0; i < up->queue_count; i++) {
        struct upload_queue *queue = &up->queues[i];
        if (queue->item_count > 0 &&
            (found == NULL || window_key_less(window_key_of(&queue->items[0].delivery),
                                              window_key_of(&found->items[0].delivery)))) {
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
    for (struct upload_queue *queue; up->used_bytes + bytes > up->most_bytes &&
                            (queue = queue_with_oldest(up)) != NULL;) {
        drop_oldest(queue);
    }
    return up->used_bytes + bytes <= up->most_bytes;
}
