#include "capture/window/status.h"
#include "base/time.h"
#include "capture/window/summary.h"

#include <stdio.h>

enum {
    PART_MAX = 48,
    PAUSE_MS = 1000,
    STACKS_PER_MS = 8, /* a sum over them takes a ten-thousandth of that time, or less */
};

/* "1,904" */
static void group_digits(uint64_t number, char out[static PART_MAX])
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number), at = 0;
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

/* False when it does not fit: then nothing that follows is added either. */
static bool add_part(struct buf *out, size_t columns, const char *part)
{
    bool fits = out->len + 2 + strlen(part) < columns;
    if (fits) {
        buf_printf(out, "  %s", part);
    }
    return fits;
}

static bool add_counts(struct buf *out, size_t columns, const struct profile_totals *sum)
{
    char part[PART_MAX], number[PART_MAX];
    if (sum->count > 0) {
        group_digits(sum->count, number);
        (void)snprintf(part, sizeof part, "%.24s samples", number);
        if (!add_part(out, columns, part)) {
            return false;
        }
    }
    (void)snprintf(part, sizeof part, "%.1f s CPU", (double)sum->cpu_ns / (double)NS_PER_S);
    return add_part(out, columns, part);
}

static bool add_share(struct buf *out, size_t columns, const char *name, uint64_t part_ns,
                      uint64_t all_ns)
{
    char part[PART_MAX];
    double percent = all_ns == 0 ? 0.0 : 100.0 * (double)part_ns / (double)all_ns;
    if (percent < 0.5) {
        return true; /* it would be shown as nothing */
    }
    (void)snprintf(part, sizeof part, "%.20s %.0f %%", name, percent);
    return add_part(out, columns, part);
}

void status_text(const struct profile_totals *sum, uint64_t elapsed_ns, uint64_t window, size_t columns,
                 struct buf *out)
{
    struct summary_share shares[FRAME_KIND_COUNT];
    size_t count = summary_shares(sum, shares);
    char part[PART_MAX];
    (void)snprintf(part, sizeof part, "%llu s", (unsigned long long)(elapsed_ns / NS_PER_S));
    bool fits = add_part(out, columns, part) && add_counts(out, columns, sum);
    if (fits && window > 0) {
        (void)snprintf(part, sizeof part, "window %llu", (unsigned long long)window);
        fits = add_part(out, columns, part);
    }
    for (size_t i = 0; i < count && fits; i++) {
        fits = add_share(out, columns, shares[i].name, shares[i].ns, sum->cpu_ns);
    }
    if (fits) {
        (void)add_share(out, columns, "not seen", sum->leaf_ns[FRAME_ACCOUNT], sum->cpu_ns);
    }
}

uint64_t status_pause_ns(size_t stacks)
{
    return (PAUSE_MS + stacks / STACKS_PER_MS) * NS_PER_MS;
}
