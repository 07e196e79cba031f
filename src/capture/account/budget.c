/* The controller of budget.h. It judges by the rate since its last change: older seconds count for less, and the
 * dearest one is no part of it. Less is used at once: first a lower frequency, then coarse stacks, then no samples.
 * More is used only after RAISE_S quiet seconds, and twice as many after each rise that had to be taken back. */
#include "capture/account/budget.h"
#include "base/time.h"

enum {
    UPDATE_LEAST_MS = 500,
    JUDGE_S = 3,   /* of a rate that is only a little too high */
    RAISE_S = 9,   /* without a change, before one for the better … */
    PATIENCE_MOST_S = 140, /* … and when such had to be taken back */
    FALL_MOST = 16, /* times lower, in one step */
    FAR = 4,        /* times the share */
};

/* A rate is aimed at that leaves room for what no second is like the other in. */
static const double aim = 0.9;
static const double aim_raised = 0.85;
static const double spare = 0.7;     /* of the share: below, the frequency may rise */
static const double rise_most = 2;
static const double tolerable = 1.25; /* of the share, rather than to stop sampling */
static const double idle = 0.3;      /* of the share: the load has gone */

static double seconds_of(uint64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

static double account_most(const struct budget *b)
{
    return b->share * BUDGET_SECONDS * (double)NS_PER_S;
}

static double publish_share(const struct budget *b)
{
    return (double)b->publish_cost_ns / (double)b->window_ns;
}

double budget_sampling_share(const struct budget *b)
{
    double aside = publish_share(b);
    return b->share - (aside < b->share / 2 ? aside : b->share / 2);
}

bool budget_windows_are_short(const struct budget *b)
{
    return publish_share(b) > b->share / 2;
}

double budget_rate(const struct budget *b)
{
    uint64_t ns = b->seen_ns, used_ns = b->seen_used_ns;
    if (ns > 2 * NS_PER_S) {
        ns -= NS_PER_S;
        used_ns -= b->seen_most_ns;
    }
    return ns == 0 ? 0 : (double)used_ns / (double)ns;
}

static void begin_window(struct budget *b, uint64_t now_ns)
{
    b->window_began_ns = now_ns;
    b->hz_ns = 0;
    b->suspended_ns = 0;
    b->most = b->measure;
    b->least_hz = b->frequency_hz;
}

void budget_init(struct budget *b, double percent, uint32_t asked_hz, uint64_t window_ns,
                 uint64_t now_ns, const struct budget_used *used)
{
    *b = (struct budget){.share = percent / 100,
                         .asked_hz = asked_hz,
                         .window_ns = window_ns > 0 ? window_ns : 1,
                         .frequency_hz = asked_hz,
                         .patience_s = RAISE_S,
                         .began_ns = now_ns,
                         .told_ns = now_ns,
                         .used = *used,
                         .start_most_ns = BUDGET_START_MS * NS_PER_MS,
                         .publish_cost_ns = BUDGET_PUBLISH_FIRST_MS * NS_PER_MS,
                         .window_publish_ns = used->publish_ns};
    b->account_ns = account_most(b);
    begin_window(b, now_ns);
}

void budget_allow_dear_start(struct budget *b)
{
    b->start_most_ns = BUDGET_START_DEAR_MS * NS_PER_MS;
}

/* ---- the answer ---- */

static void change(struct budget *b, uint32_t hz, enum budget_measure measure)
{
    b->judged_rate = budget_rate(b);
    b->frequency_hz = hz;
    b->measure = measure;
    b->seen_ns = b->seen_used_ns = b->seen_most_ns = b->quiet_ns = 0;
    b->settling = true;
    b->most = measure > b->most ? measure : b->most;
    b->least_hz = hz > 0 && hz < b->least_hz ? hz : b->least_hz;
}

/* A rise that had to be taken back is tried again the later: each change makes all events anew. */
static void note_direction(struct budget *b, bool up)
{
    if (!up && b->rose && b->patience_s < PATIENCE_MOST_S) {
        b->patience_s *= 2;
    } else if (up && budget_rate(b) < budget_sampling_share(b) * idle) {
        b->patience_s = RAISE_S;
    }
    b->rose = up;
}

static uint32_t floor_of(const struct budget *b)
{
    return b->asked_hz < BUDGET_FLOOR_HZ ? b->asked_hz : BUDGET_FLOOR_HZ;
}

/* The deeper in debt, the less is used until it is paid: half of the share at least. */
static double wanted_share(const struct budget *b)
{
    double share = budget_sampling_share(b), left = 1 + b->account_ns / account_most(b);
    if (b->account_ns >= 0) {
        return share * aim;
    }
    return share * (left < aim ? left : aim);
}

static uint32_t lowered(const struct budget *b)
{
    double factor = wanted_share(b) / budget_rate(b);
    factor = factor > 1.0 / FALL_MOST ? factor : 1.0 / FALL_MOST;
    uint32_t hz = (uint32_t)((double)b->frequency_hz * (factor < aim ? factor : aim));
    return hz > floor_of(b) ? hz : floor_of(b);
}

static void use_less(struct budget *b)
{
    note_direction(b, false);
    if (b->frequency_hz > floor_of(b)) {
        change(b, lowered(b), BUDGET_SLOWER);
    } else if (b->measure < BUDGET_COARSE) {
        change(b, b->frequency_hz, BUDGET_COARSE);
    } else {
        change(b, 0, BUDGET_SUSPENDED);
    }
}

static void use_more(struct budget *b)
{
    note_direction(b, true);
    if (b->measure == BUDGET_COARSE) {
        change(b, b->frequency_hz, BUDGET_SLOWER);
        return;
    }
    double rate = budget_rate(b), factor = rise_most;
    if (rate * rise_most > budget_sampling_share(b) * aim_raised) {
        factor = budget_sampling_share(b) * aim_raised / rate;
    }
    uint32_t hz = (uint32_t)((double)b->frequency_hz * factor);
    hz = hz > b->frequency_hz ? hz : b->frequency_hz + 1;
    bool whole = hz >= b->asked_hz;
    change(b, whole ? b->asked_hz : hz, whole ? BUDGET_NOTHING : BUDGET_SLOWER);
}

/* ---- seconds ---- */

/* What was used since the last update, without publishing. */
static uint64_t used_since(const struct budget *b, const struct budget_used *used)
{
    uint64_t own_ns = used->own_ns - b->used.own_ns;
    uint64_t publish_ns = used->publish_ns - b->used.publish_ns;
    return own_ns > publish_ns ? own_ns - publish_ns : 0;
}

/* The same without what the start may take. */
static uint64_t charged(struct budget *b, uint64_t now_ns, uint64_t ns)
{
    if (now_ns - b->began_ns > (BUDGET_START_S + 1) * NS_PER_S) {
        return ns;
    }
    uint64_t left_ns = b->start_most_ns - b->started_ns;
    uint64_t free_ns = ns < left_ns ? ns : left_ns;
    b->started_ns += free_ns;
    return ns - free_ns;
}

static void note_rate(struct budget *b, uint64_t passed_ns, uint64_t used_ns)
{
    if (b->settling) {
        b->settling = false;
        return;
    }
    b->quiet_ns += passed_ns;
    b->seen_ns += passed_ns;
    b->seen_used_ns += used_ns;
    b->seen_most_ns = used_ns > b->seen_most_ns ? used_ns : b->seen_most_ns;
    /* what is long past counts for less and less, and what is paid for as well */
    bool paid = b->account_ns >= account_most(b);
    if (b->seen_ns > (paid ? JUDGE_S : BUDGET_SECONDS) * NS_PER_S) {
        b->seen_ns /= 2;
        b->seen_used_ns /= 2;
        b->seen_most_ns /= 2;
    }
}

/* No more may be owed, and it goes on: each further second of looking is too dear. */
static bool is_far_above(const struct budget *b)
{
    return b->account_ns <= -account_most(b) / 2 && budget_rate(b) > budget_sampling_share(b) * FAR;
}

static bool uses_too_much(const struct budget *b)
{
    double rate = budget_rate(b), share = budget_sampling_share(b);
    bool judged = seconds_of(b->seen_ns) >= JUDGE_S;
    if (b->measure == BUDGET_SUSPENDED || b->seen_ns == 0) {
        return false;
    }
    if (b->frequency_hz <= floor_of(b)) {
        return b->account_ns < 0 && (is_far_above(b) || (judged && rate > share * tolerable));
    }
    if (b->account_ns < 0) { /* while it is paid off nothing more has to be done */
        return rate > wanted_share(b);
    }
    return b->account_ns < account_most(b) / 2 && judged && rate > share;
}

static bool could_use_more(const struct budget *b)
{
    return (b->measure == BUDGET_SLOWER || b->measure == BUDGET_COARSE) &&
           b->account_ns > account_most(b) / 2 && b->quiet_ns >= b->patience_s * NS_PER_S &&
           budget_rate(b) < budget_sampling_share(b) * spare;
}

static void take_in(struct budget *b, uint64_t now_ns, const struct budget_used *used)
{
    uint64_t passed_ns = now_ns - b->told_ns, used_ns = used_since(b, used);
    double most = account_most(b);
    b->account_ns += budget_sampling_share(b) * (double)passed_ns;
    b->account_ns -= (double)charged(b, now_ns, used_ns);
    b->account_ns = b->account_ns < -most / 2 ? -most / 2
                    : b->account_ns < most    ? b->account_ns
                                              : most;
    b->hz_ns += (double)b->frequency_hz * (double)passed_ns;
    b->suspended_ns += b->measure == BUDGET_SUSPENDED ? passed_ns : 0;
    b->told_ns = now_ns;
    b->used = *used;
    note_rate(b, passed_ns, used_ns);
}

bool budget_update(struct budget *b, uint64_t now_ns, const struct budget_used *used)
{
    if (now_ns < b->told_ns + UPDATE_LEAST_MS * NS_PER_MS) {
        return false;
    }
    take_in(b, now_ns, used);
    if (uses_too_much(b)) {
        use_less(b);
        return true;
    }
    if (could_use_more(b)) {
        use_more(b);
        return true;
    }
    return false;
}

/* ---- windows ---- */

bool budget_end_window(struct budget *b, uint64_t now_ns, const struct budget_used *used,
                       struct budget_window *out)
{
    take_in(b, now_ns, used);
    uint64_t length_ns = now_ns - b->window_began_ns;
    *out = (struct budget_window){
        .mean_hz = length_ns == 0 ? b->frequency_hz : b->hz_ns / (double)length_ns,
        .least_hz = b->least_hz,
        .most = b->most,
        .suspended_ns = b->suspended_ns,
    };
    /* the files of the window before were written during this one */
    uint64_t publish_ns = used->publish_ns - b->window_publish_ns;
    b->publish_cost_ns = publish_ns > 0 ? publish_ns : b->publish_cost_ns;
    b->window_publish_ns = used->publish_ns;
    bool resumes = b->measure == BUDGET_SUSPENDED;
    if (resumes) {
        b->account_ns = b->account_ns > 0 ? b->account_ns : 0;
        change(b, floor_of(b), BUDGET_COARSE);
    }
    begin_window(b, now_ns);
    return resumes;
}
