#include "capture/window/heartbeat.h"
#include "os/file.h"

void heartbeat_beat(struct log *log, const char *path)
{
    struct err err;
    if (path != NULL && !file_touch(path, &err)) {
        log_once(log, LOG_WARNING, "--heartbeat-file: %s", err.text);
    }
}
