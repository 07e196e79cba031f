#include "capture/window/whole_run.h"
#include "capture/window/run_end.h"
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

static void merge(struct whole_run *run, const struct profile *p)
{
    struct err err;
    run->windows++;
    if (!profile_merge(&run->profile, p, &err)) {
        log_once(run->log, LOG_WARNING, "%s; the files of the whole run are without this window", err.text);
    }
    run->profile.meta.machine = p->meta.machine;
}

void whole_run_add(struct whole_run *run, const struct profile *p, const struct outputs_written *written)
{
    if (run->wanted && written->formats != 0) {
        run->last = *written;
        merge(run, p);
    }
}

bool whole_run_shows(struct whole_run *run, const struct profile *p)
{
    if (run->viewer.take != NULL) {
        run->viewer.take(run->viewer.context, p);
        merge(run, p);
    }
    return run->viewer.take != NULL;
}

/* What a viewer was shown: as the files of one window. */
static bool end_view(struct whole_run *run, struct outputs *outputs)
{
    struct err err;
    if (!run->viewer.end(run->viewer.context) || run->windows == 0) {
        return true;
    }
    if (!outputs_write(outputs, &run->profile, &run->last, &err)) {
        log_say(run->log, LOG_ERROR, "%s", err.text);
        return false;
    }
    log_say(run->log, LOG_INFO, "the whole run: %s%s%s.*", outputs->dir, outputs_slash(outputs), run->last.stem);
    return true;
}

bool whole_run_end(struct whole_run *run, struct outputs *outputs)
{
    if (run->viewer.take != NULL) {
        return end_view(run, outputs);
    }
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
        run_end_add(run->log, &run->profile, &heaviest);
        log_say(run->log, LOG_INFO, "the whole run, %u windows: %s%s%s%s%s", run->windows, outputs->dir,
                outputs_slash(outputs), name,
                run->profile.dropped > 0 ? "; there was no room for all stacks: the rest is [lost] there" : "",
                buf_cstr(&heaviest));
        buf_release(&heaviest);
    }
    return true;
}
