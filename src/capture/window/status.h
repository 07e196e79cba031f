/*
 * status: the line that tells on a terminal how a run goes, drawn over itself (log_status).
 *
 *       12 s  1,904 samples  19.2 s CPU  window 3  java 90 %  native 8 %  not seen 2 %
 *
 * Only where a person looks and nobody else writes: on a terminal whose width is known and that is ours at
 * the time, while running processes are looked at; a command that was started writes there itself.
 */
#ifndef CAPTURE_STATUS_H
#define CAPTURE_STATUS_H

#include "base/str.h"
#include "profile/profile.h"

/* What was seen so far, after `elapsed_ns` of the window, in less than `columns`: what does not fit is left
 * out, the last parts first. `window` is its number; 0: there is one alone. ASCII; nothing in it is foreign. */
void status_text(const struct profile_totals *sum, uint64_t elapsed_ns, uint64_t window, size_t columns,
                 struct buf *out);

/* How long the next one waits: a second, more where counting takes longer. */
uint64_t status_pause_ns(size_t stacks);

#endif
