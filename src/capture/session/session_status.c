#include "capture/session/session_private.h"
#include "capture/status.h"
#include "os/console.h"

enum { COLUMNS_LEAST = 20, COLUMNS_MOST = 100, TEXT_MAX = 128 };

/* A command writes to the terminal itself. Of a window that is about to end the summary tells. */
void session_show_status(struct session *s, uint64_t now_ns)
{
    if (!s->log.live || s->command_pid != 0 || now_ns < s->next_status_ns ||
        now_ns >= s->window_start_ns + s->settings->sampling.window_ns || s->finishing) {
        return;
    }
    unsigned wide = console_live_columns(s->log.fd);
    s->next_status_ns = now_ns + status_pause_ns(s->profile->samples.len);
    if (wide < COLUMNS_LEAST) {
        return;
    }
    struct buf line;
    struct profile_totals sum = profile_sum(s->profile);
    size_t columns = wide < COLUMNS_MOST ? wide : COLUMNS_MOST;
    buf_init(&line, TEXT_MAX);
    status_line(&sum, now_ns - s->window_start_ns, columns, &line);
    log_status(&s->log, buf_slice(&line), columns);
    buf_release(&line);
}
