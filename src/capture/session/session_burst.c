#include "base/time.h"
#include "capture/catch/perfless.h"
#include "capture/session/session_private.h"
#include "os/clock.h"

/*
 * A thread that ends before it has run for a period leaves no sample: of a program that starts a thread for each
 * request nearly everything would be "[lost]". Where that is seen (many threads start, and the books have much
 * more than the samples) the process is sampled in bursts instead: in slices of time all that it runs, much more
 * closely, and with a weight that makes up for the time between slices. On average that is as many samples as were
 * asked for. The usual ones go on being taken, and are only counted: by them is seen when bursts are needed no more.
 */
enum {
    LOOK_MS = 1000,
    SLICE_MS = 4,
    SHARE_LEAST = 3,     /* one slice in as many: what is sampled nearly as closely needs no bursts */
    BIRTHS_LEAST = 16,   /* threads per look */
    CPU_LEAST_MS = 50,   /* per look */
    MISSING_PERIODS = 3, /* that may be missing anyway */
    LOOKS_TO_BEGIN = 2,
    LOOKS_TO_END = 10,
};

/* At the frequency of now: the profiler's budget may have lowered it. */
static uint64_t usual_period_ns(const struct session *s)
{
    uint32_t hz = s->perf.sampling.frequency_hz;
    return hz == 0 ? 0 : NS_PER_S / hz;
}

static uint64_t share_now(const struct session *s)
{
    return usual_period_ns(s) / PERF_BURST_PERIOD_NS;
}

/* A recording has no place for them. */
static bool may_burst(const struct session *s)
{
    return s->perf_on && s->recorder == NULL && share_now(s) >= SHARE_LEAST;
}

void session_note_birth(struct session *s, const struct record *fork)
{
    struct target *target =
        fork->pid == fork->as.fork.parent_pid ? targets_find(&s->targets, fork->pid) : NULL;
    if (target != NULL) {
        target->threads_born++;
    }
}

bool session_takes_sample(struct session *s, struct record *sample)
{
    bool of_burst = sample->as.sample.period_ns == PERF_BURST_PERIOD_NS && s->slice_share > 0;
    struct target *target = targets_find(&s->targets, sample->pid);
    bool bursts = target != NULL && target->bursts;
    if (!of_burst && target != NULL) {
        target->plain_ns += sample->as.sample.period_ns;
    }
    if (of_burst && !s->in_slice && sample->time_ns > s->slice_end_ns) {
        s->runs_on = true;
        return false;
    }
    if (of_burst && bursts) {
        sample->as.sample.of_burst = true;
        sample->as.sample.period_ns *= s->slice_share;
        target->burst_samples++;
    }
    return of_burst == bursts;
}

/* ---- who is sampled so ---- */

static void begin(struct session *s, struct target *target)
{
    struct err err;
    if (!perf_burst_follow(&s->perf, target->pid, target->caught, &err)) {
        target->burst_refused = true;
        log_once_for(&s->log, LOG_DEBUG, "burst", "%s", err.text);
        return;
    }
    target->bursts = s->any_burst = true;
    target->burst_looks = 0;
    log_once_for(&s->log, LOG_INFO, "burst",
                 "pid %u (%s) starts threads that end before they are sampled: from now on it is sampled "
                 "every %.2f ms, in slices of %d ms",
                 target->pid, target->name, (double)PERF_BURST_PERIOD_NS / 1e6, SLICE_MS);
}

static void end(struct session *s, struct target *target)
{
    perf_burst_end(&s->perf, target->pid);
    target->bursts = false;
    target->burst_looks = 0;
}

/* One way or the other: is much of what it used since the last look without a sample of the usual kind? */
static bool is_missing(const struct session *s, const struct target *target, uint64_t cpu_ns,
                       uint64_t plain_ns)
{
    uint64_t missing_ns = cpu_ns > plain_ns ? cpu_ns - plain_ns : 0;
    return cpu_ns >= CPU_LEAST_MS * NS_PER_MS &&
           missing_ns > MISSING_PERIODS * usual_period_ns(s) &&
           missing_ns > cpu_ns / (target->bursts ? 8 : 4);
}

static void look(struct session *s, struct target *target)
{
    uint64_t cpu_ns, used_ns = target->burst_cpu_ns, plain_ns = target->burst_plain_ns;
    bool many = target->threads_born >= BIRTHS_LEAST;
    target->threads_born = 0;
    if ((!many && !target->bursts) || target->burst_refused ||
        !accounts_used(&s->accounts, target, &cpu_ns)) {
        target->burst_looks = 0;
        target->burst_cpu_ns = 0;
        return;
    }
    target->burst_cpu_ns = cpu_ns;
    target->burst_plain_ns = target->plain_ns;
    if (used_ns == 0 || cpu_ns < used_ns) {
        return;
    }
    bool missing = is_missing(s, target, cpu_ns - used_ns, target->plain_ns - plain_ns);
    target->burst_looks = missing != target->bursts ? target->burst_looks + 1 : 0;
    if (!target->bursts && target->burst_looks >= LOOKS_TO_BEGIN) {
        begin(s, target);
    } else if (target->bursts && target->burst_looks >= LOOKS_TO_END) {
        end(s, target);
    }
}

static void end_those_that_ended(struct session *s)
{
    for (size_t i = s->perf.bursts.len; i-- > 0;) {
        uint32_t pid = s->perf.bursts.at[i].pid;
        const struct target *target = targets_find(&s->targets, pid);
        if (target == NULL || target->ended || !target->bursts) {
            perf_burst_end(&s->perf, pid);
        }
    }
}

static void end_all(struct session *s)
{
    for (size_t i = 0; s->any_burst && i < s->targets.all.len; i++) {
        end(s, s->targets.all.at[i]);
    }
    s->any_burst = false;
}

static void look_at_all(struct session *s)
{
    s->any_burst = false;
    vec_each(&s->targets.all, slot)
    {
        struct target *target = *slot;
        bool on_perf = target->rung == RUNG_PERF || target->rung == RUNG_PERF_USER;
        if (on_perf && !target->ended) {
            look(s, target);
        }
        s->any_burst = s->any_burst || (target->bursts && !target->ended);
    }
    end_those_that_ended(s);
}

/* ---- the slices ---- */

/* A process that was caught since has rings of its own. */
static void follow_rings(struct session *s)
{
    vec_each(&s->targets.all, slot)
    {
        struct target *target = *slot;
        struct err err;
        if (target->bursts && !perf_burst_is_followed(&s->perf, target->pid, target->caught) &&
            !perf_burst_follow(&s->perf, target->pid, target->caught, &err)) {
            end(s, target);
        }
    }
}

static void begin_slice(struct session *s, uint64_t now_ns)
{
    follow_rings(s);
    s->slice_share = share_now(s);
    s->after_slice_ns = perfless_next_ns(now_ns, s->slice_share * SLICE_MS * NS_PER_MS, &s->slice_seed);
    s->next_slice_ns = now_ns + SLICE_MS * NS_PER_MS;
    s->in_slice = true;
    perf_burst_set(&s->perf, true);
}

static void end_slice(struct session *s)
{
    perf_burst_set(&s->perf, false);
    s->slice_end_ns = clock_mono_ns();
    s->in_slice = false;
    s->next_slice_ns = s->after_slice_ns;
}

static void stop_again(struct session *s)
{
    if (s->runs_on && !s->in_slice) {
        perf_burst_set(&s->perf, false);
    }
    s->runs_on = false;
}

void session_burst(struct session *s, uint64_t now_ns)
{
    if (s->in_slice) {
        if (now_ns >= s->next_slice_ns) {
            end_slice(s);
        }
        return;
    }
    stop_again(s);
    if (!may_burst(s)) {
        end_all(s);
        return;
    }
    if (now_ns >= s->next_births_ns) {
        s->next_births_ns = now_ns + LOOK_MS * NS_PER_MS;
        look_at_all(s);
    }
    if (s->any_burst && now_ns >= s->next_slice_ns) {
        begin_slice(s, now_ns);
    }
}

uint64_t session_slice_due_ns(const struct session *s)
{
    return s->in_slice || (s->any_burst && may_burst(s)) ? s->next_slice_ns : 0;
}
