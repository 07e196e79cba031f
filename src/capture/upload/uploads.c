#include "capture/upload/uploads.h"
#include "base/time.h"
#include "os/clock.h"

enum {
    GRACE_MS = 5000,
    END_MS = 5500,      /* all of the end, naming and writing the last window included */
    INIT_END_MS = 4500, /* the same: in a container LAUNCH_FLUSH_CONTAINER_MAX_MS, then all is killed */
    LEAST_MS = 500,
};

bool uploads_are_all(const struct settings *settings)
{
    return settings->scope.mode != TARGET_COMMAND && settings->upload.wanted && settings->output.formats == 0;
}

bool uploads_begin(struct uploads *u)
{
    struct shared *s = u->shared;
    struct err err = {0};
    if (!s->settings->upload.wanted) {
        return true;
    }
    u->uploader = uploader_start(s->settings, s->confined, &s->log, &err);
    if (u->uploader == NULL) {
        bool all = uploads_are_all(s->settings);
        log_say(&s->log, all ? LOG_ERROR : LOG_WARNING, "%s%s", err.text,
                all ? "" : "; windows are written to files instead");
        return false;
    }
    uploader_limit(u->uploader, s->memory_bytes);
    return true;
}

uint64_t uploads_grace_ms(uint64_t passed_ms, bool init)
{
    uint64_t end_ms = init ? INIT_END_MS : END_MS;
    uint64_t left_ms = passed_ms + LEAST_MS < end_ms ? end_ms - passed_ms : LEAST_MS;
    return left_ms < GRACE_MS ? left_ms : GRACE_MS;
}

void uploads_end(struct uploads *u, uint64_t finish_ns)
{
    if (u->uploader == NULL) {
        return;
    }
    uint64_t passed_ms = (clock_mono_ns() - finish_ns) / NS_PER_MS;
    (void)uploader_stop(u->uploader, uploads_grace_ms(passed_ms, u->shared->init_fd >= 0) * NS_PER_MS);
    u->uploader = NULL;
}

void uploads_hurry(struct uploads *u)
{
    struct uploader_counts counts;
    if (u->uploader != NULL) {
        uploader_counts(u->uploader, &counts);
        u->failures = counts.failures;
        uploader_refresh(u->uploader);
    }
}

bool uploads_wait(const struct uploads *u)
{
    struct uploader_counts counts = {0};
    if (u->uploader != NULL) {
        uploader_counts(u->uploader, &counts);
    }
    return counts.waiting > 0 && counts.failures == u->failures;
}

uint64_t uploads_cpu_ns(const struct uploads *u)
{
    return u->uploader != NULL ? uploader_cpu_ns(u->uploader) : 0;
}
