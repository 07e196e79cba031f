/*
 * whole_run: what the windows of a command's run have together, and its files.
 *
 * Each window that was written is merged into one profile, which is half as large as a window's at the most: what does
 * not fit is [lost] there. At the end its files are written, or links where there was one window (outputs.h).
 *
 * Somebody may take the windows instead (struct whole_run_viewer): then none is written or summed up, and the files of
 * the whole run are those of one window, if they are wanted at the end.
 */
#ifndef CAPTURE_WHOLE_RUN_H
#define CAPTURE_WHOLE_RUN_H

#include "capture/log.h"
#include "capture/window/outputs.h"

struct whole_run_viewer {
    /* On the publisher's thread: a window whose frames are named, borrowed. */
    void (*take)(void *context, const struct profile *p);
    /* Once, after the last one: is the whole run to be written? */
    bool (*end)(void *context);
    void *context;
};

struct whole_run {
    struct whole_run_viewer viewer; /* nulls: windows are written */
    bool wanted;
    struct log *log;
    struct profile profile;
    unsigned windows;
    struct outputs_written last;
};

bool whole_run_init(struct whole_run *run, const struct settings *settings, struct log *log, size_t window_max_bytes,
                    struct err *err);
void whole_run_release(struct whole_run *run);

/* Has a viewer taken it? Then nothing else becomes of this window. */
bool whole_run_shows(struct whole_run *run, const struct profile *p);

/* A window and what was written of it. */
void whole_run_add(struct whole_run *run, const struct profile *p, const struct outputs_written *written);

/* False: the files could not all be written, which was said. */
bool whole_run_end(struct whole_run *run, struct outputs *outputs);

#endif
