/* The line that tells on a terminal how a run goes. */
#include "test.h"

#include "base/time.h"
#include "capture/window/status.h"

static struct profile_totals seen(void)
{
    struct profile_totals sum = {.cpu_ns = 19200 * NS_PER_MS, .count = 1904};
    sum.leaf_ns[FRAME_PYTHON] = 17280 * NS_PER_MS; /* 90 % of it, 7 %, 2 %, 1 % */
    sum.leaf_ns[FRAME_NATIVE] = 1344 * NS_PER_MS;
    sum.leaf_ns[FRAME_KERNEL] = 384 * NS_PER_MS;
    sum.leaf_ns[FRAME_ACCOUNT] = 192 * NS_PER_MS;
    return sum;
}

static const char *line_in(const struct profile_totals *sum, uint64_t elapsed_ns, uint64_t window, size_t columns)
{
    static char text[200];
    struct buf out;
    buf_init(&out, sizeof text);
    status_text(sum, elapsed_ns, window, columns, &out);
    snprintf(text, sizeof text, "%s", buf_cstr(&out));
    buf_release(&out);
    return text;
}

static const char *line_of(const struct profile_totals *sum, uint64_t elapsed_ns, size_t columns)
{
    return line_in(sum, elapsed_ns, 0, columns);
}

static void one_of_several_windows(void)
{
    struct profile_totals sum = seen();
    CHECK_TEXT(line_in(&sum, 12 * NS_PER_S, 3, 60), "  12 s  1,904 samples  19.2 s CPU  window 3  python 90 %");
    CHECK_TEXT(line_in(&sum, 12 * NS_PER_S, 3, 40), "  12 s  1,904 samples  19.2 s CPU");
}

static void all_of_it(void)
{
    struct profile_totals sum = seen();
    CHECK_TEXT(line_of(&sum, 12 * NS_PER_S + 999 * NS_PER_MS, 85),
               "  12 s  1,904 samples  19.2 s CPU  python 90 %  native 7 %  kernel 2 %  not seen 1 %");
    sum.count = 1234567;
    CHECK(strstr(line_of(&sum, 0, 200), "  0 s  1,234,567 samples") != NULL);
    sum.count = 999;
    CHECK(strstr(line_of(&sum, 0, 200), "  999 samples") != NULL);
}

/* Whole parts, from the first on, and one column less than there are: the last one would wrap. */
static void cut_at_parts(void)
{
    struct profile_totals sum = seen();
    CHECK_TEXT(line_of(&sum, 12 * NS_PER_S, 40), "  12 s  1,904 samples  19.2 s CPU");
    CHECK_TEXT(line_of(&sum, 12 * NS_PER_S, 48), "  12 s  1,904 samples  19.2 s CPU  python 90 %");
    CHECK_TEXT(line_of(&sum, 12 * NS_PER_S, 46), "  12 s  1,904 samples  19.2 s CPU");
    for (size_t columns = 0; columns < 100; columns++) {
        CHECK(strlen(line_of(&sum, 12 * NS_PER_S, columns)) < (columns > 0 ? columns : 1));
    }
}

static void nothing_yet(void)
{
    struct profile_totals none = {0};
    CHECK_TEXT(line_of(&none, NS_PER_S, 80), "  1 s  0.0 s CPU");
}

/* Without perf events CPU time is counted, and no sample is taken. */
static void time_without_samples(void)
{
    struct profile_totals sum = {.cpu_ns = 2 * NS_PER_S};
    sum.leaf_ns[FRAME_ACCOUNT] = 2 * NS_PER_S;
    CHECK_TEXT(line_of(&sum, 2 * NS_PER_S, 80), "  2 s  2.0 s CPU  not seen 100 %");
}

static void rarer_with_many_stacks(void)
{
    CHECK_INT(status_pause_ns(0), NS_PER_S);
    CHECK_INT(status_pause_ns(80000), 11 * NS_PER_S); /* 80000 / 8 ms more */
}

TESTS({"it has the time, samples, CPU time and shares", all_of_it},
      {"of several windows it tells the number", one_of_several_windows},
      {"what does not fit is left out part by part", cut_at_parts},
      {"before anything was seen it tells the time", nothing_yet},
      {"time without samples is told as not seen", time_without_samples},
      {"with many stacks it is drawn more rarely", rarer_with_many_stacks})
