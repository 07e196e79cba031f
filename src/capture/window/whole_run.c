#include "capture/window/whole_run.h"
#include "capture/window/heaviest.h"
#include "profile/merge.h"

enum { SHARE = 2 /* of a window's bound */, HEAVIEST_MAX_BYTES = 3 * 1024 };

bool whole_run_init(struct whole_run *run, const struct settings *settings, struct log *log, size_t window_max_bytes,
                    struct err *err)
{
    *run = (struct whole_run){.wanted = settings->output.whole_run, .log = log};
    return profile_init(&run->profile, window_max_bytes / SHARE, err);
}

void whole_run_release(struct whole_run *run)
{
    profile_release(&run->profile);
}

void whole_run_add(struct whole_run *run, const struct profile *p, const struct outputs_written *written)
{
    struct err err;
    if (!run->wanted || written->formats == 0) {
        return;
    }
    run->windows++;
    run->last = *written;
    if (!profile_merge(&run->profile, p, &err)) {
        log_once(run->log, LOG_WARNING, "%s; the files of the whole run are without this window", err.text);
    }
    run->profile.meta.machine = p->meta.machine;
}

bool whole_run_end(struct whole_run *run, struct outputs *outputs)
{
    char name[OUTPUTS_STEM_MAX] = "";
    struct err err;
    if (run->windows == 0) {
        return true;
    }
    if (!outputs_write_run(outputs, run->windows > 1 ? &run->profile : NULL, &run->last, name, &err)) {
        log_say(run->log, LOG_ERROR, "the whole run: %s", err.text);
        return false;
    }
    if (run->windows > 1) {
        struct buf heaviest;
        buf_init(&heaviest, HEAVIEST_MAX_BYTES);
        heaviest_add(run->log, &run->profile, &heaviest);
        log_say(run->log, LOG_INFO, "the whole run, %u windows: %s%s%s%s%s", run->windows, outputs->dir,
                outputs_slash(outputs), name,
                run->profile.dropped > 0 ? "; there was no room for all stacks: the rest is [lost] there" : "",
                buf_cstr(&heaviest));
        buf_release(&heaviest);
    }
    return true;
}
