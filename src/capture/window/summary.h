/*
 * summary: what people are told of a window: what was seen, what was not, what it cost.
 *
 * On a terminal a block of lines; otherwise one line of key=value for a container log. The same
 * numbers go out as fields for logfmt and json. Shares are of the CPU time of the window, accounting
 * included, so they sum to 100 %.
 */
#ifndef CAPTURE_SUMMARY_H
#define CAPTURE_SUMMARY_H

#include "capture/log.h"
#include "capture/window/outputs.h"
#include "profile/profile.h"

struct summary_share {
    const char *name; /* of a language: "java" */
    const char *key;  /* "java_percent" */
    uint64_t ns;
};

/* Shares of what was seen, by the kind of code, largest first: their number. */
size_t summary_shares(const struct profile_totals *sum,
                      struct summary_share out[static FRAME_KIND_COUNT]);

/* `problem` (may be null) says why files are missing; `heaviest`: the same profile, where the
 * heaviest functions and paths are to be told as well (run_end.h), or null. */
void summary_window(struct log *log, const struct profile *p, const struct outputs *outputs,
                    const struct outputs_written *written, const char *problem, struct profile *heaviest);

#endif
