#include "capture/window/status_line.h"
#include "base/time.h"
#include "capture/window/status.h"
#include "os/console.h"

#include <stdlib.h>

enum { COLUMNS_LEAST = 20, COLUMNS_MOST = 100, TEXT_MAX = 128 };

struct status_line {
    struct shared *shared;
    const struct windows *windows;
    uint64_t next_ns;
};

struct status_line *status_line_new(struct shared *shared, const struct windows *windows)
{
    struct status_line *line = calloc(1, sizeof *line);
    if (line != NULL) {
        line->shared = shared;
        line->windows = windows;
    }
    return line;
}

static void setup(void *state)
{
    struct status_line *line = state;
    line->next_ns = line->shared->first_ns + NS_PER_S;
}

/* A command writes to the terminal itself. Of a window that is about to end the summary tells. */
static void show(void *state, uint64_t now_ns)
{
    struct status_line *l = state;
    struct shared *s = l->shared;
    if (!s->log.live || s->command_pid != 0 || now_ns < l->next_ns ||
        now_ns >= s->window.start_ns + s->window.length_ns || s->finishing) {
        return;
    }
    unsigned wide = console_live_columns(s->log.fd);
    l->next_ns = now_ns + status_pause_ns(s->window.profile->samples.len);
    if (wide < COLUMNS_LEAST) {
        return;
    }
    struct buf line;
    struct profile_totals sum = profile_sum(s->window.profile);
    size_t columns = wide < COLUMNS_MOST ? wide : COLUMNS_MOST;
    buf_init(&line, TEXT_MAX);
    uint64_t number = s->settings->sampling.continuous ? windows_sums(l->windows)->windows + 1 : 0;
    status_text(&sum, now_ns - s->window.start_ns, number, columns, &line);
    log_status(&s->log, buf_slice(&line), columns);
    buf_release(&line);
}

const struct concern status_line_concern = {
    .name = "status line",
    .while_suspended = true,
    .setup = setup,
    .round = show,
    .release = free,
};
