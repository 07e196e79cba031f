/*
 * retry: when a delivery is tried again, and what kind of window is next.
 *
 * Pure: times in, decisions out. Back-off is exponential with full jitter (base 1 s, at most 60 s);
 * Retry-After is its floor, at most 10 minutes. What somebody has to change (VERDICT_CONFIG) is
 * tried after 15, 30 and 60 s, for it may have been a moment of a deployment, then every 5 minutes. The newest
 * goes first; then the backlog, oldest first.
 *
 * Many of us start together, fail together and get the same response from the same server; no two may
 * keep step then. Three things see to it:
 *   - windows that end together are sent spread over `spread_ns` (schedule.h), which is the length of a
 *     window, a minute at most;
 *   - what is added to Retry-After is up to four times as long as it was, a minute at most: a
 *     server may have named one moment to all;
 *   - between two of the backlog passes half of spread_ns to all of it. So a fleet sends its
 *     backlog 1.33 times as fast as it makes windows, whatever its size, and a server that comes
 *     back is not flooded by those who waited for it.
 * A run of one window has no fleet (spread_ns 0); and somebody who asks for what waits (`hurries`)
 * gets it as fast as the server takes it, until that fails. tests/bench/fleet.c has the figures.
 */
#ifndef DELIVER_RETRY_H
#define DELIVER_RETRY_H

#include "deliver/backend.h"

#define RETRY_BASE_NS UINT64_C(1000000000)
#define RETRY_MOST_NS (60 * RETRY_BASE_NS)
#define RETRY_AFTER_MOST_NS (600 * RETRY_BASE_NS)
#define RETRY_PROBE_NS (15 * RETRY_BASE_NS)
#define RETRY_CONFIG_NS (300 * RETRY_BASE_NS)
#define RETRY_PACE_NS (RETRY_BASE_NS / 5) /* at most, between two of the backlog in a hurry */

struct retry {
    unsigned failures;   /* in a row */
    unsigned probes;     /* of these, that somebody has to change something for */
    uint64_t next_ns;    /* monotonic: not before */
    uint64_t backlog_ns; /* the backlog: not before */
    uint64_t spread_ns;  /* 0: no fleet */
    bool hurries;
    uint64_t random;     /* state; seeded by the caller, so that no two instances keep step */
};

/* 0 … most_ns */
uint64_t retry_jitter(struct retry *retry, uint64_t most_ns);

/* After an attempt. retry_after_ns 0: the server did not say. */
void retry_note(struct retry *retry, enum verdict verdict, uint64_t retry_after_ns,
                uint64_t now_ns);

/* After a response, when the next one is of the backlog. */
void retry_pace(struct retry *retry, uint64_t now_ns);

/* What can be sent. Sequences grow with age's end: a larger one is newer. */
struct retry_choice {
    bool any_live;         /* the newest window is in memory … */
    bool live_is_fresh;    /* … and was never tried */
    bool any_backlog;      /* something older waits */
};

/* RETRY_WAIT: there is something, whose time has not come. */
enum retry_next { RETRY_NOTHING, RETRY_WAIT, RETRY_LIVE, RETRY_BACKLOG };
enum retry_next retry_choose(const struct retry *retry, const struct retry_choice *choice,
                             uint64_t now_ns);

#endif
