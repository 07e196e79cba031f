/* Decides which of the windows that wait for a back end is sent next and when: fresh ones first,
 * each after this instance's offset within the period, the backlog at a pace that a fleet can have.
 * Pure: times and keys come as numbers. */
#include "deliver/schedule.h"

bool window_key_less(struct window_key a, struct window_key b)
{
    return a.start_ms != b.start_ms ? a.start_ms < b.start_ms : a.sequence < b.sequence;
}

void schedule_begin(struct schedule *schedule, uint64_t seed, uint64_t period_ns, uint64_t now_ns)
{
    uint64_t spread_ns = period_ns < RETRY_MOST_NS ? period_ns : RETRY_MOST_NS;
    *schedule = (struct schedule){.retry = {.random = seed, .spread_ns = spread_ns}};
    if (spread_ns > 0) {
        schedule->offset_ns = retry_jitter(&schedule->retry, spread_ns - 1);
        schedule->retry.backlog_ns = now_ns + schedule->offset_ns;
    }
}

void schedule_hold(struct schedule *schedule, struct window_key key, uint64_t now_ns)
{
    if (schedule->offset_ns > 0) {
        schedule->held = key;
        schedule->held_until_ns = now_ns + schedule->offset_ns;
    }
}

void schedule_let_go(struct schedule *schedule)
{
    schedule->held_until_ns = 0;
    schedule->retry.backlog_ns = 0; /* applied while there are no failures */
}

void schedule_hurry(struct schedule *schedule)
{
    schedule_let_go(schedule);
    schedule->retry.hurries = true;
    schedule->retry.next_ns = 0;
}

/* How many in memory may be sent. */
static size_t count_free(const struct schedule *schedule, const struct schedule_waiting *waiting, bool holds)
{
    size_t count = waiting->queued;
    while (holds && count > 0 && !window_key_less(waiting->queue[count - 1], schedule->held)) {
        count--;
    }
    return count;
}

/* The first in memory behind `after`; `count` when there is none. */
static size_t first_behind(const struct window_key *queue, size_t count, struct window_key after)
{
    size_t at = 0;
    while (at < count && !window_key_less(after, queue[at])) {
        at++;
    }
    return at;
}

struct schedule_pick schedule_next(const struct schedule *schedule, const struct schedule_waiting *waiting,
                           uint64_t now_ns)
{
    bool holds = now_ns < schedule->held_until_ns;
    size_t count = count_free(schedule, waiting, holds);
    size_t oldest = first_behind(waiting->queue, count, schedule->after);
    bool filed = waiting->filed && !(holds && !window_key_less(waiting->file, schedule->held));
    const struct retry_choice choice = {
        .any_live = count > 0,
        .live_is_fresh = count > 0 && window_key_less(schedule->newest, waiting->queue[count - 1]),
        .any_backlog = filed || oldest < count,
    };
    struct schedule_pick pick = {.next = retry_choose(&schedule->retry, &choice, now_ns)};
    if (pick.next == RETRY_LIVE) {
        pick.at = count - 1;
    } else if (pick.next == RETRY_BACKLOG) {
        pick.at = oldest;
        pick.in_file = filed && (oldest == count ||
                                 window_key_less(waiting->file, waiting->queue[oldest]));
    } else if (pick.next == RETRY_NOTHING && holds && (waiting->filed || waiting->queued > 0)) {
        pick.next = RETRY_WAIT;
    }
    return pick;
}

bool schedule_again(struct schedule *schedule)
{
    bool any = (schedule->after.start_ms | schedule->after.sequence) != 0;
    schedule->after = (struct window_key){0};
    return any;
}

uint64_t schedule_wake_ns(const struct schedule *schedule, uint64_t now_ns)
{
    uint64_t held_ns = schedule->held_until_ns, backlog_ns = schedule->retry.backlog_ns;
    if (now_ns < schedule->retry.next_ns) {
        return schedule->retry.next_ns;
    }
    bool held_first = held_ns > now_ns && (backlog_ns <= now_ns || held_ns < backlog_ns);
    return held_first ? held_ns : backlog_ns;
}

void schedule_try(struct schedule *schedule, struct window_key key, enum retry_next picked)
{
    schedule->sends_backlog = picked == RETRY_BACKLOG;
    schedule->newest = window_key_less(schedule->newest, key) ? key : schedule->newest;
}

/* One of the backlog that fails while the service takes others steps back behind them: one that a
 * server cannot digest does not hold up the rest. */
void schedule_note(struct schedule *schedule, struct window_key key, enum verdict verdict,
               uint64_t retry_after_ns, uint64_t now_ns)
{
    struct retry *retry = &schedule->retry;
    bool was_down = retry->failures > 0;
    if (verdict == VERDICT_LATER && !was_down && window_key_less(key, schedule->newest)) {
        schedule->after = key;
    }
    retry_note(retry, verdict, retry_after_ns, now_ns);
    bool answered = verdict == VERDICT_TAKEN || verdict == VERDICT_REFUSED;
    if (answered && (was_down || schedule->sends_backlog)) {
        retry_pace(retry, now_ns);
    }
}
