#include "base/time.h"
#include "capture/upload/uploader_private.h"

#include <stdlib.h>

struct window_key window_key_of(const struct delivery *delivery)
{
    return (struct window_key){delivery->start_wall_ns / NS_PER_MS, delivery->sequence};
}

void parcel_release(struct uploader *up, struct parcel *parcel)
{
    up->used_bytes -= parcel->is_of_file ? 0 : parcel->bytes.len;
    buf_release(&parcel->bytes);
    *parcel = (struct parcel){0};
}

/* What falls out of memory is lost unless a file holds it. */
static void drop_oldest(struct lane *lane)
{
    struct parcel *oldest = &lane->queue[0];
    if (!oldest->in_spool) {
        lane->counts.dropped++;
        log_once(lane->up->log, LOG_WARNING,
                 "%s: more windows wait than memory is for, the oldest are lost; give --spool-dir",
                 lane->row->name);
    }
    parcel_release(lane->up, oldest);
    memmove(oldest, oldest + 1, --lane->queued * sizeof *oldest);
}

void lane_enqueue(struct lane *lane, struct parcel *parcel)
{
    struct window_key key = window_key_of(&parcel->delivery);
    if (lane->queued == UPLOADER_QUEUE) {
        if (window_key_less(key, window_key_of(&lane->queue[0].delivery))) {
            struct parcel kept = lane->queue[0];
            lane->queue[0] = *parcel; /* the older one is what falls out */
            *parcel = kept;
            key = window_key_of(&kept.delivery);
        }
        drop_oldest(lane);
    }
    size_t at = lane->queued++;
    for (; at > 0 && window_key_less(key, window_key_of(&lane->queue[at - 1].delivery)); at--) {
        lane->queue[at] = lane->queue[at - 1];
    }
    lane->queue[at] = *parcel;
}

void lane_take(struct lane *lane, size_t at)
{
    lane->current = lane->queue[at];
    lane->has_current = true;
    lane->queued--;
    memmove(&lane->queue[at], &lane->queue[at + 1], (lane->queued - at) * sizeof lane->queue[0]);
}

static struct lane *lane_with_oldest(struct uploader *up)
{
    struct lane *found = NULL;
    for (size_t i = 0; i < up->lane_count; i++) {
        struct lane *lane = &up->lanes[i];
        if (lane->queued > 0 &&
            (found == NULL || window_key_less(window_key_of(&lane->queue[0].delivery),
                                              window_key_of(&found->queue[0].delivery)))) {
            found = lane;
        }
    }
    return found;
}

bool uploader_make_room(struct uploader *up, size_t bytes)
{
    if (bytes > up->most_bytes) {
        return false;
    }
    for (struct lane *lane; up->used_bytes + bytes > up->most_bytes &&
                            (lane = lane_with_oldest(up)) != NULL;) {
        drop_oldest(lane);
    }
    return up->used_bytes + bytes <= up->most_bytes;
}
