/* Sends pillion's own messages to Performance Studio: a thread of its own that collects lines,
 * sends them in batches at a pace, and gives up where the studio has no place for them. Losing
 * messages never delays a profile. */
#include "capture/upload/log_sender.h"

#include "base/time.h"
#include "capture/upload/sender.h"
#include "deliver/backlog.h"
#include "deliver/retry.h"
#include "deliver/studio_logs.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/net.h"
#include "os/thread.h"

#include <stdlib.h>

enum {
    STACK_BYTES = 256 << 10,
    FULL_PERCENT = 80,
    RECORD_MAX_BYTES = 16 << 10, /* a fourth of the room: none that is larger is kept anyway */
    SPREAD = 4,                  /* up to this part of a period is skipped, by chance */
    LAST_MS = 300,               /* for the thread to see that its connection was cut */
};

const struct log_pace log_pace_usual = {
    .period_ns = 30 * NS_PER_S,
    .least_ns = 10 * NS_PER_S,
    .patience_ns = 10 * NS_PER_S,
    .room_bytes = 64 << 10,
};

struct log_sender {
    struct settings settings; /* the run's, with the address for logs in the place of the other */
    struct origin_here unnamed; /* the run's, without the host's name, where that is not wanted */
    struct log *log;
    struct log_pace pace;
    bool confined; /* os/confine.h */
    struct sender *sender;      /* the thread's, like all that is marked so */
    struct studio_batch batch;  /* the thread's */
    struct retry retry;         /* the thread's */
    uint64_t last_ns, next_ns;  /* the thread's: monotonic, of attempts */
    pthread_t thread;
    int waker, cut, ended_waker;
    bool runs;

    pthread_mutex_t lock; /* of what follows */
    struct backlog backlog;
    uint64_t said;
    bool refresh, ended;
    bool gone;        /* there is no log service */
    uint64_t stop_ns; /* monotonic: by then it is over; 0: it goes on */

    /* Of `abandoned`, and held while a message is logged: the listener holds the log's lock and
     * takes ours, so ours is not held then. */
    pthread_mutex_t saying;
    bool abandoned; /* nobody waits any more: nothing outside may be touched */
};

/* ---- messages ---- */

static enum studio_severity severity_of(enum log_level level)
{
    static const enum studio_severity severities[] = {SEVERITY_ERROR, SEVERITY_WARNING,
                                                      SEVERITY_INFO, SEVERITY_DEBUG};
    return severities[level];
}

static void keep(struct log_sender *s, const struct log_heard *heard, struct buf *record)
{
    struct fact extra[STUDIO_EXTRA_MAX];
    size_t count = heard->count < STUDIO_EXTRA_MAX ? heard->count : STUDIO_EXTRA_MAX;
    for (size_t i = 0; i < count; i++) {
        extra[i] = (struct fact){str_of(heard->fields[i].key), heard->fields[i].value};
    }
    const struct studio_log log = {
        .severity = severity_of(heard->level),
        .wall_ns = clock_wall_ns(),
        .number = s->said++,
        .event = str_of(heard->event),
        .message = heard->text,
        .extra = extra,
        .extra_count = count,
    };
    studio_log_put(record, &log);
    if (record->failed) {
        s->backlog.lost++;
    } else {
        backlog_add(&s->backlog, buf_slice(record));
    }
}

static void hear(void *context, const struct log_heard *heard)
{
    struct log_sender *s = context;
    struct buf record;
    buf_init(&record, RECORD_MAX_BYTES);
    pthread_mutex_lock(&s->lock);
    if (!s->gone) {
        keep(s, heard, &record);
    }
    bool wakes = !s->gone && backlog_fill(&s->backlog) >= FULL_PERCENT;
    pthread_mutex_unlock(&s->lock);
    buf_release(&record);
    if (wakes) {
        waker_set(s->waker);
    }
}

/* ---- a batch ---- */

static bool make_request(struct backend_context *context, const void *what,
                         struct http_request *out, struct buf *text, struct err *err)
{
    return studio_logs_request(context, what, out, text, err);
}

static void name_batch(struct log_sender *s)
{
    unsigned char random[16];
    net_random(NULL, random, sizeof random);
    studio_batch_id(random, s->batch.id);
}

/* At debug level, which does not come back to us. */
static void say_trouble(struct log_sender *s, const struct sender_outcome *outcome, bool gone)
{
    pthread_mutex_lock(&s->saying);
    if (!s->abandoned && outcome->verdict != VERDICT_TAKEN) {
        log_once(s->log, LOG_DEBUG, "messages are not sent%s: %s", gone ? " any more" : "",
                 outcome->err.text);
    }
    pthread_mutex_unlock(&s->saying);
}

static void settle(struct log_sender *s, const struct sender_outcome *outcome)
{
    bool over = outcome->verdict == VERDICT_TAKEN || outcome->verdict == VERDICT_REFUSED;
    pthread_mutex_lock(&s->lock);
    backlog_end(&s->backlog, outcome->verdict == VERDICT_TAKEN ? BATCH_TAKEN
                             : over                            ? BATCH_REFUSED
                                                               : BATCH_LATER);
    if (outcome->status != 0 && !studio_logs_are_taken(outcome->status)) {
        s->gone = true;
        backlog_release(&s->backlog);
    }
    bool gone = s->gone;
    pthread_mutex_unlock(&s->lock);
    say_trouble(s, outcome, gone);
}

static void send_batch(struct log_sender *s, uint64_t deadline_ns)
{
    const struct sender_question question = {make_request, &s->batch, studio_logs_classify};
    struct sender_outcome outcome;
    struct buf records;
    buf_init(&records, 2 * s->pace.room_bytes);
    pthread_mutex_lock(&s->lock);
    enum backlog_batch batch = s->gone ? BATCH_NONE
                                       : backlog_begin(&s->backlog, &records, &s->batch.lost);
    pthread_mutex_unlock(&s->lock);
    if (batch != BATCH_NONE) {
        if (batch == BATCH_FRESH) {
            name_batch(s);
        }
        s->batch.records = buf_slice(&records);
        sender_ask(s->sender, &question, deadline_ns, &outcome);
        retry_note(&s->retry, outcome.verdict, outcome.retry_after_ns, clock_mono_ns());
        settle(s, &outcome);
    }
    buf_release(&records);
}

/* ---- the thread ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Instances that began together do not stay together. */
static uint64_t spread_ns(struct log_sender *s)
{
    uint64_t random;
    net_random(NULL, &random, sizeof random);
    return s->pace.period_ns - random % (s->pace.period_ns / SPREAD + 1);
}

static void attempt(struct log_sender *s)
{
    s->last_ns = clock_mono_ns();
    send_batch(s, s->last_ns + s->pace.patience_ns);
    s->next_ns = later(clock_mono_ns() + spread_ns(s), s->retry.next_ns);
}

/* The next moment for a batch; what was asked for meanwhile is at once. */
static uint64_t due_ns(struct log_sender *s, uint64_t *stop_ns)
{
    pthread_mutex_lock(&s->lock);
    bool full = !s->gone && backlog_fill(&s->backlog) >= FULL_PERCENT;
    bool refresh = s->refresh;
    s->refresh = false;
    *stop_ns = s->stop_ns;
    pthread_mutex_unlock(&s->lock);
    if (refresh) {
        sender_refresh(s->sender);
        return 0;
    }
    return full ? later(s->last_ns + s->pace.least_ns, s->retry.next_ns) : s->next_ns;
}

static void *log_sender_main(void *context)
{
    struct log_sender *s = context;
    uint64_t stop_ns = 0;
    if (s->confined) {
        confine_sender(NULL);
    }
    s->last_ns = clock_mono_ns();
    s->next_ns = s->last_ns + spread_ns(s);
    for (;;) {
        uint64_t moment_ns = due_ns(s, &stop_ns), now_ns = clock_mono_ns();
        if (stop_ns != 0) {
            break;
        }
        if (moment_ns <= now_ns) {
            attempt(s);
        } else {
            (void)waker_wait(s->waker, -1, moment_ns - now_ns);
        }
    }
    send_batch(s, stop_ns);
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_mutex_unlock(&s->lock);
    waker_set(s->ended_waker);
    return NULL;
}

/* ---- start and end ---- */

static void release(struct log_sender *s)
{
    sender_free(s->sender);
    backlog_release(&s->backlog);
    waker_close(s->waker);
    waker_close(s->cut);
    waker_close(s->ended_waker);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->saying);
    free(s);
}

static void stop_hearing(struct log_sender *s)
{
    log_hear(s->log, (struct log_listener){NULL, NULL});
}

struct log_sender *log_sender_new(const struct settings *settings, bool alone, struct log *log,
                                  const struct origin_here *here, const struct log_pace *pace,
                                  struct err *err)
{
    unsigned char random[16];
    struct log_sender *s = calloc(1, sizeof *s);
    if (s == NULL) {
        err_set(err, ERR_MEMORY, 0, "no memory to send messages");
        return NULL;
    }
    s->settings = *settings;
    if (settings->upload.api_server != NULL) {
        s->settings.upload.server_host = settings->upload.api_server;
    }
    s->unnamed.facts = *origin_now(here);
    s->unnamed.facts.hostname = STR("");
    s->log = log;
    s->pace = *pace;
    s->waker = waker_open();
    s->cut = waker_open();
    s->ended_waker = waker_open();
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->saying, NULL);
    backlog_init(&s->backlog, pace->room_bytes);
    net_random(NULL, random, sizeof random);
    net_random(NULL, &s->retry.random, sizeof s->retry.random);
    studio_run_id(random, s->batch.run_id);
    s->sender = sender_new(&s->settings, backend_by_name(STR("studio")), alone,
                           settings->origin.metadata ? here : &s->unnamed, s->cut, err);
    if (s->sender == NULL || s->waker < 0 || s->cut < 0 || s->ended_waker < 0) {
        release(s);
        return NULL;
    }
    const char *exposure = settings->upload.api_server != NULL ? sender_exposure(s->sender) : NULL;
    if (exposure != NULL) { /* of the other address the uploader tells */
        log_say(log, LOG_WARNING, "--api-server: %s", exposure);
    }
    log_hear(log, (struct log_listener){hear, s});
    return s;
}

bool log_sender_start(struct log_sender *s, bool confined, struct err *err)
{
    pthread_attr_t attr;
    s->confined = confined;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int number = pthread_create(&s->thread, &attr, log_sender_main, s);
    pthread_attr_destroy(&attr);
    s->runs = number == 0;
    return s->runs || err_no_thread(err, number, "the thread that sends messages");
}

void log_sender_refresh(struct log_sender *s)
{
    pthread_mutex_lock(&s->lock);
    s->refresh = true;
    pthread_mutex_unlock(&s->lock);
    waker_set(s->waker);
}

uint64_t log_sender_cpu_ns(const struct log_sender *s)
{
    return s->runs ? clock_thread_cpu_ns(s->thread) : 0;
}

static bool has_ended(struct log_sender *s)
{
    pthread_mutex_lock(&s->lock);
    bool ended = s->ended;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

static bool await_end(struct log_sender *s, uint64_t until_ns)
{
    uint64_t now_ns;
    while (!has_ended(s) && (now_ns = clock_mono_ns()) < until_ns) {
        (void)waker_wait(s->ended_waker, -1, until_ns - now_ns);
    }
    return has_ended(s);
}

bool log_sender_stop(struct log_sender *s, uint64_t grace_ns)
{
    stop_hearing(s);
    if (!s->runs) {
        release(s);
        return true;
    }
    uint64_t stop_ns = clock_mono_ns() + grace_ns;
    pthread_mutex_lock(&s->lock);
    s->stop_ns = stop_ns;
    pthread_mutex_unlock(&s->lock);
    waker_set(s->waker);
    if (!await_end(s, stop_ns)) {
        waker_set(s->cut);
        (void)await_end(s, clock_mono_ns() + LAST_MS * NS_PER_MS);
    }
    if (!has_ended(s)) { /* a name's address is waited for; the process is about to end */
        pthread_mutex_lock(&s->saying);
        s->abandoned = true;
        pthread_mutex_unlock(&s->saying);
        return false;
    }
    pthread_join(s->thread, NULL);
    release(s);
    return true;
}
