#include "capture/run/pace.h"

static uint64_t not_beyond(uint64_t wait_ns, uint64_t now_ns, uint64_t moment_ns)
{
    uint64_t left_ns = moment_ns > now_ns ? moment_ns - now_ns : 0;
    return left_ns < wait_ns ? left_ns : wait_ns;
}

uint64_t rounds_wait_ns(uint64_t usual_ns, const struct rounds_due *due)
{
    uint64_t wait_ns = usual_ns;
    if (due->slice_ns != 0) {
        wait_ns = not_beyond(wait_ns, due->now_ns, due->slice_ns);
    }
    if (due->takes_window) {
        wait_ns = not_beyond(wait_ns, due->now_ns, due->window_end_ns);
    }
    if (due->looks) {
        wait_ns = not_beyond(wait_ns, due->now_ns, due->look_ns);
    }
    return wait_ns;
}
