/* How long the loop waits: never not at all for something that nobody would then do. */
#include "capture/run/pace.h"
#include "test.h"

#define MS UINT64_C(1000000)
enum { USUAL = 250 };

static uint64_t wait_ms(struct rounds_due due)
{
    due.now_ns = 10000 * MS;
    return rounds_wait_ns(USUAL * MS, &due) / MS;
}

static struct rounds_due nothing(void)
{
    return (struct rounds_due){
        .window_end_ns = UINT64_MAX, .look_ns = UINT64_MAX, .takes_window = true, .looks = true};
}

static void what_is_due(void)
{
    struct rounds_due due = nothing();
    CHECK_INT(wait_ms(due), USUAL);
    due.window_end_ns = 10100 * MS;
    CHECK_INT(wait_ms(due), 100);
    due.look_ns = 10020 * MS;
    CHECK_INT(wait_ms(due), 20);
    due.window_end_ns = 9999 * MS; /* past */
    CHECK_INT(wait_ms(due), 0);
    due.slice_ns = 10007 * MS;
    due.window_end_ns = due.look_ns = 20000 * MS; /* beyond the usual wait */
    CHECK_INT(wait_ms(due), 7);
    due.slice_ns = 0; /* there is none */
    CHECK_INT(wait_ms(due), USUAL);
}

static void publisher_at_work(void)
{
    struct rounds_due due = nothing();
    due.takes_window = false;
    due.window_end_ns = 9000 * MS; /* over for a second, and nobody can take it */
    CHECK_INT(wait_ms(due), USUAL);
    due.look_ns = 10030 * MS;
    CHECK_INT(wait_ms(due), 30);
}

static void suspended(void)
{
    struct rounds_due due = nothing();
    due.looks = false;
    due.look_ns = 9000 * MS;
    CHECK_INT(wait_ms(due), USUAL);
    due.window_end_ns = 10040 * MS;
    CHECK_INT(wait_ms(due), 40);
}

TESTS({"a round ends when the window does, or a look at runtimes is due", what_is_due},
      {"a window's end that no publisher can take shortens no wait", publisher_at_work},
      {"a look that nobody makes while sampling is suspended shortens no wait", suspended})
