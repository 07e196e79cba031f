/*
 * The pause between two rounds: by what is captured and how, stretched by the budget, cut short by what is due. Where
 * very many tasks end, it does not wait for the rings, but only for as long as a quarter of one cannot fill.
 */
#include "capture/run/pause.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/launch.h"
#include "os/thread.h"

enum {
    ROUND_MS = 250,          /* between two drains when no ring asks for one */
    ROUND_STACKS_MS = 100,   /* with small copies of stacks: the rest is read while it is there */
    ROUND_CAUGHT_MS = 100,   /* what catchers hand over is named while its code is there */
    ROUND_IDLE_MS = 1000,    /* when the last one found nothing */
    ROUND_EAGER_MS = 25,     /* in the first second of a command */
    EAGER_MS = 1000,
    CALM_MS = 15000,         /* idle for so long: it goes on being so */
    HURRY_MS = 10,
    CHURN_LEAST = 100,       /* tasks per second that make waiting for rings dear, … */
    ASIDE_LEAST_MS = 20,     /* … if not waiting for them spares enough … */
    ASIDE_MOST_MS = 100,     /* … and the end is seen soon enough */
    STACK_LARGE_BYTES = 32 * 1024,
};

static bool is_eager(const struct rooms *r, uint64_t now_ns)
{
    const struct shared *s = &r->shared;
    return s->command_pid != 0 && now_ns < s->first_ns + EAGER_MS * NS_PER_MS;
}

uint64_t pause_usual_ns(const struct rooms *r, bool idle, bool calm, uint64_t now_ns)
{
    const struct shared *s = &r->shared;
    bool on_proc = r->follow.targets.any_on_proc, found = on_proc && catching_timer(r->catching) != NULL;
    if (!found && catching_readers(r->catching) != NULL && is_eager(r, now_ns)) {
        return ROUND_EAGER_MS * NS_PER_MS; /* its interpreter is to be found as soon as it is there */
    }
    if (on_proc) {
        uint64_t pause_ns = polling_pause_ns(r->polling);
        return pause_ns > 0 ? pause_ns : ACCOUNTING_POLL_MS * NS_PER_MS;
    }
    if (waiting_is_on(r->waiting) || extra_records_watch_off_cpu(r->extra)) {
        return WAITS_MS * NS_PER_MS;
    }
    if (catching_rings(r->catching) != NULL && !calm) {
        return (idle ? ROUND_MS : ROUND_CAUGHT_MS) * NS_PER_MS;
    }
    bool small = s->perf_on && perf_sampling(s->perf)->stack_bytes < STACK_LARGE_BYTES;
    uint64_t busy_ms = r->stacks.unwinder != NULL && small ? ROUND_STACKS_MS : ROUND_MS;
    uint64_t idle_ms = s->settings->scope.mode == TARGET_ALL ? FIND_MS : ROUND_IDLE_MS;
    return (idle ? idle_ms : busy_ms) * NS_PER_MS;
}

/* Without perf a process that ends takes what it used since it was asked last with it. */
static uint64_t slowest_ns(const struct rooms *r)
{
    return (r->follow.targets.any_on_proc ? 2 * ACCOUNTING_POLL_MS : ROUND_IDLE_MS) * NS_PER_MS;
}

/* ---- beside the rings ---- */

/* How long nobody need look at the rings: a quarter of what fills one with the largest records of now. */
static uint64_t unattended_ns(const struct rooms *r)
{
    enum { RECORD_REST_BYTES = 2048 };
    uint64_t stack = perf_sampling(r->shared.perf)->stack_bytes, hz = perf_sampling(r->shared.perf)->frequency_hz;
    vec_each(&r->follow.targets.all, target)
    {
        stack = (*target)->copy.bytes > stack ? (*target)->copy.bytes : stack;
    }
    return perf_ring_bytes(r->shared.perf) / 4 * NS_PER_S / ((stack + RECORD_REST_BYTES) * (hz > 0 ? hz : 1));
}

/* Where hundreds of tasks per second end, each would wake us. */
static bool waits_aside(struct pause *p, struct rooms *r, uint64_t *wait_ns)
{
    uint64_t now_ns = clock_mono_ns();
    if (now_ns >= p->churn_ns) {
        p->churns = records_take_born(r->records) >= CHURN_LEAST;
        p->churn_ns = now_ns + NS_PER_S;
    }
    bool may = p->churns && !bursts_in_slice(r->bursts) && !perf_sampling(r->shared.perf)->extra;
    uint64_t most_ns = may ? unattended_ns(r) : 0;
    if (most_ns < ASIDE_LEAST_MS * NS_PER_MS) {
        return false;
    }
    most_ns = most_ns < ASIDE_MOST_MS * NS_PER_MS ? most_ns : ASIDE_MOST_MS * NS_PER_MS;
    *wait_ns = *wait_ns < most_ns ? *wait_ns : most_ns;
    return true;
}

static void wait_for_rings(struct pause *p, struct rooms *r, int half_full, uint64_t wait_ns)
{
    struct shared *s = &r->shared;
    const int extra_fds[PERF_WAIT_FDS] = {r->signals, half_full};
    s->end_told = waits_aside(p, r, &wait_ns) ? perf_wait_aside(s->perf, extra_fds, wait_ns)
                                              : perf_wait(s->perf, extra_fds, wait_ns);
    if (s->end_told) {
        polling_note_end(r->polling);
    }
}

void pause_round(struct pause *p, struct rooms *r)
{
    struct catch *rings = catching_rings(r->catching), *catch = rings != NULL ? rings : catching_timer(r->catching);
    uint64_t now_ns = clock_mono_ns();
    p->busy_ns = p->idle ? p->busy_ns : now_ns;
    bool calm = now_ns - p->busy_ns > CALM_MS * NS_PER_MS;
    uint64_t stretched_ns = shared_stretched_ns(&r->shared, pause_usual_ns(r, p->idle, calm, now_ns), slowest_ns(r));
    uint64_t wait_ns = rows_wait_ns(&r->rows, p->hurries ? HURRY_MS * NS_PER_MS : stretched_ns, now_ns);
    int half_full = catch != NULL ? catch_fd(catch) : -1;
    own_cost_rests(&r->shared.own, now_ns);
    if (r->shared.perf_on) {
        wait_for_rings(p, r, half_full, wait_ns);
    } else if (half_full >= 0) {
        (void)waker_wait(half_full, r->signals, wait_ns);
    } else {
        signals_wait(r->signals, wait_ns);
    }
    own_cost_wakes(&r->shared.own, clock_mono_ns());
}
