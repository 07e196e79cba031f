#include "capture/window/margin.h"

enum { STEPS = 24 }; /* of Newton's method, from above: enough for values of 0.000001 */

static const double deviations = 1.96;

/* Of a value below 1. The C library's would be another library. */
static double root(double value)
{
    double guess = 1;
    for (unsigned i = 0; value > 0 && i < STEPS; i++) {
        guess = (guess + value / guess) / 2;
    }
    return value > 0 ? guess : 0;
}

double margin_percent(double share, uint64_t samples)
{
    if (samples == 0 || samples >= MARGIN_SAMPLES_MOST || share <= 0 || share >= 1) {
        return 0;
    }
    return 100 * deviations * root(share * (1 - share) / (double)samples);
}

void margin_add(struct buf *out, const char *format, uint64_t ns, const struct profile_totals *sum)
{
    double share = sum->cpu_ns == 0 ? 0 : (double)ns / (double)sum->cpu_ns;
    double margin = margin_percent(share, sum->count);
    if (margin >= 1) {
        buf_printf(out, format, margin);
    }
}
