#include "base/time.h"
#include "capture/catch/perfless.h"

enum {
    ACTIVE_TICKS = 5,       /* the known threads are checked anyway; this is for the others */
    CLOCK_SHARE = 1000,     /* asking takes at most so small a part of the time */
    THREAD_MOST_NS = 300,   /* for each thread: what took longer was somebody else */
};

static bool parse_ms(struct str text, uint64_t *ns)
{
    uint64_t ms, rest;
    struct str after = str_trim(text), whole = str_cut(&after, '.');
    if (after.len != 6 || !str_u64(whole, &ms) || !str_u64(after, &rest) ||
        ms > UINT64_MAX / NS_PER_MS - 1) {
        return false;
    }
    *ns = ms * NS_PER_MS + rest;
    return true;
}

bool perfless_parse_last_ran(struct str text, uint64_t *ns)
{
    enum { LINES_MAX = 16 }; /* it is in the third; its place has moved before */
    for (unsigned i = 0; i < LINES_MAX && text.len > 0; i++) {
        struct str line = str_cut(&text, '\n'), name = str_cut(&line, ':');
        if (str_eq(str_trim(name), STR("se.exec_start"))) {
            return parse_ms(line, ns);
        }
    }
    return false;
}

bool perfless_is_one_switch(uint64_t ran_ns, uint64_t picked_ns)
{
    uint64_t apart_ns = ran_ns > picked_ns ? ran_ns - picked_ns : picked_ns - ran_ns;
    return apart_ns <= PERFLESS_SAME_US * NS_PER_US;
}

bool perfless_is_late(uint64_t waited_ns, bool woken)
{
    return waited_ns > (woken ? PERFLESS_LATE_FAR_US : PERFLESS_LATE_US) * NS_PER_US;
}

bool perfless_is_of_this_moment(bool in_call, bool was_next, uint8_t *lates)
{
    bool other = in_call && !was_next && *lates < PERFLESS_LATES_MAX;
    *lates += other;
    return !other;
}

uint64_t perfless_pause_ns(uint64_t period_ns, uint32_t threads, uint32_t active, uint64_t idle_ns,
                           uint64_t cost_ns)
{
    uint64_t pause_ns = period_ns;
    if (threads > 0 && threads <= active) { /* 0: they have not been listed yet */
        pause_ns = PERFLESS_ACTIVE_MS * NS_PER_MS; /* there is no other */
    } else if (idle_ns > PERFLESS_ACTIVE_MS * NS_PER_MS) {
        bool rests = idle_ns > PERFLESS_REST_S * NS_PER_S;
        pause_ns = (rests ? PERFLESS_REST_MS : PERFLESS_IDLE_MS) * NS_PER_MS;
    } else if (active > 0) {
        pause_ns = ACTIVE_TICKS * period_ns;
    }
    uint64_t most_ns = (threads + 4) * (uint64_t)THREAD_MOST_NS;
    uint64_t least_ns = (cost_ns < most_ns ? cost_ns : most_ns) * CLOCK_SHARE;
    return pause_ns > least_ns ? pause_ns : least_ns;
}
