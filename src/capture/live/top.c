/*
 * The live view: windows come in on the publisher's thread, the screen is drawn and keys are read on a thread of its
 * own, and the sampler ends both. One lock is for the model and for where the person is in it; text is made with it
 * held, and written without it, for a terminal may wait.
 */
#include "capture/live/top.h"
#include "base/time.h"
#include "capture/live/top_draw.h"
#include "os/clock.h"
#include "os/confine.h"
#include "os/console.h"
#include "os/file.h"
#include "os/launch.h"
#include "os/proc.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INPUT_FD = 0,
    OUTPUT_FD = 1,
    SCREEN_INTERVAL_MS = 500,
    LINES_INTERVAL_MS = 2000,
    SPAN_S = 5,          /* that "the last seconds" are on a screen */
    REDRAW_MS = 1000,    /* at least: the size may have changed */
    LINES_MOST = 200,    /* of a screen */
    WHAT_MAX = 200,
    MESSAGE_MAX = 400,
    TABLE_ROWS = 20,
    TABLE_COLUMNS = 240,
    END_ROWS = 10,       /* of the table that is left when the screen has gone */
};

struct top {
    struct shared *shared;
    pthread_t thread;
    bool runs, stop;
    int waker;
    pthread_mutex_t lock;
    struct top_model model;
    struct top_state state;
    struct top_list list;
    char what[WHAT_MAX], mode[160], message[MESSAGE_MAX], reason[MESSAGE_MAX];
    bool screen, taken; /* there is one; the terminal is ours at present */
    int keys;
    struct termios before;
    int log_fd;         /* where the log wrote before */
    unsigned width, height;
    uint64_t drawn[LINES_MOST]; /* hashes of the lines that are on the screen */
    bool begun, unread; /* a table was written; nobody reads them any more */
};

static bool has_screen(const struct settings *settings)
{
    return !settings->live.once && !settings->live.json && console_is_live(OUTPUT_FD);
}

uint64_t top_interval_ns(const struct settings *settings)
{
    uint64_t usual_ns = (has_screen(settings) ? SCREEN_INTERVAL_MS : LINES_INTERVAL_MS) * NS_PER_MS;
    return settings->live.interval_ns != 0 ? settings->live.interval_ns : usual_ns;
}

/* ---- what is said ---- */

static void describe_target(struct top *t)
{
    const struct scope_settings *scope = &t->shared->settings->scope;
    size_t used = 0;
    if (scope->mode == TARGET_COMMAND) {
        struct str name = str_base_name(str_of(scope->command[0]));
        snprintf(t->what, sizeof t->what, "%.*s (pid %u)", (int)name.len, name.ptr, t->shared->command_pid);
        return;
    }
    snprintf(t->what, sizeof t->what, "all processes");
    for (size_t i = 0; scope->mode == TARGET_PIDS && i < scope->pid_count && used < sizeof t->what; i++) {
        used += (size_t)snprintf(t->what + used, sizeof t->what - used, "%s%d", i == 0 ? "pid " : ", ", scope->pids[i]);
    }
}

static struct top_title title_of(const struct top *t)
{
    const char *hint = t->screen && t->shared->command_pid != 0 ? "output: /dev/null" : "";
    return (struct top_title){t->what, t->mode, t->message, t->reason, hint, t->model.sum.length_ns};
}

static void hear(void *context, const struct log_heard *heard)
{
    struct top *t = context;
    if (heard->level <= LOG_WARNING) {
        pthread_mutex_lock(&t->lock);
        snprintf(t->message, sizeof t->message, "%.*s", (int)heard->text.len, heard->text.ptr);
        pthread_mutex_unlock(&t->lock);
    }
}

/* ---- the terminal ---- */

static bool has_color(const struct settings *settings)
{
    const char *no = getenv("NO_COLOR");
    return settings->log.color == COLOR_ALWAYS || (settings->log.color == COLOR_AUTO && (no == NULL || no[0] == '\0'));
}

static void put(const char *text)
{
    console_write(OUTPUT_FD, text, strlen(text));
}

static void take_terminal(struct top *t)
{
    struct log *log = &t->shared->log;
    t->keys = console_is_terminal(INPUT_FD) ? INPUT_FD : OUTPUT_FD;
    t->taken = console_take_keys(t->keys, &t->before);
    if (!t->taken) {
        t->keys = -1;
        return;
    }
    t->log_fd = log->fd;
    if (log->terminal) {
        log->fd = -1;
    }
    log_hear(log, (struct log_listener){hear, t});
    put("\x1b[?1049h\x1b[?25l\x1b[2J");
}

static void give_back(struct top *t)
{
    if (t->taken) {
        t->taken = false;
        put("\x1b[0m\x1b[?25h\x1b[?1049l");
        console_give_back(t->keys, &t->before);
        log_hear(&t->shared->log, (struct log_listener){NULL, NULL});
        t->shared->log.fd = t->log_fd;
    }
}

/* ---- the screen ---- */

/* Only lines that have changed. */
static void add_changes(struct top *t, struct str text, struct buf *out)
{
    for (unsigned row = 0; text.len > 0 && row < LINES_MOST; row++) {
        struct str line = str_cut(&text, '\n');
        uint64_t hash = str_hash(line) | 1;
        if (hash != t->drawn[row]) {
            buf_printf(out, "\x1b[%u;1H\x1b[K", row + 1);
            buf_str(out, line);
            t->drawn[row] = hash;
        }
    }
}

static void draw(struct top *t)
{
    struct top_size size = {.color = has_color(t->shared->settings)};
    struct buf text, out;
    buf_init(&text, TOP_SCREEN_MAX);
    buf_init(&out, 2 * TOP_SCREEN_MAX);
    if (!console_size(OUTPUT_FD, &size.width, &size.height)) {
        size.width = 80;
        size.height = 24;
    }
    size.height = size.height < LINES_MOST ? size.height : LINES_MOST;
    pthread_mutex_lock(&t->lock);
    const struct top_title title = title_of(t);
    top_draw(&t->model, &t->state, &title, &size, &t->list, &text);
    bool anew = t->state.redraw || size.width != t->width || size.height != t->height;
    t->state.redraw = false;
    pthread_mutex_unlock(&t->lock);
    if (anew) {
        t->width = size.width;
        t->height = size.height;
        memset(t->drawn, 0, sizeof t->drawn);
        buf_text(&out, "\x1b[2J");
    }
    add_changes(t, buf_slice(&text), &out);
    if (out.len > 0 && !out.failed) {
        console_write(OUTPUT_FD, out.ptr, out.len);
    }
    buf_release(&text);
    buf_release(&out);
}

static void press(struct top *t, unsigned key)
{
    bool paused = t->state.paused;
    if (top_state_key(&t->state, key)) {
        t->message[0] = '\0';
    }
    top_only(&t->model, t->state.only);
    if (paused && !t->state.paused) {
        top_refresh(&t->model);
    }
}

/* False: it is over. */
static bool read_keys(struct top *t, struct top_input *input)
{
    char bytes[64];
    size_t got = console_read(t->keys, bytes, sizeof bytes);
    pthread_mutex_lock(&t->lock);
    t->state.over |= got == 0;
    for (size_t i = 0; i < got && !t->state.over; i++) {
        press(t, top_input_byte(input, bytes[i]));
    }
    press(t, top_input_end(input));
    bool over = t->state.over;
    pthread_mutex_unlock(&t->lock);
    return !over;
}

static void *show(void *context)
{
    struct top *t = context;
    struct top_input input = {0};
    bool goes_on = true;
    if (t->shared->confined) {
        confine_reader();
    }
    while (goes_on && !__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
        draw(t);
        if (waker_wait(t->waker, t->keys, REDRAW_MS * NS_PER_MS)) {
            goes_on = read_keys(t, &input);
        }
    }
    if (!goes_on) {
        launch_end(proc_own_pid());
    }
    return NULL;
}

/* ---- windows ---- */

/* False: nobody reads any more. */
static bool write_plain(struct top *t, bool since)
{
    struct buf text;
    const struct top_title title = title_of(t);
    struct top_room room = {TABLE_ROWS, TABLE_COLUMNS};
    if (t->screen && console_columns(OUTPUT_FD) > 0) {
        room = (struct top_room){END_ROWS, console_columns(OUTPUT_FD)};
    }
    buf_init(&text, TOP_SCREEN_MAX);
    if (t->shared->settings->live.json) {
        top_json(&t->model, &title, &t->list, &text);
    } else {
        buf_text(&text, t->begun ? "\n" : "");
        top_lines(&t->model, &title, &room, since, &t->list, &text);
    }
    t->begun = true;
    bool good = file_write(OUTPUT_FD, buf_slice(&text));
    buf_release(&text);
    return good;
}

static void take(void *context, const struct profile *p)
{
    struct top *t = context;
    pthread_mutex_lock(&t->lock);
    struct str mode = profile_text(p, p->meta.mode), reason = profile_text(p, p->meta.reason);
    snprintf(t->mode, sizeof t->mode, "%.*s", (int)mode.len, mode.ptr);
    snprintf(t->reason, sizeof t->reason, "%.*s", (int)reason.len, reason.ptr);
    top_add(&t->model, p);
    if (!t->state.paused) {
        top_refresh(&t->model);
    }
    bool nothing = t->begun && profile_sum(p).cpu_ns == 0 && t->shared->finishing;
    if (!t->screen && !nothing && !t->unread && !write_plain(t, t->shared->settings->live.once)) {
        t->unread = true; /* once: a second TERM ends at once */
        launch_end(proc_own_pid());
    }
    pthread_mutex_unlock(&t->lock);
    waker_set(t->waker);
}

static void stop_screen(struct top *t)
{
    if (t->runs) {
        t->runs = false;
        __atomic_store_n(&t->stop, true, __ATOMIC_RELAXED);
        waker_set(t->waker);
        pthread_join(t->thread, NULL);
    }
    give_back(t);
}

/* On the sampler's thread. The command was there to be looked at. */
static bool end(void *context)
{
    struct top *t = context;
    const struct settings *settings = t->shared->settings;
    stop_screen(t);
    if (t->screen) {
        top_only(&t->model, 0);
        top_refresh(&t->model);
        (void)write_plain(t, true);
    }
    if (t->shared->command_pid != 0) {
        launch_end(t->shared->command_pid);
    }
    return t->state.writes || settings->output.dir != NULL;
}

struct whole_run_viewer top_viewer(struct top *top)
{
    return (struct whole_run_viewer){take, end, top};
}

/* ---- the row ---- */

struct top *top_new(struct shared *shared)
{
    const struct settings *settings = shared->settings;
    struct top *t = calloc(1, sizeof *t);
    bool screen = has_screen(settings);
    if (t == NULL || !top_init(&t->model, screen ? SPAN_S * NS_PER_S : 1)) {
        free(t);
        return NULL;
    }
    t->shared = shared;
    t->screen = screen;
    t->waker = waker_open();
    t->state.asks_for_files = settings->output.dir == NULL;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void setup(void *state)
{
    struct top *t = state;
    describe_target(t);
    if (t->screen) {
        take_terminal(t);
        t->runs = pthread_create(&t->thread, NULL, show, t) == 0;
    }
}

/* A second TERM ends the process at once: the terminal is given back before. */
static void end_window(void *state)
{
    struct top *t = state;
    if (t->shared->finishing) {
        stop_screen(t);
    }
}

static void release(void *state)
{
    struct top *t = state;
    stop_screen(t);
    top_release(&t->model);
    vec_release(&t->list.at);
    waker_close(t->waker);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

const struct concern top_concern = {
    .name = "top",
    .setup = setup,
    .window_end = end_window,
    .release = release,
};
