/* margin: how far a share of few samples may be from the truth. */
#ifndef CAPTURE_WINDOW_MARGIN_H
#define CAPTURE_WINDOW_MARGIN_H

#include "base/str.h"
#include "profile/profile.h"

#include <stdint.h>

enum { MARGIN_SAMPLES_MOST = 100 }; /* with more of them nobody is led astray */

/* Of a share (0 … 1) that `samples` samples show, the half width of the interval that holds the true one in 95 of 100
 * cases, in per cent: 1.96 sqrt(p (1 - p) / n). 0: there are enough samples, or none. */
double margin_percent(double share, uint64_t samples);

/* Of few samples: a share of ten is told with its ± (`format`), or it would pass for a figure. */
void margin_add(struct buf *out, const char *format, uint64_t ns, const struct profile_totals *sum);

#endif
