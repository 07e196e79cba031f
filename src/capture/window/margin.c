#include "capture/window/margin.h"

#include "base/root.h"

static const double deviations = 1.96;

double margin_percent(double share, uint64_t samples)
{
    if (samples == 0 || samples >= MARGIN_SAMPLES_MOST || share <= 0 || share >= 1) {
        return 0;
    }
    return 100 * deviations * root_of(share * (1 - share) / (double)samples);
}

void margin_add(struct buf *out, const char *format, uint64_t ns, const struct profile_totals *sum)
{
    double share = sum->cpu_ns == 0 ? 0 : (double)ns / (double)sum->cpu_ns;
    double margin = margin_percent(share, sum->count);
    if (margin >= 1) {
        buf_printf(out, format, margin);
    }
}
