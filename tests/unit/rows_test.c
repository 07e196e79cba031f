/* The table of concerns: walked in order, at rest while suspended, and never waiting for what nobody would do. */
#include "capture/run/rows.h"
#include "capture/window/windows.h"
#include "test.h"

#include <string.h>

#define MS UINT64_C(1000000)
enum { USUAL = 250, NOW = 10000 };

struct fake {
    char letter;
    char *log;
    uint64_t due_ns;
};

static void write_down(struct fake *fake, char moment)
{
    size_t len = strlen(fake->log);
    fake->log[len] = fake->letter;
    fake->log[len + 1] = moment;
}

static void setup(void *state)
{
    write_down(state, 's');
}

static void round_of(void *state, uint64_t now_ns)
{
    CHECK_INT(now_ns, NOW * MS);
    write_down(state, 'r');
}

static void begin(void *state)
{
    write_down(state, 'b');
}

static void end(void *state)
{
    write_down(state, 'e');
}

static uint64_t due(const void *state)
{
    return ((const struct fake *)state)->due_ns;
}

static void release(void *state)
{
    write_down(state, 'x');
}

static const struct concern all = {
    .name = "all", .while_suspended = true, .setup = setup, .round = round_of,
    .window_begin = begin, .window_end = end, .due_ns = due, .release = release,
};
static const struct concern few = {.name = "few", .round = round_of, .due_ns = due};

static void in_order(void)
{
    char log[64] = "";
    struct fake a = {'A', log, 0}, b = {'B', log, 0}, c = {'C', log, 0};
    struct rows rows = {.at = {{&all, &a}, {&few, &b}, {&all, NULL}, {&all, &c}}, .count = 4};
    rows_setup(&rows);
    rows_round(&rows, NOW * MS, false);
    rows_window_end(&rows);
    rows_window_begin(&rows);
    rows_release(&rows);
    CHECK_TEXT(log, "AsCsArBrCrAeCeAbCbCxAx");
    CHECK_INT(rows.count, 0);
}

static void suspended(void)
{
    char log[64] = "";
    struct fake a = {'A', log, 0}, b = {'B', log, 0};
    const struct rows rows = {.at = {{&few, &b}, {&all, &a}}, .count = 2};
    rows_round(&rows, NOW * MS, true);
    CHECK_TEXT(log, "Ar");
}

static uint64_t wait_ms(uint64_t first_ms, uint64_t second_ms)
{
    char log[8] = "";
    struct fake a = {'A', log, first_ms * MS}, b = {'B', log, second_ms * MS};
    const struct rows rows = {.at = {{&all, &a}, {&few, &b}}, .count = 2};
    return rows_wait_ns(&rows, USUAL * MS, NOW * MS) / MS;
}

static void what_is_due(void)
{
    CHECK_INT(wait_ms(0, 0), USUAL);
    CHECK_INT(wait_ms(10100, 0), 100);
    CHECK_INT(wait_ms(10100, 10020), 20);
    CHECK_INT(wait_ms(10100, 9999), 0); /* past */
    CHECK_INT(wait_ms(20000, 20000), USUAL); /* beyond the usual wait */
}

static void publisher_at_work(void)
{
    const struct window window = {.start_ns = 9000 * MS};
    CHECK_INT(windows_due_ns(&window, 500 * MS, true), 9500 * MS);
    CHECK_INT(windows_due_ns(&window, 500 * MS, false), 0); /* over for half a second, and nobody can take it */
}

TESTS({"rows are walked in order at each moment, and released in reverse", in_order},
      {"what rests while sampling is suspended has no round", suspended},
      {"a round ends when something is due", what_is_due},
      {"a window's end that no publisher can take shortens no wait", publisher_at_work})
