/*
 * budget: how much CPU time the profiler itself may take, and what it does without to stay below.
 *
 * Concept. A controller without eyes or hands: once a second it is told how much CPU time all of
 * our threads have used so far, and answers with the frequency to sample at and with how much care.
 * It keeps an account of BUDGET_SECONDS: what may be used flows in, what was used flows out, and it
 * never holds more than that many seconds' worth, nor a debt of more than half of it. So a burst
 * (symbols, first unwind tables) that the quiet seconds before or after it pay for costs no
 * frequency, and over a long run no more than the budget is used.
 *
 *   overdrawn            the frequency falls at once, in proportion to what was used, low enough that
 *                        the account recovers within some ten seconds
 *   half empty, falling  the same, before it is overdrawn
 *   half full, and well below the budget for ten seconds   the frequency rises, twofold at most,
 *                        never above what was asked for; when such a rise had to be taken back, the
 *                        next one waits twice as long
 *
 * What lowering the frequency cannot save is saved by measures, one after the other, once it is
 * BUDGET_FLOOR_HZ, the account stays overdrawn and more than a quarter too much is used: coarser
 * stacks (small copies, nothing read beyond them), then no samples at all until the next window. Where
 * four times too much is used (tens of thousands of threads that end each second, for one, whatever the
 * frequency), each is taken after a second, not three.
 *
 * Writing a window's files is no sampling: a frequency changes little of it, and it comes all at
 * once. What it took the last time (at first a guess) is set aside from the budget, spread over a
 * window, at most half of it; what it takes does not flow out of the account. Where it takes more
 * than half, short windows do not fit into the budget, and budget_windows_are_short says so. What
 * the first BUDGET_START_S seconds take is counted as the price of starting, as far as
 * BUDGET_START_MS; BUDGET_START_DEAR_MS where each call of the kernel takes ten times as long as usual.
 *
 * Pure, one thread. Times are monotonic or CPU time, in ns; all totals begin anywhere.
 *
 *     budget_init; each second budget_update; per window budget_end_window
 */
#ifndef CAPTURE_ACCOUNT_BUDGET_H
#define CAPTURE_ACCOUNT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BUDGET_SECONDS = 10,
    BUDGET_FLOOR_HZ = 1,
    BUDGET_START_S = 2,
    BUDGET_START_MS = 300,
    BUDGET_START_DEAR_MS = 1000,
    BUDGET_PUBLISH_FIRST_MS = 60, /* most of it reads the kernel's symbols */
};

/* What is done without, each besides the ones before. */
enum budget_measure {
    BUDGET_NOTHING,
    BUDGET_SLOWER,    /* the frequency is lower than what was asked for */
    BUDGET_COARSE,    /* and copies of stacks are small, nothing is read beyond them */
    BUDGET_SUSPENDED, /* until the window's end nothing is sampled: the frequency is 0 */
};

/* What the profiler's threads have used so far. */
struct budget_used {
    uint64_t own_ns;     /* all of them */
    uint64_t publish_ns; /* of it, naming and writing windows */
};

struct budget {
    double share;            /* of one core that may be used, 0.01 is 1 % */
    uint32_t asked_hz;
    uint64_t window_ns;      /* how long windows are meant to be */
    /* the answer */
    uint32_t frequency_hz;
    enum budget_measure measure;
    /* so far */
    uint64_t began_ns, told_ns; /* when; the latest update */
    struct budget_used used;
    double account_ns;       /* what may be used at once; below 0: was used too much */
    uint64_t start_most_ns;  /* what the start may take */
    uint64_t started_ns;     /* of it, taken */
    uint64_t seen_ns, seen_used_ns; /* since the last change, of late: for the present rate */
    uint64_t seen_most_ns;   /* the dearest second of them: a burst is no rate */
    uint64_t quiet_ns, patience_s; /* since the last change; and to be before one for the better */
    bool rose;               /* the last change was for the better */
    double judged_rate;      /* that led to the last change */
    bool settling;           /* the change itself costs something: the second after it tells nothing */
    /* of the window */
    uint64_t window_began_ns, window_publish_ns; /* publish_ns then */
    uint64_t publish_cost_ns; /* of one window */
    double hz_ns;            /* frequency x time */
    enum budget_measure most; /* the strongest measure */
    uint64_t suspended_ns;
    uint32_t least_hz;       /* above 0 */
};

void budget_init(struct budget *b, double percent, uint32_t asked_hz, uint64_t window_ns,
                 uint64_t now_ns, const struct budget_used *used);

/* Right after it: starting is dear here. */
void budget_allow_dear_start(struct budget *b);

/* About once a second. True when frequency_hz or measure has changed. */
bool budget_update(struct budget *b, uint64_t now_ns, const struct budget_used *used);

/* What a core's share sampling has used of late, since the last change, without its dearest second. */
double budget_rate(const struct budget *b);

/* What sampling may use: the budget without what is set aside for files. */
double budget_sampling_share(const struct budget *b);

/* Writing a window takes more than half of what may be used in the time of one. */
bool budget_windows_are_short(const struct budget *b);

/* What a window was like. */
struct budget_window {
    double mean_hz;          /* over its time */
    uint32_t least_hz;       /* above 0 */
    enum budget_measure most;
    uint64_t suspended_ns;
};

/* Ends a window and begins the next; a suspension ends with it. True when frequency_hz or measure has
 * changed. */
bool budget_end_window(struct budget *b, uint64_t now_ns, const struct budget_used *used,
                       struct budget_window *out);

#endif
