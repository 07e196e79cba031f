/*
 * run: one profiling run within the profiler's process.
 *
 * The sampler's loop: wait for rings, drain, order, add to the running profile; close the accounting and
 * hand the profile to the publisher at the end of every window; end when the targets have, when the
 * single window is over, or at TERM and INT (after a last window; a second one ends at once). HUP
 * opens the log again, USR1 writes the window now, USR2 prints the state.
 *
 * Returns the exit status: 0 a profile was made (or nothing ran), 1 none could be.
 */
#ifndef CAPTURE_RUN_RUN_H
#define CAPTURE_RUN_RUN_H

#include "capture/observer.h"
#include "capture/settings.h"
#include "capture/world.h"
#include "capture/live/dump.h"
#include "os/launch.h"

/* All borrowed. */
struct run_input {
    const struct settings *settings;
    const struct world *world;
    const struct observer *observer; /* null: nobody observes */
    struct dump_request *dump;       /* null: it is no dump */
};

/* The profiler of a launched command: arms sampling, lets the command start, follows it. */
int run_command(const struct run_input *input, struct launch_target *target);

/* Profiles settings->pids or every visible process. */
int run_attach(const struct run_input *input);

#endif
