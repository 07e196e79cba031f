/*
 * The end and the beginning of a window: its facts, the reason for what is missing in it, and the hand-over to the
 * publisher.
 */
#include "capture/window/windows.h"
#include "base/time.h"
#include "encode/encode.h"
#include "os/clock.h"
#include "os/proc.h"

#include <stdio.h>
#include <stdlib.h>

struct windows {
    struct follow *follow;
    struct shared *shared;
    struct catching *catching;
    struct publisher *publisher;
    struct windows_sums sums;
};

struct windows *windows_new(struct follow *f, struct catching *catching, struct publisher *publisher)
{
    struct windows *w = calloc(1, sizeof *w);
    if (w != NULL) {
        *w = (struct windows){
            .follow = f, .shared = f->shared, .catching = catching, .publisher = publisher};
    }
    return w;
}

const struct windows_sums *windows_sums(const struct windows *w)
{
    return &w->sums;
}

/* Closing a window reads some figures of each process in /proc, 10 us each: short windows are made longer than that a
 * hundredfold and more. */
static uint64_t length_of(const struct windows *w)
{
    enum { US_FOR_EACH = 3000 };
    const struct settings *settings = w->shared->settings;
    uint64_t least_ns = settings->live.on ? w->follow->targets.all.len * US_FOR_EACH * NS_PER_US : 0;
    return settings->sampling.window_ns > least_ns ? settings->sampling.window_ns : least_ns;
}

void windows_begin(struct windows *w)
{
    struct window *window = &w->shared->window;
    window->length_ns = length_of(w);
    window->start_ns = clock_mono_ns();
    window->start_wall_ns = clock_wall_ns();
    window->lost_records = window->broken_calls = 0;
    if ((w->shared->settings->output.formats & encoders_of_moments()) != 0) {
        profile_keep_moments(window->profile, window->start_ns);
    }
}

uint64_t windows_due_ns(const struct window *window, uint64_t window_ns, bool publisher_is_ready)
{
    return publisher_is_ready ? window->start_ns + window_ns : 0;
}

/* ---- facts ---- */

void windows_mode(const struct windows *w, char out[static WINDOWS_MODE_MAX])
{
    const struct shared *s = w->shared;
    if (!s->perf_on && s->stops) {
        snprintf(out, WINDOWS_MODE_MAX, "no perf: stacks by brief stops, kernel time within its callers");
        return;
    }
    if (!s->perf_on) {
        snprintf(out, WINDOWS_MODE_MAX, "no perf: %s",
                 catching_readers(w->catching) != NULL
                     ? "interpreters' stacks, all other CPU time from /proc"
                     : "CPU time from /proc, no stacks");
        return;
    }
    static const char *const stacks_by[] = {
        [PERF_SMART] = "",
        [PERF_DWARF] = ", unwind tables only",
        [PERF_FP] = ", frame pointers only",
        [PERF_DISABLED] = "",
    };
    snprintf(out, WINDOWS_MODE_MAX, "perf, %s%s",
             s->access.kernel ? "user and kernel" : "user only, kernel time counted",
             stacks_by[s->settings->sampling.perf_mode]);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static uint32_t service_of(struct windows *w)
{
    struct shared *s = w->shared;
    const struct settings *settings = s->settings;
    if (settings->service_name != NULL) {
        return profile_cstring(s->window.profile, settings->service_name);
    }
    if (settings->scope.mode == TARGET_COMMAND) {
        return profile_cstring(s->window.profile, base_name(settings->scope.command[0]));
    }
    struct target *only =
        settings->scope.pid_count == 1 ? targets_find(&w->follow->targets, (uint32_t)settings->scope.pids[0]) : NULL;
    return profile_cstring(s->window.profile, only != NULL ? only->name : "all processes");
}

/* Why the window lacks stacks; what was not said before is said now. */
static uint32_t reason_of(struct windows *w)
{
    struct shared *s = w->shared;
    struct buf reason;
    struct profile_totals sum = profile_sum(s->window.profile);
    buf_init(&reason, UNSEEN_COUNT * ERR_TEXT_MAX);
    w->sums.windows++;
    w->sums.cpu_ns += sum.cpu_ns;
    w->sums.unseen_ns += sum.leaf_ns[FRAME_ACCOUNT];
    unseen_note(&s->unseen, UNSEEN_PERF, s->access.why.text);
    if (s->window.lost_records > 0) {
        unseen_note(&s->unseen, UNSEEN_RECORDS,
                    "the rings were full, and records were lost; lower -f, or give pillion a larger CPU "
                    "weight");
    }
    const char *news = unseen_describe(&s->unseen, s->window.profile, &sum, &reason);
    bool shows = s->settings->live.on; /* the reason beside the figures, as long as it holds */
    if (news != NULL && !shows && sum.leaf_ns[FRAME_ACCOUNT] < sum.cpu_ns) { /* an empty window is told as such */
        log_once_for(&s->log, LOG_WARNING, news, "%.0f %% of the CPU time has no stack: %s",
                     100.0 * (double)sum.leaf_ns[FRAME_ACCOUNT] / (double)sum.cpu_ns, buf_cstr(&reason));
    }
    uint32_t text = profile_string(s->window.profile, buf_slice(&reason));
    buf_release(&reason);
    unseen_end_window(&s->unseen, clock_mono_ns() - s->window.start_ns);
    return text;
}

static void fill_meta(struct windows *w)
{
    struct shared *s = w->shared;
    struct profile_meta *meta = &s->window.profile->meta;
    char mode[WINDOWS_MODE_MAX], host[256];
    windows_mode(w, mode);
    proc_host_name(host, sizeof host);
    meta->start_wall_ns = s->window.start_wall_ns;
    /* the length is monotonic: a wall clock that was set meanwhile must not stretch the window */
    meta->end_wall_ns = s->window.start_wall_ns + (clock_mono_ns() - s->window.start_ns);
    meta->frequency_hz = s->frequency_hz;
    meta->period_ns = NS_PER_S / s->frequency_hz;
    meta->service = service_of(w);
    meta->host = profile_cstring(s->window.profile, host);
    meta->mode = profile_cstring(s->window.profile, mode);
    meta->reason = reason_of(w);
    meta->window = w->sums.windows;
    meta->continuous = s->settings->sampling.continuous;
    meta->unsampled = unsampled_count(w->follow->unsampled);
}

/* ---- the rows ---- */

static void end_facts(void *state)
{
    struct windows *w = state;
    struct profile *profile = w->shared->window.profile;
    const struct profile_totals sum = profile_sum(profile);
    w->sums.any_cpu = w->sums.any_cpu || unseen_is_much(&sum); /* who hardly ran has no stack with perf either */
    (void)profile_need(profile, true);
    fill_meta(w);
}

static void submit(void *state)
{
    struct windows *w = state;
    w->shared->window.profile = publisher_submit(w->publisher, w->shared->window.profile);
    targets_end_window(&w->follow->targets);
    windows_begin(w);
}

static uint64_t due_ns(const void *state)
{
    const struct windows *w = state;
    return windows_due_ns(&w->shared->window, w->shared->window.length_ns, publisher_ready(w->publisher));
}

const struct concern window_facts_concern = {
    .name = "window facts",
    .window_end = end_facts,
};

const struct concern window_submit_concern = {
    .name = "window",
    .window_end = submit,
    .due_ns = due_ns,
    .release = free,
};
