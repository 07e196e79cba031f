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

#include "capture/settings.h"
#include "os/launch.h"

/* The profiler of a launched command: arms sampling, lets the command start, follows it. */
int run_command(const struct settings *settings, struct launch_target *target);

/* Profiles settings->pids or every visible process. */
int run_attach(const struct settings *settings);

#endif
