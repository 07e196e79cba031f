#include "capture/window/unread.h"

#include <stdio.h>

enum { TOLD_MAX = 3, SHARE = 20 };

static bool is_unread(const struct process *process, const struct profile_totals *sum)
{
    return process->remedy != 0 && process->cpu_ns > sum->cpu_ns / SHARE;
}

bool unread_any(const struct profile *p, const struct profile_totals *sum)
{
    bool any = false;
    for (size_t i = 1; i < p->processes.len && !any; i++) {
        any = is_unread(&p->processes.at[i], sum);
    }
    return any;
}

void unread_add(struct buf *out, const struct profile *p, const struct profile_totals *sum, const char *separator)
{
    unsigned told = 0;
    for (size_t i = 1; i < p->processes.len && told < TOLD_MAX; i++) {
        const struct process *process = &p->processes.at[i];
        if (!is_unread(process, sum)) {
            continue;
        }
        bool native = process->capture_mode == CAPTURE_PERF || process->capture_mode == CAPTURE_PERF_USER;
        struct str name = profile_text(p, process->name), why = profile_text(p, process->remedy);
        buf_printf(out, "%s%s: %.*s (pid %u): %.*s", separator, native ? "native names only" : "no functions",
                   (int)name.len, name.ptr, process->pid, (int)why.len, why.ptr);
        told++;
    }
}

void unread_say(struct log *log, const struct profile *p, const struct profile_totals *sum)
{
    for (size_t i = 1; i < p->processes.len; i++) {
        const struct process *process = &p->processes.at[i];
        if (is_unread(process, sum)) {
            struct str name = profile_text(p, process->name), why = profile_text(p, process->remedy);
            char key[ERR_TEXT_MAX];
            snprintf(key, sizeof key, "%.*s", (int)why.len, why.ptr);
            log_once_for(log, LOG_INFO, key, "%.*s (pid %u): %s", (int)name.len, name.ptr, process->pid, key);
        }
    }
}
