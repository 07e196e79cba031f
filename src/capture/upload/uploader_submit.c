/* A window's way to the queues: encoded for each back end, kept in memory and in the spool, and handed to its thread.
 * What runtimes made of processes that are not the window's main one are deliveries of their own, for a service takes
 * one profile of a kind from each. */
#include "base/time.h"
#include "capture/upload/shipment.h"
#include "capture/upload/uploader_private.h"
#include "encode/encode.h"
#include "os/clock.h"
#include "os/thread.h"

/* `runtime`: what that process's made, alone; 0: the window. */
static bool encode(struct uploader *up, struct profile *p, uint32_t runtime, const struct backend *row,
                   struct upload_item *item, struct err *err)
{
    item->delivery = (struct delivery){
        .start_wall_ns = p->meta.start_wall_ns,
        .end_wall_ns = p->meta.end_wall_ns,
        .frequency_hz = p->meta.frequency_hz,
        .sequence = up->sequence,
        .identity = hash_u64(up->run ^ hash_u64(up->sequence)),
        .cpu_percent = p->meta.usage.any ? p->meta.usage.cpu_percent : -1,
        .memory_percent = p->meta.usage.any ? p->meta.usage.memory_percent : -1,
    };
    buf_init(&item->bytes, up->most_bytes);
    pthread_mutex_lock(&up->making);
    bool ok = runtime == 0 ? shipment_encode(p, row, &item->bytes, &item->delivery, err)
                           : shipment_encode_runtime(p, runtime, row, &item->bytes, &item->delivery, err);
    pthread_mutex_unlock(&up->making);
    if (!ok) {
        buf_release(&item->bytes);
        *item = (struct upload_item){0};
    }
    return ok;
}

/* Did it end when windows that began with it do, in other instances? */
static bool is_in_time(const struct uploader *up, const struct profile *p)
{
    return p->meta.end_wall_ns - p->meta.start_wall_ns >= up->settings->sampling.window_ns;
}

/* Its thread must not take the file before it knows of the copy in memory: it would send both. */
static void hand_to(struct upload_queue *queue, struct upload_item *item, bool in_time)
{
    struct uploader *up = queue->up;
    pthread_mutex_lock(&up->lock);
    queue->entering = window_key_of(&item->delivery);
    queue->has_entering = true;
    (void)uploader_make_room(up, item->bytes.len);
    up->used_bytes += item->bytes.len;
    pthread_mutex_unlock(&up->lock);
    spool_keep(queue, item);
    pthread_mutex_lock(&up->lock);
    if (in_time) {
        schedule_hold(&queue->schedule, queue->entering, clock_mono_ns());
    } else {
        schedule_let_go(&queue->schedule);
    }
    queue->has_entering = false;
    queue_insert(queue, item);
    pthread_mutex_unlock(&up->lock);
    waker_set(queue->waker);
}

/* Requests are made from when it is handed over on: then the profile is soon no longer needed. */
static void submit(struct uploader *up, struct profile *p, uint32_t runtime)
{
    struct upload_item items[BACKENDS_MAX] = {0};
    up->sequence++;
    for (size_t i = 0; i < up->queue_count; i++) {
        struct err err = {0};
        if (!encode(up, p, runtime, up->queues[i].row, &items[i], &err) && err.kind != ERR_NONE) {
            pthread_mutex_lock(&up->lock);
            up->queues[i].counts.dropped++;
            pthread_mutex_unlock(&up->lock);
            log_once(up->log, LOG_WARNING, "a window is not uploaded: %s; raise --max-memory", err.text);
        }
    }
    for (size_t i = 0; i < up->queue_count; i++) {
        if (items[i].bytes.ptr != NULL) {
            hand_to(&up->queues[i], &items[i], is_in_time(up, p));
        }
    }
}

static void say_left_out(struct uploader *up, const struct profile *p)
{
    for (size_t i = 0; i < up->queue_count && p->of_runtimes.all.len > 0; i++) {
        const struct encoder *encoder = encoder_by_name(str_of(up->queues[i].row->format));
        if (encoder != NULL && encoder->is_cpu_alone) {
            log_once(up->log, LOG_INFO, "%s takes CPU time alone: profiles of heap, locks and goroutines are not sent "
                                        "there", up->queues[i].row->title);
        }
    }
}

void uploader_submit(struct uploader *up, struct profile *p)
{
    uint32_t with_window = shipment_runtime(p), pid = 0;
    say_left_out(up, p);
    submit(up, p, 0);
    while ((pid = runtime_profiles_next(&p->of_runtimes, pid)) != 0) {
        if (pid != with_window) {
            submit(up, p, pid);
        }
    }
}
