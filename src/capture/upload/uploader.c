/* The uploader's outside: start, counts, refresh and end. Windows come in by uploader_submit.c. One thread per back end
 * does the sending (uploader_thread.c); windows wait in memory (uploader_queue.c) or in files
 * (uploader_spool.c). */
#include "base/time.h"
#include "capture/upload/tags.h"
#include "capture/upload/origin_ask.h"
#include "capture/upload/uploader_private.h"
#include "os/clock.h"
#include "os/net.h"
#include "os/secret.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STACK_BYTES = 256 << 10, /* TLS keeps its buffers on the heap; the resolver takes some 20 KiB */
    MEMORY_SHARE = 8,
    UNPACKED_TIMES = 2, /* its pprof, tables, and the pprof anew: 1.4 to 1.8 were seen */
    LEAST_BYTES = 1 << 20,
    LAST_MS = 300, /* for threads to see that their connections were cut */
    LOGS_LAST_MS = 1000, /* messages are worth no longer an end */
};

/* ---- start ---- */

static void release(struct uploader *up)
{
    for (size_t i = 0; i < up->queue_count; i++) {
        struct upload_queue *queue = &up->queues[i];
        vec_each(&queue->items, item)
        {
            item_release(up, item);
        }
        vec_release(&queue->items);
        item_release(up, &queue->current);
        sender_free(queue->sender);
        map_release(&queue->left_alone);
        waker_close(queue->waker);
    }
    if (up->has_store) {
        store_close(&up->store);
    }
    waker_close(up->cut);
    waker_close(up->ended);
    origin_release(&up->origin);
    pthread_mutex_destroy(&up->lock);
    pthread_mutex_destroy(&up->making);
    free(up);
}

/* The kernel's random bytes alone would do, but for machines that were cloned with their state. */
static uint64_t seed_of(const struct upload_queue *queue)
{
    const struct origin *origin = &queue->up->origin.facts;
    uint64_t random = 0;
    net_random(NULL, &random, sizeof random);
    return random ^ str_hash(origin->hostname) ^ str_hash(str_of(queue->row->name)) << 1 ^
           (uint64_t)origin->pid << 32 ^ clock_wall_ns();
}

static void begin_turn(struct upload_queue *queue)
{
    const struct settings *settings = queue->up->settings;
    uint64_t now_ns = clock_mono_ns();
    uint64_t period_ns = settings->sampling.continuous ? settings->sampling.window_ns : 0;
    schedule_begin(&queue->schedule, seed_of(queue), period_ns, now_ns);
    bool is_watched = queue->up->log->terminal; /* a fleet has no terminal */
    queue->check_ns = now_ns + (is_watched ? 0 : queue->schedule.offset_ns);
}

static bool add_queue(struct uploader *up, const struct backend *row, bool alone, struct err *err)
{
    struct upload_queue *queue = &up->queues[up->queue_count];
    queue->up = up;
    queue->row = row;
    queue->waker = -1;
    queue->sender = sender_new(up->settings, row, alone, &up->origin, up->cut, err);
    if (queue->sender == NULL) {
        return false;
    }
    sender_share_lock(queue->sender, &up->making);
    up->queue_count++;
    begin_turn(queue);
    queue->waker = waker_open();
    return queue->waker >= 0 || err_set(err, ERR_LIMIT, 0, "no descriptor for the uploader");
}

static void say_lines(const struct uploader *up, const struct buf *lines)
{
    for (struct str rest = buf_slice(lines); rest.len > 0;) {
        struct str line = str_cut(&rest, '\n');
        log_say(up->log, LOG_WARNING, "%.*s", (int)line.len, line.ptr);
    }
}

/* `omitted`: tags that no back end is sent. */
static void say_warnings(const struct uploader *up, struct buf *omitted)
{
    for (size_t i = 0; i < up->queue_count; i++) {
        const char *warning;
        for (size_t at = 0; (warning = sender_warning(up->queues[i].sender, at)) != NULL; at++) {
            log_say(up->log, LOG_WARNING, "%s: %s", up->queues[i].row->name, warning);
        }
        const char *exposure = sender_exposure(up->queues[i].sender);
        if (exposure != NULL) {
            log_say(up->log, LOG_WARNING, "%s: %s", up->queues[i].row->name, exposure);
        }
        sender_omissions(up->queues[i].sender, true, omitted);
    }
    say_lines(up, omitted);
}

static bool add_queues(struct uploader *up, struct err *err)
{
    const struct backend *rows[BACKENDS_MAX];
    size_t count;
    if (!sender_choose(&up->settings->upload, rows, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_queue(up, rows[i], count == 1, err)) {
            return false;
        }
    }
    return true;
}

static bool has_studio(const struct uploader *up)
{
    for (size_t i = 0; i < up->queue_count; i++) {
        if (strcmp(up->queues[i].row->name, "studio") == 0) {
            return true;
        }
    }
    return false;
}

/* Without it all else goes on. */
static void add_logs(struct uploader *up)
{
    struct err err = {0};
    if (up->settings->upload.send_logs && has_studio(up)) {
        up->logs = log_sender_new(up->settings, up->queue_count == 1, up->log, &up->origin,
                                  &log_pace_usual, &err);
        if (up->logs == NULL) {
            log_say(up->log, LOG_WARNING, "pillion's messages are not sent to the studio: %s", err.text);
        }
    }
}

static void start_logs(struct uploader *up)
{
    struct err err;
    if (up->logs != NULL && !log_sender_start(up->logs, up->confined, &err)) {
        (void)log_sender_stop(up->logs, 0);
        up->logs = NULL;
    }
}

static bool start_threads(struct uploader *up, struct err *err)
{
    pthread_attr_t attr;
    int number = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (size_t i = 0; i < up->queue_count && number == 0; i++) {
        struct upload_queue *queue = &up->queues[i];
        number = pthread_create(&queue->thread, &attr, queue_main, queue);
        queue->runs = number == 0;
    }
    pthread_attr_destroy(&attr);
    return number == 0 || err_no_thread(err, number, "the uploader's thread");
}

static void say_unverified(struct uploader *up)
{
    if (!up->settings->upload.verify) {
        log_say(up->log, LOG_WARNING,
                "--no-verify: anyone between here and the server can read the token and the "
                "profiles; give --ca-file or --pin instead");
    }
}

static void say_what_is_told(struct uploader *up)
{
    if (!up->settings->origin.metadata && has_studio(up)) {
        log_say(up->log, LOG_WARNING,
                "--disable-metadata-collection: the studio refuses profiles without facts; it is "
                "sent the host's name, when pillion began, its pid and options, nothing else");
    }
}

void uploader_limit(struct uploader *up, uint64_t memory_bytes)
{
    uint64_t most = memory_bytes / MEMORY_SHARE;
    pthread_mutex_lock(&up->lock);
    up->most_bytes = most > LEAST_BYTES ? most : LEAST_BYTES;
    pthread_mutex_unlock(&up->lock);
}

struct uploader *uploader_start(const struct settings *settings, bool confined, struct log *log, struct err *err)
{
    struct uploader *up = calloc(1, sizeof *up);
    struct buf omitted;
    buf_init(&omitted, BACKENDS_MAX * SENDER_OMISSIONS_MAX);
    if (up == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory for the uploader");
        return NULL;
    }
    secret_leave_no_core();
    pthread_mutex_init(&up->lock, NULL);
    pthread_mutex_init(&up->making, NULL);
    up->settings = settings;
    up->confined = confined;
    up->log = log;
    net_random(NULL, &up->run, sizeof up->run);
    up->cut = waker_open();
    up->ended = waker_open();
    uploader_limit(up, settings->budget.memory_bytes);
    origin_gather(&up->origin, settings, sender_variable, NULL);
    tags_add(&up->origin.facts, &settings->upload, &omitted);
    bool ok = add_queues(up, err);
    if (ok) {
        add_logs(up);
    }
    if (ok && settings->origin.metadata) {
        origin_ask_start(&up->origin, confined, sender_variable, NULL);
    }
    sender_hide_secrets(&settings->upload);
    if (ok) {
        spool_start(up);
        say_unverified(up);
        say_warnings(up, &omitted);
        say_what_is_told(up);
        start_logs(up);
        ok = start_threads(up, err);
    }
    buf_release(&omitted);
    if (!ok) {
        (void)uploader_stop(up, 0);
        return NULL;
    }
    return up;
}

void uploader_describe(const struct uploader *up, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < up->queue_count && used < out_bytes; i++) {
        int len = snprintf(out + used, out_bytes - used, "%s%s", i > 0 ? ", " : "",
                           up->queues[i].row->name);
        used += len > 0 ? (size_t)len : 0;
    }
}

unsigned uploader_making_times(const struct uploader *up)
{
    for (size_t i = 0; i < up->queue_count; i++) {
        if (up->queues[i].row->unpacks) { /* they do one after the other */
            return UNPACKED_TIMES;
        }
    }
    return 0;
}

size_t uploader_most_bytes(const struct uploader *up)
{
    return up->most_bytes;
}

bool uploader_takes_sets(const struct uploader *up)
{
    bool any = false;
    for (size_t i = 0; i < up->queue_count; i++) {
        any = any || up->queues[i].row->takes_sets;
    }
    return any;
}

/* ---- counts ---- */

static uint64_t count_unsaved(const struct upload_queue *queue)
{
    uint64_t count = queue->has_current && !queue->current.in_spool;
    vec_each(&queue->items, item)
    {
        count += !item->in_spool;
    }
    return count;
}

void uploader_counts(struct uploader *up, struct uploader_counts *out)
{
    *out = (struct uploader_counts){0};
    pthread_mutex_lock(&up->lock);
    for (size_t i = 0; i < up->queue_count; i++) {
        const struct upload_queue *queue = &up->queues[i];
        out->sent += queue->counts.sent;
        out->dropped += queue->counts.dropped;
        out->attempts += queue->counts.attempts;
        out->failures += queue->counts.failures;
        out->bytes += queue->counts.bytes;
        out->spooled += queue->spooled;
        out->waiting += queue->spooled + count_unsaved(queue);
        if (queue->counts.trouble[0] != '\0') {
            memcpy(out->trouble, queue->counts.trouble, sizeof out->trouble);
        }
    }
    pthread_mutex_unlock(&up->lock);
}

uint64_t uploader_cpu_ns(const struct uploader *up)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < up->queue_count; i++) {
        sum += clock_thread_cpu_ns(up->queues[i].thread);
    }
    sum += up->logs != NULL ? log_sender_cpu_ns(up->logs) : 0;
    return sum;
}

const struct origin *uploader_origin(const struct uploader *up)
{
    return origin_now(&up->origin);
}

void uploader_refresh(struct uploader *up)
{
    for (size_t i = 0; i < up->queue_count; i++) {
        pthread_mutex_lock(&up->lock);
        up->queues[i].refresh = true;
        pthread_mutex_unlock(&up->lock);
        waker_set(up->queues[i].waker);
    }
    if (up->logs != NULL) {
        log_sender_refresh(up->logs);
    }
}

/* ---- the end ---- */

static bool all_ended(struct uploader *up)
{
    bool all = true;
    pthread_mutex_lock(&up->lock);
    for (size_t i = 0; i < up->queue_count; i++) {
        all = all && (!up->queues[i].runs || up->queues[i].ended);
    }
    pthread_mutex_unlock(&up->lock);
    return all;
}

static bool await_end(struct uploader *up, uint64_t until_ns)
{
    uint64_t now_ns;
    while (!all_ended(up) && (now_ns = clock_mono_ns()) < until_ns) {
        (void)waker_wait(up->ended, -1, until_ns - now_ns);
    }
    return all_ended(up);
}

static void begin_end(struct uploader *up, uint64_t stop_ns)
{
    pthread_mutex_lock(&up->lock);
    up->stop_ns = stop_ns;
    pthread_mutex_unlock(&up->lock);
    for (size_t i = 0; i < up->queue_count; i++) {
        waker_set(up->queues[i].waker);
    }
}

static uint64_t say_end(struct uploader *up)
{
    struct uploader_counts counts;
    uploader_counts(up, &counts);
    uint64_t lost = counts.waiting - counts.spooled;
    if (counts.sent + counts.attempts + counts.spooled + counts.dropped + lost > 0) {
        log_say(up->log, lost + counts.dropped > 0 ? LOG_WARNING : LOG_INFO,
                "uploads: %llu sent (%llu KB), %llu kept in the spool, %llu lost",
                (unsigned long long)counts.sent, (unsigned long long)(counts.bytes + 1023) / 1024,
                (unsigned long long)counts.spooled, (unsigned long long)(lost + counts.dropped));
    }
    return lost;
}

/* A thread that waits for a name's address cannot be woken. The process is about to end: what it
 * uses stays. */
static void abandon(struct uploader *up)
{
    pthread_mutex_lock(&up->lock);
    up->abandoned = true;
    pthread_mutex_unlock(&up->lock);
}

/* The last messages are sent, too, in the rest of the grace period. */
static bool stop_logs(struct uploader *up, uint64_t stop_ns)
{
    uint64_t now_ns = clock_mono_ns(), left_ns = stop_ns > now_ns ? stop_ns - now_ns : 0;
    uint64_t most_ns = LOGS_LAST_MS * NS_PER_MS;
    bool ended = up->logs == NULL ||
                 log_sender_stop(up->logs, left_ns < most_ns ? left_ns : most_ns);
    up->logs = NULL;
    return ended;
}

uint64_t uploader_stop(struct uploader *up, uint64_t grace_ns)
{
    uint64_t stop_ns = clock_mono_ns() + grace_ns;
    begin_end(up, stop_ns);
    if (!await_end(up, stop_ns)) {
        waker_set(up->cut);
        (void)await_end(up, clock_mono_ns() + LAST_MS * NS_PER_MS);
    }
    bool ended = all_ended(up);
    spool_count_lost(up, ended);
    uint64_t lost = say_end(up);
    if (!stop_logs(up, stop_ns) || !ended) {
        abandon(up);
        return lost;
    }
    for (size_t i = 0; i < up->queue_count; i++) {
        if (up->queues[i].runs) {
            pthread_join(up->queues[i].thread, NULL);
        }
    }
    release(up);
    return lost;
}
