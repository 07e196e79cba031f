#include "base/time.h"
#include "capture/upload/uploader_private.h"
#include "os/clock.h"
#include "os/thread.h"

#include <stdio.h>

enum { IDLE_MS = 60000, CHECK_MS = 5000, FLUSH_TRIES = 3, FLUSH_PAUSE_MS = 300 };

/* ---- which one is next ---- */

/* With the lock held; `filed` tells of the oldest file, `file` how old it is. */
static struct turn_pick pick_next(const struct lane *lane, bool filed, struct window_key file)
{
    struct window_key queue[UPLOADER_QUEUE];
    for (size_t i = 0; i < lane->queued; i++) {
        queue[i] = window_key_of(&lane->queue[i].delivery);
    }
    bool enters = lane->has_entering && !window_key_less(file, lane->entering);
    const struct turn_waiting waiting = {queue, lane->queued, filed && !enters, file};
    return turn_next(&lane->turn, &waiting, clock_mono_ns());
}

static bool load_next(struct lane *lane, const char *name)
{
    struct parcel read = {0};
    if (!spool_load(lane, name, &read)) {
        return false;
    }
    pthread_mutex_lock(&lane->up->lock);
    lane->current = read;
    lane->has_current = true;
    pthread_mutex_unlock(&lane->up->lock);
    return true;
}

/* What to do; RETRY_LIVE and RETRY_BACKLOG: send the current one, which may have gone meanwhile. */
static enum retry_next take_next(struct lane *lane)
{
    struct uploader *up = lane->up;
    char name[SPOOL_NAME_MAX];
    struct window_key file = {0};
    bool filed = spool_oldest(lane, lane->turn.after, &file, name);
    pthread_mutex_lock(&up->lock);
    struct turn_pick pick = pick_next(lane, filed, file);
    bool takes = pick.next == RETRY_LIVE || pick.next == RETRY_BACKLOG;
    if (takes && !pick.in_file) {
        lane_take(lane, pick.at);
    }
    pthread_mutex_unlock(&up->lock);
    if (takes && pick.in_file) {
        (void)load_next(lane, name);
    }
    return pick.next;
}

/* ---- what became of it ---- */

static uint64_t waiting_of(const struct lane *lane)
{
    uint64_t count = lane->spooled;
    for (size_t i = 0; i < lane->queued; i++) {
        count += !lane->queue[i].in_spool;
    }
    return count;
}

/* With the lock held, as all that says something: whoever stops waiting for this thread says so
 * under it. */
static void tell(struct lane *lane, const struct sender_outcome *outcome, bool recovered,
                 uint64_t now_ns)
{
    struct log *log = lane->up->log;
    const char *name = lane->row->name, *why = outcome->err.text;
    unsigned long long waiting = waiting_of(lane);
    uint64_t next_ns = lane->turn.retry.next_ns;
    double next_s = next_ns > now_ns ? (double)(next_ns - now_ns) / (double)NS_PER_S : 0.0;
    switch (outcome->verdict) {
    case VERDICT_TAKEN:
        if (recovered) {
            log_once(log, LOG_INFO, "upload to %s works again; windows waiting: %llu", name,
                     waiting);
        }
        if (why[0] != '\0') {
            log_once(log, LOG_WARNING, "%s took a window, and says: %s", name, why);
        }
        break;
    case VERDICT_LATER:
        if (lane->up->stop_ns != 0) { /* whether there is another try is said with what was lost */
            log_once(log, LOG_WARNING, "upload to %s failed: %s; windows kept: %llu", name, why, waiting);
            break;
        }
        log_once(log, LOG_WARNING,
                 "upload to %s failed: %s; windows kept: %llu, next try in %.0f s", name, why,
                 waiting, next_s);
        break;
    case VERDICT_CONFIG:
        log_once(log, LOG_WARNING,
                 "upload to %s failed: %s; windows kept: %llu, tried again every 5 minutes, and on "
                 "HUP",
                 name, why, waiting);
        break;
    default:
        log_once(log, LOG_WARNING, "%s does not take a window, which is lost: %s", name, why);
        break;
    }
}

static bool is_over(enum verdict verdict)
{
    return verdict != VERDICT_LATER && verdict != VERDICT_CONFIG;
}

static void count(struct lane *lane, const struct sender_outcome *outcome, bool attempted)
{
    struct uploader_counts *counts = &lane->counts;
    bool taken = outcome->verdict == VERDICT_TAKEN;
    counts->attempts += attempted;
    counts->failures += attempted && !taken;
    counts->sent += taken;
    counts->bytes += taken ? lane->current.bytes.len : 0;
    counts->dropped += !taken && is_over(outcome->verdict);
    snprintf(counts->trouble, sizeof counts->trouble, "%.*s", (int)sizeof counts->trouble - 1,
             taken ? "" : outcome->err.text);
}

/* False: nobody is there any more. */
static bool settle(struct lane *lane, const struct sender_outcome *outcome, bool attempted)
{
    struct uploader *up = lane->up;
    uint64_t now_ns = clock_mono_ns();
    char name[SPOOL_NAME_MAX];
    pthread_mutex_lock(&up->lock);
    if (up->abandoned) {
        pthread_mutex_unlock(&up->lock);
        return false;
    }
    bool recovered = lane->turn.retry.failures > 0;
    if (attempted) { /* else the service has not said anything */
        turn_note(&lane->turn, window_key_of(&lane->current.delivery), outcome->verdict,
                  outcome->retry_after_ns, now_ns);
    }
    count(lane, outcome, attempted);
    struct parcel parcel = lane->current;
    lane->has_current = false;
    lane->current = (struct parcel){0};
    bool drops = is_over(outcome->verdict) && parcel.in_spool;
    memcpy(name, parcel.name, sizeof name);
    if (is_over(outcome->verdict)) {
        parcel_release(up, &parcel);
    } else if (parcel.is_of_file) {
        lane->counts.dropped += !parcel.in_spool; /* the file went while it was sent */
        parcel_release(up, &parcel);
    } else {
        parcel.tried = true;
        lane_enqueue(lane, &parcel);
    }
    tell(lane, outcome, recovered, now_ns);
    pthread_mutex_unlock(&up->lock);
    if (drops) {
        spool_drop(lane, name);
    }
    return true;
}

/* What the platform told may come late, so it is looked at when a window was taken. Nothing is wrong
 * with it, and without tags nothing can be done: no warning. */
static void tell_left_out(struct lane *lane)
{
    struct uploader *up = lane->up;
    struct buf lines;
    buf_init(&lines, SENDER_OMISSIONS_MAX);
    pthread_mutex_lock(&up->lock);
    if (!up->abandoned) {
        sender_omissions(lane->sender, false, &lines);
    }
    for (struct str rest = buf_slice(&lines); rest.len > 0;) {
        struct str line = str_cut(&rest, '\n');
        log_say(up->log, LOG_INFO, "%.*s", (int)line.len, line.ptr);
        lane->has_told = true;
    }
    pthread_mutex_unlock(&up->lock);
    buf_release(&lines);
}

/* ---- the thread ---- */

static bool is_too_old(const struct lane *lane)
{
    const struct delivery *d = &lane->current.delivery;
    return d->end_wall_ns + spool_age_ns(lane->row) < clock_wall_ns();
}

/* False: nobody is there any more. */
static bool send_current(struct lane *lane, enum retry_next picked, uint64_t until_ns,
                         enum verdict *verdict)
{
    uint64_t deadline_ns = clock_mono_ns() + sender_timeout_ns(lane->sender);
    struct sender_outcome outcome = {.verdict = VERDICT_REFUSED};
    turn_try(&lane->turn, window_key_of(&lane->current.delivery), picked);
    bool attempts = !is_too_old(lane);
    if (attempts) {
        sender_send(lane->sender, &lane->current.delivery,
                    until_ns < deadline_ns ? until_ns : deadline_ns, &outcome);
    } else {
        err_set(&outcome.err, ERR_LIMIT, 0, "it is older than the service takes");
    }
    *verdict = outcome.verdict;
    if (outcome.verdict == VERDICT_TAKEN && !lane->has_told) {
        tell_left_out(lane);
    }
    return settle(lane, &outcome, attempts);
}

static uint64_t stop_ns_of(struct lane *lane)
{
    pthread_mutex_lock(&lane->up->lock);
    uint64_t stop_ns = lane->up->stop_ns;
    if (lane->refresh) {
        lane->refresh = false;
        turn_hurry(&lane->turn);
        sender_refresh(lane->sender);
    }
    pthread_mutex_unlock(&lane->up->lock);
    return stop_ns;
}

static bool take_unsaved(struct lane *lane)
{
    pthread_mutex_lock(&lane->up->lock);
    size_t at = lane->queued;
    while (at > 0 && lane->queue[at - 1].in_spool && lane->queue[at - 1].tried) {
        at--;
    }
    if (at > 0) {
        lane_take(lane, at - 1);
    }
    pthread_mutex_unlock(&lane->up->lock);
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
static bool flush_memory(struct lane *lane, uint64_t stop_ns)
{
    unsigned failures = 0;
    while (failures < FLUSH_TRIES && clock_mono_ns() < stop_ns && take_unsaved(lane)) {
        bool is_safe = lane->current.in_spool;
        enum verdict verdict;
        if (!send_current(lane, RETRY_LIVE, stop_ns, &verdict)) {
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
static bool flush_one_file(struct lane *lane, uint64_t stop_ns)
{
    struct window_key key;
    char name[SPOOL_NAME_MAX];
    enum verdict verdict;
    bool is_well = lane->turn.retry.failures == 0 && lane->up->sequence > 0 &&
                   lane->turn.newest.sequence == lane->up->sequence;
    if (!is_well || clock_mono_ns() >= stop_ns ||
        !spool_oldest(lane, (struct window_key){0}, &key, name) || !load_next(lane, name)) {
        return true;
    }
    return send_current(lane, RETRY_BACKLOG, stop_ns, &verdict);
}

static bool flush(struct lane *lane, uint64_t stop_ns)
{
    return flush_memory(lane, stop_ns) && flush_one_file(lane, stop_ns);
}

static void tell_check(struct lane *lane, const struct sender_outcome *outcome)
{
    struct uploader *up = lane->up;
    pthread_mutex_lock(&up->lock);
    if (outcome->verdict != VERDICT_TAKEN && !up->abandoned && up->stop_ns == 0) {
        log_once(up->log, LOG_WARNING, "%s cannot be uploaded to at present: %s; windows are kept",
                 lane->row->name, outcome->err.text);
    }
    pthread_mutex_unlock(&up->lock);
}

/* While there is nothing to send yet: what is wrong is better known now than after the first
 * window. Nothing is sent for what is wrong here; the service is asked at its moment. */
static void check_files(struct lane *lane)
{
    struct sender_outcome outcome;
    sender_check_files(lane->sender, &outcome);
    tell_check(lane, &outcome);
}

static void check_service(struct lane *lane)
{
    struct sender_outcome outcome;
    lane->check_ns = 0;
    sender_check(lane->sender, clock_mono_ns() + CHECK_MS * NS_PER_MS, &outcome);
    tell_check(lane, &outcome);
}

static void wait_until(struct lane *lane, uint64_t moment_ns)
{
    uint64_t now_ns = clock_mono_ns();
    (void)waker_wait(lane->waker, -1, moment_ns > now_ns ? moment_ns - now_ns : 0);
}

static void wait_turn(struct lane *lane)
{
    pthread_mutex_lock(&lane->up->lock);
    uint64_t moment_ns = turn_wake_ns(&lane->turn, clock_mono_ns());
    pthread_mutex_unlock(&lane->up->lock);
    wait_until(lane, moment_ns);
}

static void idle(struct lane *lane)
{
    uint64_t now_ns = clock_mono_ns();
    if (turn_again(&lane->turn)) {
        return;
    }
    if (lane->check_ns != 0 && lane->check_ns <= now_ns) {
        check_service(lane);
    } else {
        wait_until(lane, lane->check_ns != 0 ? lane->check_ns : now_ns + IDLE_MS * NS_PER_MS);
    }
}

/* False: nobody is there any more. */
static bool take_turn(struct lane *lane)
{
    enum verdict verdict;
    enum retry_next next =
        clock_mono_ns() < lane->turn.retry.next_ns ? RETRY_WAIT : take_next(lane);
    if (next == RETRY_WAIT) {
        wait_turn(lane);
    } else if (next == RETRY_NOTHING) {
        idle(lane);
    } else if (lane->has_current) {
        return send_current(lane, next, UINT64_MAX, &verdict);
    }
    return true;
}

void *lane_main(void *context)
{
    struct lane *lane = context;
    struct uploader *up = lane->up;
    uint64_t stop_ns;
    check_files(lane);
    while ((stop_ns = stop_ns_of(lane)) == 0) {
        if (!take_turn(lane)) {
            return NULL;
        }
    }
    if (!flush(lane, stop_ns)) {
        return NULL;
    }
    pthread_mutex_lock(&up->lock);
    lane->ended = true;
    waker_set(up->ended);
    pthread_mutex_unlock(&up->lock);
    return NULL;
}
