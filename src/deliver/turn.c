#include "deliver/turn.h"

bool window_key_less(struct window_key a, struct window_key b)
{
    return a.start_ms != b.start_ms ? a.start_ms < b.start_ms : a.sequence < b.sequence;
}

void turn_begin(struct turn *turn, uint64_t seed, uint64_t period_ns, uint64_t now_ns)
{
    uint64_t spread_ns = period_ns < RETRY_MOST_NS ? period_ns : RETRY_MOST_NS;
    *turn = (struct turn){.retry = {.random = seed, .spread_ns = spread_ns}};
    if (spread_ns > 0) {
        turn->offset_ns = retry_jitter(&turn->retry, spread_ns - 1);
        turn->retry.backlog_ns = now_ns + turn->offset_ns;
    }
}

void turn_hold(struct turn *turn, struct window_key key, uint64_t now_ns)
{
    if (turn->offset_ns > 0) {
        turn->held = key;
        turn->held_until_ns = now_ns + turn->offset_ns;
    }
}

void turn_let_go(struct turn *turn)
{
    turn->held_until_ns = 0;
    turn->retry.backlog_ns = 0; /* heeded while there are no failures */
}

void turn_hurry(struct turn *turn)
{
    turn_let_go(turn);
    turn->retry.hurries = true;
    turn->retry.next_ns = 0;
}

/* How many in memory may be sent. */
static size_t count_free(const struct turn *turn, const struct turn_waiting *waiting, bool holds)
{
    size_t count = waiting->queued;
    while (holds && count > 0 && !window_key_less(waiting->queue[count - 1], turn->held)) {
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

struct turn_pick turn_next(const struct turn *turn, const struct turn_waiting *waiting,
                           uint64_t now_ns)
{
    bool holds = now_ns < turn->held_until_ns;
    size_t count = count_free(turn, waiting, holds);
    size_t oldest = first_behind(waiting->queue, count, turn->after);
    bool filed = waiting->filed && !(holds && !window_key_less(waiting->file, turn->held));
    const struct retry_choice choice = {
        .any_live = count > 0,
        .live_is_fresh = count > 0 && window_key_less(turn->newest, waiting->queue[count - 1]),
        .any_backlog = filed || oldest < count,
    };
    struct turn_pick pick = {.next = retry_choose(&turn->retry, &choice, now_ns)};
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

bool turn_again(struct turn *turn)
{
    bool any = (turn->after.start_ms | turn->after.sequence) != 0;
    turn->after = (struct window_key){0};
    return any;
}

uint64_t turn_wake_ns(const struct turn *turn, uint64_t now_ns)
{
    uint64_t held_ns = turn->held_until_ns, backlog_ns = turn->retry.backlog_ns;
    if (now_ns < turn->retry.next_ns) {
        return turn->retry.next_ns;
    }
    bool held_first = held_ns > now_ns && (backlog_ns <= now_ns || held_ns < backlog_ns);
    return held_first ? held_ns : backlog_ns;
}

void turn_try(struct turn *turn, struct window_key key, enum retry_next picked)
{
    turn->sends_backlog = picked == RETRY_BACKLOG;
    turn->newest = window_key_less(turn->newest, key) ? key : turn->newest;
}

/* One of the backlog that fails while the service takes others steps back behind them: one that a
 * server cannot digest does not hold up the rest. */
void turn_note(struct turn *turn, struct window_key key, enum verdict verdict,
               uint64_t retry_after_ns, uint64_t now_ns)
{
    struct retry *retry = &turn->retry;
    bool was_down = retry->failures > 0;
    if (verdict == VERDICT_LATER && !was_down && window_key_less(key, turn->newest)) {
        turn->after = key;
    }
    retry_note(retry, verdict, retry_after_ns, now_ns);
    bool answered = verdict == VERDICT_TAKEN || verdict == VERDICT_REFUSED;
    if (answered && (was_down || turn->sends_backlog)) {
        retry_pace(retry, now_ns);
    }
}
