/* The uploader's outside: it opens the back ends' senders and starts their threads, encodes each
 * window for each of them and hands it over, counts what became of all windows, and ends within the
 * grace period. */
#include "base/time.h"
#include "capture/tags.h"
#include "capture/upload/origin_ask.h"
#include "capture/upload/shipment.h"
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
    for (size_t i = 0; i < up->lane_count; i++) {
        struct lane *lane = &up->lanes[i];
        while (lane->queued > 0) {
            parcel_release(up, &lane->queue[--lane->queued]);
        }
        parcel_release(up, &lane->current);
        sender_free(lane->sender);
        map_release(&lane->left_alone);
        waker_close(lane->waker);
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
static uint64_t seed_of(const struct lane *lane)
{
    const struct origin *origin = &lane->up->origin.facts;
    uint64_t random = 0;
    net_random(NULL, &random, sizeof random);
    return random ^ str_hash(origin->hostname) ^ str_hash(str_of(lane->row->name)) << 1 ^
           (uint64_t)origin->pid << 32 ^ clock_wall_ns();
}

static void begin_turn(struct lane *lane)
{
    const struct settings *settings = lane->up->settings;
    uint64_t now_ns = clock_mono_ns();
    turn_begin(&lane->turn, seed_of(lane), settings->continuous ? settings->window_ns : 0, now_ns);
    bool is_watched = lane->up->log->terminal; /* a fleet has no terminal */
    lane->check_ns = now_ns + (is_watched ? 0 : lane->turn.offset_ns);
}

static bool add_lane(struct uploader *up, const struct backend *row, bool alone, struct err *err)
{
    struct lane *lane = &up->lanes[up->lane_count];
    lane->up = up;
    lane->row = row;
    lane->waker = -1;
    lane->sender = sender_new(up->settings, row, alone, &up->origin, up->cut, err);
    if (lane->sender == NULL) {
        return false;
    }
    sender_take_turns(lane->sender, &up->making);
    up->lane_count++;
    begin_turn(lane);
    lane->waker = waker_open();
    return lane->waker >= 0 || err_set(err, ERR_LIMIT, 0, "no descriptor for the uploader");
}

static void say_lines(const struct uploader *up, const struct buf *lines)
{
    for (struct str rest = buf_slice(lines); rest.len > 0;) {
        struct str line = str_cut(&rest, '\n');
        log_say(up->log, LOG_WARNING, "%.*s", (int)line.len, line.ptr);
    }
}

/* `left_out`: tags that no back end is sent. */
static void say_warnings(const struct uploader *up, struct buf *left_out)
{
    for (size_t i = 0; i < up->lane_count; i++) {
        const char *warning = sender_warning(up->lanes[i].sender);
        if (warning != NULL) {
            log_say(up->log, LOG_WARNING, "%s: %s", up->lanes[i].row->name, warning);
        }
        sender_omissions(up->lanes[i].sender, true, left_out);
    }
    say_lines(up, left_out);
}

static bool add_lanes(struct uploader *up, struct err *err)
{
    const struct backend *rows[BACKEND_COUNT];
    size_t count;
    if (!sender_choose(&up->settings->upload, rows, &count, err)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_lane(up, rows[i], count == 1, err)) {
            return false;
        }
    }
    return true;
}

static bool has_studio(const struct uploader *up)
{
    for (size_t i = 0; i < up->lane_count; i++) {
        if (strcmp(up->lanes[i].row->name, "studio") == 0) {
            return true;
        }
    }
    return false;
}

/* Without it all else goes on. */
static void add_logs(struct uploader *up)
{
    struct err err = {0};
    if (up->settings->send_logs && has_studio(up)) {
        up->logs = log_sender_new(up->settings, up->lane_count == 1, up->log, &up->origin,
                                  &log_pace_usual, &err);
        if (up->logs == NULL) {
            log_say(up->log, LOG_WARNING, "messages are not sent to the studio: %s", err.text);
        }
    }
}

static void start_logs(struct uploader *up)
{
    struct err err;
    if (up->logs != NULL && !log_sender_start(up->logs, &err)) {
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
    for (size_t i = 0; i < up->lane_count && number == 0; i++) {
        struct lane *lane = &up->lanes[i];
        number = pthread_create(&lane->thread, &attr, lane_main, lane);
        lane->runs = number == 0;
    }
    pthread_attr_destroy(&attr);
    return number == 0 || err_errno(err, number, "cannot start the uploader's thread");
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
    if (!up->settings->metadata && has_studio(up)) {
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

struct uploader *uploader_start(const struct settings *settings, struct log *log, struct err *err)
{
    struct uploader *up = calloc(1, sizeof *up);
    struct buf left_out;
    buf_init(&left_out, BACKEND_COUNT * SENDER_OMISSIONS_MAX);
    if (up == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory for the uploader");
        return NULL;
    }
    secret_leave_no_core();
    pthread_mutex_init(&up->lock, NULL);
    pthread_mutex_init(&up->making, NULL);
    up->settings = settings;
    up->log = log;
    up->cut = waker_open();
    up->ended = waker_open();
    uploader_limit(up, settings->max_memory_bytes);
    origin_gather(&up->origin, settings, sender_variable, NULL);
    tags_add(&up->origin.facts, &settings->upload, &left_out);
    bool ok = add_lanes(up, err);
    if (ok) {
        add_logs(up);
    }
    if (ok && settings->metadata) {
        origin_ask_start(&up->origin, sender_variable, NULL);
    }
    sender_hide_secrets(&settings->upload);
    if (ok) {
        spool_start(up);
        say_unverified(up);
        say_warnings(up, &left_out);
        say_what_is_told(up);
        start_logs(up);
        ok = start_threads(up, err);
    }
    buf_release(&left_out);
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
    for (size_t i = 0; i < up->lane_count && used < out_bytes; i++) {
        int len = snprintf(out + used, out_bytes - used, "%s%s", i > 0 ? ", " : "",
                           up->lanes[i].row->name);
        used += len > 0 ? (size_t)len : 0;
    }
}

unsigned uploader_making_times(const struct uploader *up)
{
    for (size_t i = 0; i < up->lane_count; i++) {
        if (up->lanes[i].row->unpacks) { /* they do one after the other */
            return UNPACKED_TIMES;
        }
    }
    return 0;
}

size_t uploader_most_bytes(const struct uploader *up)
{
    return up->most_bytes;
}

/* ---- hand-over ---- */

static bool encode(struct uploader *up, struct profile *p, const struct backend *row, struct parcel *parcel,
                   struct err *err)
{
    parcel->delivery = (struct delivery){
        .start_wall_ns = p->meta.start_wall_ns,
        .end_wall_ns = p->meta.end_wall_ns,
        .frequency_hz = p->meta.frequency_hz,
        .sequence = up->sequence,
        .cpu_percent = p->meta.usage.any ? p->meta.usage.cpu_percent : -1,
        .memory_percent = p->meta.usage.any ? p->meta.usage.memory_percent : -1,
    };
    pthread_mutex_lock(&up->making);
    bool ok = shipment_encode(p, row, &parcel->bytes, &parcel->delivery, err);
    pthread_mutex_unlock(&up->making);
    return ok;
}

/* Did it end when windows that began with it do, in other instances? */
static bool is_in_time(const struct uploader *up, const struct profile *p)
{
    return p->meta.end_wall_ns - p->meta.start_wall_ns >= up->settings->window_ns;
}

/* Its thread must not take the file before it knows of the copy in memory: it would send both. */
static void hand_to(struct lane *lane, struct parcel *parcel, bool in_time)
{
    struct uploader *up = lane->up;
    pthread_mutex_lock(&up->lock);
    lane->entering = window_key_of(&parcel->delivery);
    lane->has_entering = true;
    (void)uploader_make_room(up, parcel->bytes.len);
    up->used_bytes += parcel->bytes.len;
    pthread_mutex_unlock(&up->lock);
    spool_keep(lane, parcel);
    pthread_mutex_lock(&up->lock);
    if (in_time) {
        turn_hold(&lane->turn, lane->entering, clock_mono_ns());
    } else {
        turn_let_go(&lane->turn);
    }
    lane->has_entering = false;
    lane_enqueue(lane, parcel);
    pthread_mutex_unlock(&up->lock);
    waker_set(lane->waker);
}

/* Requests are made from when it is handed over on: then the profile is soon no longer needed. */
void uploader_submit(struct uploader *up, struct profile *p)
{
    struct parcel parcels[BACKEND_COUNT] = {0};
    up->sequence++;
    for (size_t i = 0; i < up->lane_count; i++) {
        struct err err;
        buf_init(&parcels[i].bytes, up->most_bytes);
        if (!encode(up, p, up->lanes[i].row, &parcels[i], &err)) {
            buf_release(&parcels[i].bytes);
            parcels[i] = (struct parcel){0};
            pthread_mutex_lock(&up->lock);
            up->lanes[i].counts.dropped++;
            pthread_mutex_unlock(&up->lock);
            log_once(up->log, LOG_WARNING, "a window is not uploaded: %s; raise --max-memory", err.text);
        }
    }
    for (size_t i = 0; i < up->lane_count; i++) {
        if (parcels[i].bytes.ptr != NULL) {
            hand_to(&up->lanes[i], &parcels[i], is_in_time(up, p));
        }
    }
}

/* ---- counts ---- */

static uint64_t count_unsaved(const struct lane *lane)
{
    uint64_t count = lane->has_current && !lane->current.in_spool;
    for (size_t i = 0; i < lane->queued; i++) {
        count += !lane->queue[i].in_spool;
    }
    return count;
}

void uploader_counts(struct uploader *up, struct uploader_counts *out)
{
    *out = (struct uploader_counts){0};
    pthread_mutex_lock(&up->lock);
    for (size_t i = 0; i < up->lane_count; i++) {
        const struct lane *lane = &up->lanes[i];
        out->sent += lane->counts.sent;
        out->dropped += lane->counts.dropped;
        out->attempts += lane->counts.attempts;
        out->failures += lane->counts.failures;
        out->bytes += lane->counts.bytes;
        out->spooled += lane->spooled;
        out->waiting += lane->spooled + count_unsaved(lane);
        if (lane->counts.trouble[0] != '\0') {
            memcpy(out->trouble, lane->counts.trouble, sizeof out->trouble);
        }
    }
    pthread_mutex_unlock(&up->lock);
}

uint64_t uploader_cpu_ns(const struct uploader *up)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < up->lane_count; i++) {
        sum += clock_thread_cpu_ns(up->lanes[i].thread);
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
    for (size_t i = 0; i < up->lane_count; i++) {
        pthread_mutex_lock(&up->lock);
        up->lanes[i].refresh = true;
        pthread_mutex_unlock(&up->lock);
        waker_set(up->lanes[i].waker);
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
    for (size_t i = 0; i < up->lane_count; i++) {
        all = all && (!up->lanes[i].runs || up->lanes[i].ended);
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
    for (size_t i = 0; i < up->lane_count; i++) {
        waker_set(up->lanes[i].waker);
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

/* What was said last goes, too, in what is left of the grace period. */
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
    uint64_t lost = say_end(up);
    if (!stop_logs(up, stop_ns) || !ended) {
        abandon(up);
        return lost;
    }
    for (size_t i = 0; i < up->lane_count; i++) {
        if (up->lanes[i].runs) {
            pthread_join(up->lanes[i].thread, NULL);
        }
    }
    release(up);
    return lost;
}
