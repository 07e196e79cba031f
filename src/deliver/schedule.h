/*
 * schedule: which of the windows that wait for one back end is next, and when.
 *
 * Pure: what waits in memory and in files is given as keys, the clock as a number; the uploader
 * (capture/upload/uploader_thread.c) does what is decided here, and so does tests/bench/fleet.c for ten
 * thousand at once.
 *
 *     schedule_begin(&schedule, seed, period_ns, now_ns)
 *     schedule_hold(&schedule, key, now_ns)                a window of full length has ended
 *     pick = schedule_next(&schedule, &waiting, now_ns)    send it, or come again at schedule_wake_ns
 *     schedule_try(&schedule, key, pick.next)              before it is sent
 *     schedule_note(&schedule, key, verdict, …)            what became of it
 *
 * Windows begin when the program does, and are as long as was asked for: none is shortened or
 * begun late for the fleet's sake, because what a file or a chart says of a minute is then about
 * that minute. What is moved is the moment of sending. An offset within the period, fixed for the
 * run, passes between a window's end and its first try (`held`): ten thousand that started in one
 * second send over a whole minute, each always at its own second of it. It is less than a period,
 * so that no more than one window is held; and at most a minute, however long the period is: nobody
 * waits longer for fresh figures, and no fleet makes more requests a second than one with the usual
 * period does. A window that ended before its time (somebody asked for it, the program ends) is in
 * step with nobody: it is not held, and takes a held one with it.
 *
 * The backlog of an earlier run begins after the offset, too; all of a fleet may have been
 * restarted because of an outage.
 */
#ifndef DELIVER_SCHEDULE_H
#define DELIVER_SCHEDULE_H

#include "deliver/retry.h"

/* When a window began, and which of the run it was: what order is by. */
struct window_key {
    uint64_t start_ms, sequence;
};

struct schedule {
    struct retry retry;
    uint64_t offset_ns;
    struct window_key after;  /* what failed last of the backlog */
    struct window_key newest; /* of all that were tried */
    struct window_key held;   /* it, and what is newer, not before … */
    uint64_t held_until_ns;   /* 0: nothing is held */
    bool sends_backlog;       /* what is tried now was picked as one of it */
};

/* The oldest first. */
struct schedule_waiting {
    const struct window_key *queue; /* in memory */
    size_t queued;
    bool filed;                     /* of the files the oldest behind `after` */
    struct window_key file;
};

struct schedule_pick {
    enum retry_next next;
    bool in_file;
    size_t at; /* in the queue */
};

bool window_key_less(struct window_key a, struct window_key b);

/* period_ns 0: a run of one window, without a fleet. The seed differs between instances. */
void schedule_begin(struct schedule *schedule, uint64_t seed, uint64_t period_ns, uint64_t now_ns);

void schedule_hold(struct schedule *schedule, struct window_key key, uint64_t now_ns);

/* A window has ended before its time: nothing is held any more, nor is one of the backlog while the
 * service is well. */
void schedule_let_go(struct schedule *schedule);

/* Somebody asked for what waits: at once, and as fast as it is taken. */
void schedule_hurry(struct schedule *schedule);

/* RETRY_NOTHING also when all that waits stands before `after`: schedule_again then. */
struct schedule_pick schedule_next(const struct schedule *schedule, const struct schedule_waiting *waiting,
                           uint64_t now_ns);

/* Begins again with the oldest; false when it did already. */
bool schedule_again(struct schedule *schedule);

/* After RETRY_WAIT: the earliest moment at which schedule_next may say something else. */
uint64_t schedule_wake_ns(const struct schedule *schedule, uint64_t now_ns);

void schedule_try(struct schedule *schedule, struct window_key key, enum retry_next picked);
void schedule_note(struct schedule *schedule, struct window_key key, enum verdict verdict,
               uint64_t retry_after_ns, uint64_t now_ns);

#endif
