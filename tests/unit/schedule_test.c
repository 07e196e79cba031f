/* Which window is next for a back end, and when: keys and times in, decisions out. */
#include "test.h"

#include "deliver/schedule.h"

#define S RETRY_BASE_NS
#define PERIOD (60 * S)

static const uint64_t now = 1000 * S;

/* The window that began in minute n. */
static struct window_key minute(uint64_t n)
{
    return (struct window_key){n * 60000, n};
}

struct expected {
    enum retry_next next;
    bool in_file;
    size_t at;
};

/* What is next of the minutes in memory (0 ends them) and the oldest file (0: none). */
static void check_next(const struct schedule *turn, const uint64_t *minutes, uint64_t file,
                       uint64_t at_ns, struct expected expected)
{
    struct window_key queue[4];
    struct schedule_waiting waiting = {.queue = queue, .filed = file > 0, .file = minute(file)};
    for (; minutes[waiting.queued] != 0; waiting.queued++) {
        queue[waiting.queued] = minute(minutes[waiting.queued]);
    }
    struct schedule_pick pick = schedule_next(turn, &waiting, at_ns);
    CHECK_INT(pick.next, expected.next);
    if (pick.next == expected.next && pick.next >= RETRY_LIVE) {
        CHECK_INT(pick.in_file, expected.in_file);
        CHECK(pick.in_file || pick.at == expected.at);
    }
}

static void offsets_are_spread_over_the_period(void)
{
    /* 6000 instances, 100 for each second of a minute: none has more than 1.5 times that */
    unsigned seconds[60] = {0};
    for (uint64_t seed = 0; seed < 6000; seed++) {
        struct schedule turn;
        schedule_begin(&turn, seed, PERIOD, now);
        CHECK(turn.offset_ns < PERIOD);
        seconds[turn.offset_ns / S % 60]++;
    }
    for (unsigned i = 0; i < 60; i++) {
        CHECK(seconds[i] > 50 && seconds[i] < 150);
    }
}

static void an_offset_is_less_than_the_period_and_than_a_minute(void)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct schedule turn;
        schedule_begin(&turn, seed, S, now);
        CHECK(turn.offset_ns < S);
        schedule_begin(&turn, seed, 86400 * S, now);
        CHECK(turn.offset_ns < 60 * S);
        schedule_begin(&turn, seed, 0, now); /* one window */
        CHECK_INT(turn.offset_ns, 0);
        CHECK_INT(turn.retry.backlog_ns, 0);
    }
}

static void an_offset_stays(void)
{
    struct schedule turn;
    schedule_begin(&turn, 7, PERIOD, now);
    uint64_t first = turn.offset_ns;
    for (uint64_t i = 1; i < 100; i++) {
        schedule_hold(&turn, minute(i), now + i * PERIOD);
        CHECK(turn.held_until_ns == now + i * PERIOD + first);
        schedule_try(&turn, minute(i), RETRY_LIVE);
        schedule_note(&turn, minute(i), i % 5 == 0 ? VERDICT_LATER : VERDICT_TAKEN, 0, now + i * PERIOD);
    }
}

static void a_window_is_held_in_memory_and_in_its_file(void)
{
    struct schedule turn = {.offset_ns = 30 * S};
    schedule_hold(&turn, minute(5), now);
    check_next(&turn, (uint64_t[]){5, 0}, 0, now, (struct expected){.next = RETRY_WAIT});
    check_next(&turn, (uint64_t[]){0}, 5, now, (struct expected){.next = RETRY_WAIT});
    check_next(&turn, (uint64_t[]){5, 0}, 5, now + 30 * S - 1, (struct expected){.next = RETRY_WAIT});
    CHECK(schedule_wake_ns(&turn, now) == now + 30 * S);
    check_next(&turn, (uint64_t[]){5, 0}, 5, now + 30 * S, (struct expected){RETRY_LIVE, false, 0});
    /* an older one is not held up by it */
    check_next(&turn, (uint64_t[]){4, 5, 0}, 4, now, (struct expected){RETRY_LIVE, false, 0});
    check_next(&turn, (uint64_t[]){5, 0}, 3, now, (struct expected){RETRY_BACKLOG, true, 0});
}

static void the_one_before_goes_when_a_window_ends(void)
{
    struct schedule turn = {.offset_ns = 30 * S};
    schedule_hold(&turn, minute(5), now);
    schedule_hold(&turn, minute(6), now + S);
    check_next(&turn, (uint64_t[]){5, 6, 0}, 0, now + S, (struct expected){RETRY_LIVE, false, 0});
    schedule_let_go(&turn); /* and a third ended early: somebody asked for it */
    check_next(&turn, (uint64_t[]){5, 6, 7, 0}, 0, now + S, (struct expected){RETRY_LIVE, false, 2});
}

static void the_newest_then_the_oldest(void)
{
    struct schedule turn = {.newest = minute(9), .retry = {.failures = 3}};
    check_next(&turn, (uint64_t[]){7, 8, 9, 0}, 1, now, (struct expected){RETRY_LIVE, false, 2});
    schedule_note(&turn, minute(9), VERDICT_TAKEN, 0, now);
    uint64_t then = turn.retry.backlog_ns; /* no fleet: within 0.2 s */
    CHECK(then >= now + S / 10 && then <= now + S / 5);
    check_next(&turn, (uint64_t[]){7, 8, 0}, 1, now, (struct expected){.next = RETRY_WAIT});
    CHECK(schedule_wake_ns(&turn, now) == then);
    check_next(&turn, (uint64_t[]){7, 8, 0}, 1, then, (struct expected){RETRY_BACKLOG, true, 0});
    check_next(&turn, (uint64_t[]){7, 8, 0}, 7, then, (struct expected){RETRY_BACKLOG, false, 0});
    check_next(&turn, (uint64_t[]){7, 10, 0}, 1, now, (struct expected){RETRY_LIVE, false, 1});
    check_next(&turn, (uint64_t[]){0}, 0, then, (struct expected){.next = RETRY_NOTHING});
}

static void a_new_window_does_not_put_the_backlog_off(void)
{
    struct schedule turn;
    schedule_begin(&turn, 3, PERIOD, now);
    turn.retry.backlog_ns = now + 7;
    schedule_try(&turn, minute(9), RETRY_LIVE);
    schedule_note(&turn, minute(9), VERDICT_TAKEN, 0, now); /* fresh, and all is well */
    CHECK(turn.retry.backlog_ns == now + 7);
    schedule_try(&turn, minute(2), RETRY_BACKLOG);
    schedule_note(&turn, minute(2), VERDICT_REFUSED, 0, now); /* it was a request, too */
    CHECK(turn.retry.backlog_ns >= now + 30 * S && turn.retry.backlog_ns <= now + 60 * S);
}

static void one_that_a_server_cannot_digest_steps_back(void)
{
    struct schedule turn = {.newest = minute(9)};
    schedule_note(&turn, minute(2), VERDICT_LATER, 0, now);
    check_next(&turn, (uint64_t[]){2, 4, 0}, 0, turn.retry.next_ns, (struct expected){RETRY_LIVE, false, 1});
    schedule_note(&turn, minute(4), VERDICT_TAKEN, 0, now);
    uint64_t then = turn.retry.backlog_ns;
    check_next(&turn, (uint64_t[]){2, 5, 6, 0}, 0, then, (struct expected){RETRY_BACKLOG, false, 1});
    check_next(&turn, (uint64_t[]){0}, 0, then, (struct expected){.next = RETRY_NOTHING});
    CHECK(schedule_again(&turn));
    check_next(&turn, (uint64_t[]){2, 5, 6, 0}, 0, then, (struct expected){RETRY_BACKLOG, false, 0});
    CHECK(!schedule_again(&turn));
}

static void an_earlier_runs_backlog_begins_after_the_offset(void)
{
    struct schedule turn;
    schedule_begin(&turn, 11, PERIOD, now);
    check_next(&turn, (uint64_t[]){0}, 3, now, (struct expected){.next = RETRY_WAIT});
    CHECK(schedule_wake_ns(&turn, now) == now + turn.offset_ns);
    uint64_t then = now + turn.offset_ns;
    check_next(&turn, (uint64_t[]){0}, 3, then, (struct expected){RETRY_BACKLOG, true, 0});
    schedule_try(&turn, minute(3), RETRY_BACKLOG);
    schedule_note(&turn, minute(3), VERDICT_TAKEN, 0, then);
    check_next(&turn, (uint64_t[]){0}, 4, then, (struct expected){.next = RETRY_WAIT});
}

static void a_hurry_waits_for_nothing(void)
{
    struct schedule turn;
    schedule_begin(&turn, 11, PERIOD, now);
    schedule_hold(&turn, minute(5), now);
    schedule_note(&turn, minute(5), VERDICT_CONFIG, 0, now);
    check_next(&turn, (uint64_t[]){5, 0}, 3, now + S, (struct expected){.next = RETRY_WAIT});
    schedule_hurry(&turn);
    check_next(&turn, (uint64_t[]){5, 0}, 3, now + S, (struct expected){RETRY_LIVE, false, 0});
    schedule_try(&turn, minute(5), RETRY_LIVE);
    schedule_note(&turn, minute(5), VERDICT_TAKEN, 0, now + S);
    check_next(&turn, (uint64_t[]){0}, 3, now + S + S / 5, (struct expected){RETRY_BACKLOG, true, 0});
}

static void a_back_off_ends_when_it_ends(void)
{
    /* whatever else is waited for: while a service is away it is asked at the back-off's pace */
    struct schedule turn = {.offset_ns = 50 * S};
    schedule_hold(&turn, minute(6), now);
    turn.retry = (struct retry){.failures = 2, .next_ns = now + 3 * S, .backlog_ns = now + 40 * S};
    check_next(&turn, (uint64_t[]){5, 6, 0}, 0, now, (struct expected){.next = RETRY_WAIT});
    CHECK(schedule_wake_ns(&turn, now) == now + 3 * S);
    check_next(&turn, (uint64_t[]){5, 6, 0}, 0, now + 3 * S, (struct expected){RETRY_LIVE, false, 0});
}

TESTS({"offsets are spread over the period", offsets_are_spread_over_the_period},
      {"an offset is less than the period, and than a minute",
       an_offset_is_less_than_the_period_and_than_a_minute},
      {"an offset stays the same for the run", an_offset_stays},
      {"a window is held in memory and in its file", a_window_is_held_in_memory_and_in_its_file},
      {"no more than one window is held", the_one_before_goes_when_a_window_ends},
      {"the newest goes first, then the oldest at its pace", the_newest_then_the_oldest},
      {"a new window does not put the backlog off", a_new_window_does_not_put_the_backlog_off},
      {"one that a server cannot digest steps back", one_that_a_server_cannot_digest_steps_back},
      {"an earlier run's backlog begins after the offset",
       an_earlier_runs_backlog_begins_after_the_offset},
      {"a hurry waits for nothing", a_hurry_waits_for_nothing},
      {"a back-off ends when it ends", a_back_off_ends_when_it_ends})
