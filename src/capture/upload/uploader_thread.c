/* The thread of one back end: picks the next window by the schedule, sends it, and acts on what
 * came of it: taken, kept, made smaller, given up. Every failure is logged once per cause, with its
 * remedy. */
#include "base/time.h"
#include "capture/upload/uploader_private.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/thread.h"

#include <stdio.h>

enum { IDLE_MS = 60000, CHECK_MS = 5000, FLUSH_TRIES = 3, FLUSH_PAUSE_MS = 300 };

/* ---- which one is next ---- */

/* With the lock held; `filed` tells of the oldest file, `file` how old it is. */
static struct schedule_pick pick_next(const struct upload_queue *queue, bool filed,
                                      struct window_key file)
{
    struct window_key keys[UPLOADER_MOST];
    for (size_t i = 0; i < queue->items.len; i++) {
        keys[i] = window_key_of(&queue->items.at[i].delivery);
    }
    bool enters = queue->has_entering && !window_key_less(file, queue->entering);
    const struct schedule_waiting waiting = {keys, queue->items.len, filed && !enters, file};
    return schedule_next(&queue->schedule, &waiting, clock_mono_ns());
}

static bool load_next(struct upload_queue *queue, const char *name)
{
    struct upload_item read = {0};
    if (!spool_load(queue, name, &read)) {
        return false;
    }
    pthread_mutex_lock(&queue->up->lock);
    queue->current = read;
    queue->has_current = true;
    pthread_mutex_unlock(&queue->up->lock);
    return true;
}

/* What to do; RETRY_LIVE and RETRY_BACKLOG: send the current one, which may have gone meanwhile. */
static enum retry_next take_next(struct upload_queue *queue)
{
    struct uploader *up = queue->up;
    char name[SPOOL_NAME_MAX];
    struct window_key file = {0};
    bool filed = spool_oldest(queue, queue->schedule.after, &file, name);
    pthread_mutex_lock(&up->lock);
    struct schedule_pick pick = pick_next(queue, filed, file);
    bool takes = pick.next == RETRY_LIVE || pick.next == RETRY_BACKLOG;
    if (takes && !pick.in_file) {
        queue_take(queue, pick.at);
    }
    pthread_mutex_unlock(&up->lock);
    if (takes && pick.in_file) {
        (void)load_next(queue, name);
    }
    return pick.next;
}

/* ---- what became of it ---- */

static uint64_t waiting_of(const struct upload_queue *queue)
{
    uint64_t count = queue->spooled;
    vec_each(&queue->items, item)
    {
        count += !item->in_spool;
    }
    return count;
}

/* With the lock held, as all that says something: whoever stops waiting for this thread says so
 * under it. */
static void tell(struct upload_queue *queue, const struct sender_outcome *outcome, bool recovered,
                 uint64_t now_ns)
{
    struct log *log = queue->up->log;
    const char *name = queue->row->name, *why = outcome->err.text;
    unsigned long long waiting = waiting_of(queue);
    uint64_t next_ns = queue->schedule.retry.next_ns;
    double next_s = next_ns > now_ns ? (double)(next_ns - now_ns) / (double)NS_PER_S : 0.0;
    switch (outcome->verdict) {
    case VERDICT_TAKEN:
        if (recovered) {
            log_once(log, LOG_INFO, "upload to %s works again; windows waiting: %llu", name,
                     waiting);
        }
        if (why[0] != '\0') {
            log_once(log, LOG_WARNING, "%s accepted a window with a warning: %s", name, why);
        }
        break;
    case VERDICT_LATER:
        if (queue->up->stop_ns != 0) { /* the last report says what was lost */
            log_once(log, LOG_WARNING, "upload to %s failed: %s; windows kept: %llu", name, why, waiting);
            break;
        }
        log_once(log, LOG_WARNING,
                 "upload to %s failed: %s; windows kept: %llu, next try in %.0f s", name, why,
                 waiting, next_s);
        break;
    case VERDICT_CONFIG:
        log_once(log, LOG_WARNING,
                 "upload to %s failed: %s; windows kept: %llu, next try in %.0f s, later every 5 minutes, and on HUP",
                 name, why, waiting, next_s);
        break;
    default:
        log_once(log, LOG_WARNING, "%s rejected a window, which is lost: %s", name, why);
        break;
    }
}

static bool is_over(enum verdict verdict)
{
    return verdict != VERDICT_LATER && verdict != VERDICT_CONFIG;
}

static void count(struct upload_queue *queue, const struct sender_outcome *outcome, bool attempted)
{
    struct uploader_counts *counts = &queue->counts;
    bool taken = outcome->verdict == VERDICT_TAKEN;
    counts->attempts += attempted;
    counts->failures += attempted && !taken;
    counts->sent += taken;
    counts->bytes += taken ? queue->current.bytes.len : 0;
    counts->dropped += !taken && is_over(outcome->verdict);
    snprintf(counts->trouble, sizeof counts->trouble, "%.*s", (int)sizeof counts->trouble - 1,
             taken ? "" : outcome->err.text);
}

/* False: nobody is there any more. */
static bool settle(struct upload_queue *queue, const struct sender_outcome *outcome, bool attempted)
{
    struct uploader *up = queue->up;
    uint64_t now_ns = clock_mono_ns();
    char name[SPOOL_NAME_MAX];
    pthread_mutex_lock(&up->lock);
    if (up->abandoned) {
        pthread_mutex_unlock(&up->lock);
        return false;
    }
    bool recovered = queue->schedule.retry.failures > 0;
    if (attempted) { /* else the service has not responded */
        schedule_note(&queue->schedule, window_key_of(&queue->current.delivery), outcome->verdict,
                  outcome->retry_after_ns, now_ns);
    }
    count(queue, outcome, attempted);
    struct upload_item item = queue->current;
    queue->has_current = false;
    queue->current = (struct upload_item){0};
    bool drops = is_over(outcome->verdict) && item.in_spool;
    memcpy(name, item.name, sizeof name);
    if (is_over(outcome->verdict)) {
        item_release(up, &item);
    } else if (item.is_of_file) {
        queue->counts.dropped += !item.in_spool; /* the file went while it was sent */
        item_release(up, &item);
    } else {
        item.tried = true;
        queue_insert(queue, &item);
    }
    tell(queue, outcome, recovered, now_ns);
    pthread_mutex_unlock(&up->lock);
    if (drops) {
        spool_drop(queue, name);
    }
    return true;
}

/* Facts of the platform may come late, so they are checked when a window was taken. Nothing is wrong
 * with it, and without tags nothing can be done: no warning. */
static void report_omissions(struct upload_queue *queue)
{
    struct uploader *up = queue->up;
    struct buf lines;
    buf_init(&lines, SENDER_OMISSIONS_MAX);
    pthread_mutex_lock(&up->lock);
    if (!up->abandoned) {
        sender_omissions(queue->sender, false, &lines);
    }
    for (struct str rest = buf_slice(&lines); rest.len > 0;) {
        struct str line = str_cut(&rest, '\n');
        log_say(up->log, LOG_INFO, "%.*s", (int)line.len, line.ptr);
        queue->has_reported = true;
    }
    pthread_mutex_unlock(&up->lock);
    buf_release(&lines);
}

/* ---- the thread ---- */

static bool is_too_old(const struct upload_queue *queue)
{
    const struct delivery *d = &queue->current.delivery;
    return d->end_wall_ns + spool_age_ns(queue->row) < clock_wall_ns();
}

/* False: nobody is there any more. */
static bool send_current(struct upload_queue *queue, enum retry_next picked, uint64_t until_ns,
                         enum verdict *verdict)
{
    uint64_t deadline_ns = clock_mono_ns() + sender_timeout_ns(queue->sender);
    struct sender_outcome outcome = {.verdict = VERDICT_REFUSED};
    schedule_try(&queue->schedule, window_key_of(&queue->current.delivery), picked);
    bool attempts = !is_too_old(queue);
    if (attempts) {
        sender_send(queue->sender, &queue->current.delivery,
                    until_ns < deadline_ns ? until_ns : deadline_ns, &outcome);
    } else {
        err_set(&outcome.err, ERR_LIMIT, 0, "it is older than the service accepts");
    }
    *verdict = outcome.verdict;
    if (outcome.verdict == VERDICT_TAKEN && !queue->has_reported) {
        report_omissions(queue);
    }
    return settle(queue, &outcome, attempts);
}

static uint64_t stop_ns_of(struct upload_queue *queue)
{
    pthread_mutex_lock(&queue->up->lock);
    uint64_t stop_ns = queue->up->stop_ns;
    if (queue->refresh) {
        queue->refresh = false;
        schedule_hurry(&queue->schedule);
        sender_refresh(queue->sender);
    }
    pthread_mutex_unlock(&queue->up->lock);
    return stop_ns;
}

static bool take_unsaved(struct upload_queue *queue)
{
    pthread_mutex_lock(&queue->up->lock);
    size_t at = queue->items.len;
    while (at > 0 && queue->items.at[at - 1].in_spool && queue->items.at[at - 1].tried) {
        at--;
    }
    if (at > 0) {
        queue_take(queue, at - 1);
    }
    pthread_mutex_unlock(&queue->up->lock);
    return at > 0;
}

static void pause_until(uint64_t pause_ns, uint64_t end_ns)
{
    uint64_t now_ns = clock_mono_ns();
    if (now_ns < end_ns) {
        clock_sleep_ns(pause_ns < end_ns - now_ns ? pause_ns : end_ns - now_ns);
    }
}

/* One more chance for what is in memory, at once. What is in the spool too is safe, and after a
 * failure the rest fares no better. False: nobody is there any more. */
static bool flush_memory(struct upload_queue *queue, uint64_t stop_ns)
{
    unsigned failures = 0;
    while (failures < FLUSH_TRIES && clock_mono_ns() < stop_ns && take_unsaved(queue)) {
        bool is_safe = queue->current.in_spool;
        enum verdict verdict;
        if (!send_current(queue, RETRY_LIVE, stop_ns, &verdict)) {
            return false;
        }
        if (is_over(verdict)) {
            continue;
        }
        failures++;
        if (is_safe || verdict == VERDICT_CONFIG) {
            return true;
        }
        pause_until(failures * FLUSH_PAUSE_MS * NS_PER_MS, stop_ns);
    }
    return true;
}

/* One of the spool when the last window was taken just now: a run that is too short for the
 * backlog's pace leaves no more behind than it found. False: nobody is there any more. */
static bool flush_one_file(struct upload_queue *queue, uint64_t stop_ns)
{
    struct window_key key;
    char name[SPOOL_NAME_MAX];
    enum verdict verdict;
    bool is_well = queue->schedule.retry.failures == 0 && queue->up->sequence > 0 &&
                   queue->schedule.newest.sequence == queue->up->sequence;
    if (!is_well || clock_mono_ns() >= stop_ns ||
        !spool_oldest(queue, (struct window_key){0}, &key, name) || !load_next(queue, name)) {
        return true;
    }
    return send_current(queue, RETRY_BACKLOG, stop_ns, &verdict);
}

static bool flush(struct upload_queue *queue, uint64_t stop_ns)
{
    return flush_memory(queue, stop_ns) && flush_one_file(queue, stop_ns);
}

static void report_check(struct upload_queue *queue, const struct sender_outcome *outcome)
{
    struct uploader *up = queue->up;
    pthread_mutex_lock(&up->lock);
    if (outcome->verdict != VERDICT_TAKEN && !up->abandoned && up->stop_ns == 0) {
        log_once(up->log, LOG_WARNING, "%s is not reachable at present: %s; windows are kept",
                 queue->row->name, outcome->err.text);
    }
    pthread_mutex_unlock(&up->lock);
}

/* While there is nothing to send yet: what is wrong is better known now than after the first
 * window. Nothing is sent for what is wrong here; the service is asked at its moment. */
static void check_files(struct upload_queue *queue)
{
    struct sender_outcome outcome;
    sender_check_files(queue->sender, &outcome);
    report_check(queue, &outcome);
}

static void check_service(struct upload_queue *queue)
{
    struct sender_outcome outcome;
    queue->check_ns = 0;
    sender_check(queue->sender, clock_mono_ns() + CHECK_MS * NS_PER_MS, &outcome);
    report_check(queue, &outcome);
}

static void wait_until(struct upload_queue *queue, uint64_t moment_ns)
{
    uint64_t now_ns = clock_mono_ns();
    (void)waker_wait(queue->waker, -1, moment_ns > now_ns ? moment_ns - now_ns : 0);
}

static void wait_turn(struct upload_queue *queue)
{
    pthread_mutex_lock(&queue->up->lock);
    uint64_t moment_ns = schedule_wake_ns(&queue->schedule, clock_mono_ns());
    pthread_mutex_unlock(&queue->up->lock);
    wait_until(queue, moment_ns);
}

static void idle(struct upload_queue *queue)
{
    uint64_t now_ns = clock_mono_ns();
    if (schedule_again(&queue->schedule)) {
        return;
    }
    if (queue->check_ns != 0 && queue->check_ns <= now_ns) {
        check_service(queue);
    } else {
        wait_until(queue, queue->check_ns != 0 ? queue->check_ns : now_ns + IDLE_MS * NS_PER_MS);
    }
}

/* False: nobody is there any more. */
static bool take_turn(struct upload_queue *queue)
{
    enum verdict verdict;
    enum retry_next next =
        clock_mono_ns() < queue->schedule.retry.next_ns ? RETRY_WAIT : take_next(queue);
    if (next == RETRY_WAIT) {
        wait_turn(queue);
    } else if (next == RETRY_NOTHING) {
        idle(queue);
    } else if (queue->has_current) {
        return send_current(queue, next, UINT64_MAX, &verdict);
    }
    return true;
}

void *queue_main(void *context)
{
    struct upload_queue *queue = context;
    struct uploader *up = queue->up;
    uint64_t stop_ns;
    if (up->confined) {
        confine_sender(up->has_store ? up->settings->upload.spool_dir : NULL);
    }
    check_files(queue);
    while ((stop_ns = stop_ns_of(queue)) == 0) {
        if (!take_turn(queue)) {
            return NULL;
        }
    }
    if (!flush(queue, stop_ns)) {
        return NULL;
    }
    pthread_mutex_lock(&up->lock);
    queue->ended = true;
    waker_set(up->ended);
    pthread_mutex_unlock(&up->lock);
    return NULL;
}
