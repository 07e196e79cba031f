/*
 * uploader_private: what the files of the uploader share.
 *
 *     uploader.c         start, counts, end
 *     uploader_submit.c  a window is encoded and handed to the queues
 *     uploader_thread.c  one back end's thread: which delivery is next, what became of it
 *     uploader_queue.c   windows in memory
 *     uploader_spool.c   windows in files
 *
 * The lock is of everything but what is marked "queue": that belongs to the queue's thread alone. A
 * queue holds a window while it is sent (`current`), which is in no queue then.
 */
#ifndef CAPTURE_UPLOADER_PRIVATE_H
#define CAPTURE_UPLOADER_PRIVATE_H

#include "base/map.h"
#include "capture/upload/log_sender.h"
#include "capture/upload/origin.h"
#include "capture/upload/sender.h"
#include "capture/upload/uploader.h"
#include "deliver/spool.h"
#include "deliver/schedule.h"
#include "os/store.h"

#include <pthread.h>

/* Windows in memory: with a file they are there to be sent soon, without one they are all there is. */
enum { UPLOADER_FILED_MOST = 4, UPLOADER_MOST = 512 };

struct upload_item {
    struct delivery delivery; /* its profiles lie in `bytes` */
    struct buf bytes;         /* the encoded window, or the file of the spool that it was read from */
    bool is_of_file;
    char name[SPOOL_NAME_MAX];
    bool in_spool, tried;
};

struct upload_queue {
    struct uploader *up;
    const struct backend *row;
    struct sender *sender; /* queue */
    struct schedule schedule;      /* the publisher only holds and lets go */
    struct map left_alone; /* queue: names in the spool that are not for us */
    bool has_reported;         /* queue: which facts are not sent */
    uint64_t check_ns;     /* queue: when it asks whether the service is there; 0: it has */
    pthread_t thread;
    int waker;
    bool runs, ended;

    struct window_key entering; /* its file is there, or soon; it is in no queue yet */
    bool has_entering;
    VEC(struct upload_item) items; /* the oldest first */
    struct upload_item current;
    bool has_current;
    uint64_t spooled; /* files of this back end */
    struct uploader_counts counts;
    bool refresh;
};

struct uploader {
    const struct settings *settings;
    bool confined; /* os/confine.h */
    struct log *log;
    pthread_mutex_t lock;
    pthread_mutex_t making; /* a window is encoded, or a request made of one */
    struct upload_queue queues[BACKENDS_MAX];
    size_t queue_count;
    struct origin_here origin;
    struct log_sender *logs; /* null: messages are not sent */
    struct store store;
    bool has_store;
    size_t most_bytes, used_bytes; /* of windows in memory */
    uint64_t sequence;             /* the publisher's */
    uint64_t run;                  /* drawn at the start: no other run has it */
    uint64_t stop_ns;              /* monotonic: by then it is over; 0: it goes on */
    bool abandoned;                /* nobody waits any more: nothing outside may be touched */
    int cut;                       /* a waker that ends all waits of connections */
    int ended;                     /* a waker: some queue ended */
};

struct window_key window_key_of(const struct delivery *delivery);

/* ---- the queue; with the lock held ---- */

/* Puts a item in at its place; the oldest falls out when there are too many, perhaps itself. */
void queue_insert(struct upload_queue *queue, struct upload_item *item);

/* Takes one out: it is `current` then. */
void queue_take(struct upload_queue *queue, size_t at);

void item_release(struct uploader *up, struct upload_item *item);

/* Makes room for an encoded window; false when there cannot be any. */
bool uploader_make_room(struct uploader *up, size_t bytes);

/* ---- the spool ---- */

void spool_start(struct uploader *up);

/* Writes the item, if there is a spool and room; older ones go for it. */
void spool_keep(struct upload_queue *queue, struct upload_item *item);

void spool_drop(struct upload_queue *queue, const char *name);

/* Who removes the folder, or files of it, takes windows with it: they are counted as lost unless memory has them, too.
 * `ended`: no thread sends any more, so that files can be counted. */
void spool_count_lost(struct uploader *up, bool ended);

/* The oldest file of the queue behind `after`, as a key and a name. False: none. */
bool spool_oldest(struct upload_queue *queue, struct window_key after, struct window_key *key,
                  char name[static SPOOL_NAME_MAX]);

/* Reads it. False: it is gone, damaged (and removed), or not for us. */
bool spool_load(struct upload_queue *queue, const char *name, struct upload_item *out);

/* How old a window of this back end may become. */
uint64_t spool_age_ns(const struct backend *row);

/* ---- a queue ---- */

void *queue_main(void *context);

#endif
