/* Back-off with jitter by what became of the last attempt, the pace of a backlog, and what kind of
 * window is next. Pure: the clock is a number that is given. tests/bench/fleet.c has the figures for ten
 * thousand instances. */
#include "deliver/retry.h"

enum {
    DOUBLINGS_MAX = 6, /* 1 s << 6 is past 60 s */
    PROBES = 3,        /* before the slow rhythm */
    AFTER_TIMES = 4,   /* with 1, all that were given one moment last would come right after it */
};

/* splitmix64: any state will do, zero included. */
static uint64_t next_random(struct retry *retry)
{
    uint64_t z = retry->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t retry_jitter(struct retry *retry, uint64_t most_ns)
{
    return next_random(retry) % (most_ns + 1);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* At most; with a floor, what all that were given the same moment are spread over. */
static uint64_t backoff_most_ns(const struct retry *retry, uint64_t floor_ns)
{
    unsigned doublings = retry->failures > 0 ? retry->failures - 1 : 0;
    uint64_t most_ns = RETRY_BASE_NS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
    return smaller(larger(most_ns, AFTER_TIMES * floor_ns), RETRY_MOST_NS);
}

static uint64_t config_pause_ns(const struct retry *retry)
{
    return retry->probes <= PROBES ? RETRY_PROBE_NS << (retry->probes - 1) : RETRY_CONFIG_NS;
}

void retry_note(struct retry *retry, enum verdict verdict, uint64_t retry_after_ns,
                uint64_t now_ns)
{
    uint64_t floor_ns = smaller(retry_after_ns, RETRY_AFTER_MOST_NS);
    switch (verdict) {
    case VERDICT_LATER:
        retry->failures += retry->failures < UINT32_MAX;
        retry->hurries = false;
        /* added, not compared: all that were given the same moment would come at it */
        retry->next_ns = now_ns + floor_ns + retry_jitter(retry, backoff_most_ns(retry, floor_ns));
        break;
    case VERDICT_CONFIG:
        retry->failures += retry->failures < UINT32_MAX;
        retry->probes += retry->probes < UINT32_MAX;
        retry->hurries = false;
        floor_ns = larger(floor_ns, config_pause_ns(retry));
        retry->next_ns = now_ns + floor_ns + retry_jitter(retry, smaller(floor_ns, RETRY_MOST_NS));
        break;
    case VERDICT_TAKEN:
    case VERDICT_REFUSED: /* the service is there and answers */
        retry->failures = retry->probes = 0;
        retry->next_ns = now_ns;
        break;
    case VERDICT_SMALLER:
    case VERDICT_AGAIN:
        retry->next_ns = now_ns;
        break;
    }
}

void retry_pace(struct retry *retry, uint64_t now_ns)
{
    bool spreads = retry->spread_ns > 0 && !retry->hurries;
    uint64_t least_ns = spreads ? retry->spread_ns / 2 : RETRY_PACE_NS / 2;
    uint64_t most_ns = spreads ? retry->spread_ns : RETRY_PACE_NS;
    retry->backlog_ns = now_ns + least_ns + retry_jitter(retry, most_ns - least_ns);
}

enum retry_next retry_choose(const struct retry *retry, const struct retry_choice *choice,
                             uint64_t now_ns)
{
    if (!choice->any_live && !choice->any_backlog) {
        return RETRY_NOTHING;
    }
    if (now_ns < retry->next_ns) {
        return RETRY_WAIT;
    }
    bool down = retry->failures > 0; /* it is asked with the newest */
    if (choice->any_live && (choice->live_is_fresh || down)) {
        return RETRY_LIVE;
    }
    if (!down && now_ns < retry->backlog_ns) {
        return RETRY_WAIT;
    }
    return choice->any_backlog ? RETRY_BACKLOG : RETRY_LIVE;
}
