/*
 * pause: how long the loop sleeps, and what wakes it.
 *
 * With perf its rings wake it when they are half full, and so does the end of what is followed; catchers when they have
 * much to hand over; signals. Where hundreds of tasks end per second, each of which would wake us, it sleeps beside the
 * rings for as long as they surely have room.
 */
#ifndef CAPTURE_RUN_PAUSE_H
#define CAPTURE_RUN_PAUSE_H

#include "capture/run/rooms.h"

struct pause {
    bool idle;          /* the last round found nothing */
    bool hurries;       /* somebody waits for the run's end */
    bool churns;        /* hundreds of tasks per second begin and end */
    uint64_t churn_ns;  /* monotonic: when that is judged again */
    uint64_t busy_ns;   /* monotonic: the last round that was not idle */
};

void pause_round(struct pause *p, struct rooms *r);

/* By what is captured and how: in the first second of a command it is short, until something is read by a timer.
 * `idle`: the last round found nothing; `calm`: nor did those of a while. */
uint64_t pause_usual_ns(const struct rooms *r, bool idle, bool calm, uint64_t now_ns);

#endif
