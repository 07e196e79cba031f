#include "base/time.h"
#include "capture/session/session_private.h"
#include "os/clock.h"

#include <stdio.h>

enum {
    GRACE_MS = 5000,
    INIT_GRACE_MS = 4500, /* all of the end: PID 1 waits LAUNCH_FLUSH_PID1_MAX_MS, then all is killed */
    LEAST_MS = 500,
};

void session_begin_uploads(struct session *s)
{
    struct err err = {0};
    if (!s->settings->upload.wanted) {
        return;
    }
    s->uploader = uploader_start(s->settings, &s->log, &err);
    if (s->uploader != NULL) {
        uploader_limit(s->uploader, s->memory_bytes);
    }
    publisher_upload(s->publisher, s->uploader, s->profile);
    if (s->uploader == NULL) {
        log_say(&s->log, LOG_WARNING, "%s; windows are written to files instead", err.text);
    }
}

void session_end_uploads(struct session *s)
{
    uint64_t grace_ms = GRACE_MS;
    if (s->uploader == NULL) {
        return;
    }
    if (s->has_init) {
        uint64_t passed_ms = (clock_mono_ns() - s->finish_ns) / NS_PER_MS;
        grace_ms = passed_ms + LEAST_MS < INIT_GRACE_MS ? INIT_GRACE_MS - passed_ms : LEAST_MS;
    }
    (void)uploader_stop(s->uploader, grace_ms * NS_PER_MS);
    s->uploader = NULL;
}

void session_destination(const struct session *s, char *out, size_t out_bytes)
{
    const struct settings *settings = s->settings;
    char names[64] = "";
    if (s->uploader != NULL) {
        uploader_describe(s->uploader, names, sizeof names);
    }
    bool writes = settings->output.formats != 0 || s->uploader == NULL;
    snprintf(out, out_bytes, "%s%s%s", names, writes && names[0] != '\0' ? " and " : "",
             writes ? publisher_dir(s->publisher) : "");
}
