/* When a delivery is tried again: times in, decisions out. */
#include "test.h"

#include "deliver/retry.h"

#define S RETRY_BASE_NS

static const uint64_t now = 1000 * S;

/* The pause after `verdict`, for a state that has failed `failures` times. */
static uint64_t pause_after(unsigned failures, enum verdict verdict, uint64_t retry_after_ns,
                            uint64_t seed)
{
    struct retry retry = {.failures = failures, .random = seed};
    retry_note(&retry, verdict, retry_after_ns, now);
    return retry.next_ns - now;
}

static void backoff_doubles_up_to_a_minute(void)
{
    /* rand(0, min(60 s, 1 s << n)): of many the largest is near the bound, the mean near half of it */
    static const uint64_t most_s[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
    for (unsigned n = 0; n < sizeof most_s / sizeof most_s[0]; n++) {
        uint64_t most = 0, sum = 0;
        for (uint64_t seed = 0; seed < 1000; seed++) {
            uint64_t pause = pause_after(n, VERDICT_LATER, 0, seed * 7919);
            most = pause > most ? pause : most;
            sum += pause / 1000;
        }
        CHECK(most <= most_s[n] * S);
        CHECK(most > most_s[n] * S / 10 * 9);
        CHECK(sum > most_s[n] * S / 100 * 42 && sum < most_s[n] * S / 100 * 58);
    }
    CHECK(pause_after(UINT32_MAX - 1, VERDICT_LATER, 0, 1) <= 60 * S); /* the count does not wrap into a shift */
}

static void retry_after_is_a_floor_of_at_most_ten_minutes(void)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint64_t pause = pause_after(0, VERDICT_LATER, 30 * S, seed);
        CHECK(pause >= 30 * S && pause <= 90 * S);
        pause = pause_after(0, VERDICT_LATER, 86400 * S, seed);
        CHECK(pause >= 600 * S && pause <= 660 * S);
    }
}

static void a_moment_that_all_were_told_is_none_that_all_come_at(void)
{
    /* told 1 … 60 s ahead of it, each by what is left then; in no second after it more than a 20th,
     * which is 3 times what a minute has on average */
    static unsigned come[120];
    enum { ALL = 60000 };
    for (unsigned i = 0; i < ALL; i++) {
        uint64_t told_ns = S + 59 * S * i / ALL;
        uint64_t pause = pause_after(0, VERDICT_LATER, told_ns, i);
        come[(pause - told_ns) / S]++;
    }
    for (unsigned second = 0; second < 120; second++) {
        CHECK(come[second] < ALL / 20);
    }
}

static void two_instances_do_not_keep_step(void)
{
    CHECK(pause_after(5, VERDICT_LATER, 0, 1) != pause_after(5, VERDICT_LATER, 0, 2));
    struct retry retry = {.random = 1};
    retry_note(&retry, VERDICT_LATER, 60 * S, now);
    uint64_t first = retry.next_ns;
    retry.failures = 0;
    retry_note(&retry, VERDICT_LATER, 60 * S, now);
    CHECK(first != retry.next_ns);
}

/* One 404 while somebody deploys costs seconds; the tries before may have failed for other reasons. */
static void a_wrong_setting_is_probed_and_then_tried_every_five_minutes(void)
{
    static const uint64_t least[] = {15, 30, 60, 300, 300, 300};
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct retry retry = {.random = seed, .failures = 7};
        for (unsigned i = 0; i < sizeof least / sizeof least[0]; i++) {
            retry_note(&retry, VERDICT_CONFIG, 0, now);
            uint64_t pause = retry.next_ns - now, spread = least[i] < 60 ? least[i] : 60;
            CHECK(pause >= least[i] * S && pause <= (least[i] + spread) * S);
        }
        retry_note(&retry, VERDICT_TAKEN, 0, now);
        retry_note(&retry, VERDICT_CONFIG, 0, now);
        CHECK(retry.next_ns - now <= 30 * S);
    }
    uint64_t pause = pause_after(0, VERDICT_CONFIG, 500 * S, 0);
    CHECK(pause >= 500 * S && pause <= 560 * S);
}

static void an_answer_ends_the_backoff(void)
{
    struct retry retry = {.failures = 7};
    retry_note(&retry, VERDICT_TAKEN, 0, now);
    CHECK_INT(retry.failures, 0);
    CHECK(retry.next_ns == now);
    retry.failures = 7;
    retry_note(&retry, VERDICT_REFUSED, 0, now); /* it was one window that was refused, the service is well */
    CHECK_INT(retry.failures, 0);
    retry.failures = 7;
    retry_note(&retry, VERDICT_SMALLER, 0, now);
    CHECK_INT(retry.failures, 7);
    CHECK(retry.next_ns == now);
}

static void check_pace(struct retry retry, uint64_t least_ns, uint64_t most_ns)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (unsigned i = 0; i < 1000; i++) {
        retry_pace(&retry, now);
        least = retry.backlog_ns < least ? retry.backlog_ns : least;
        most = retry.backlog_ns > most ? retry.backlog_ns : most;
    }
    uint64_t tenth = (most_ns - least_ns) / 10;
    CHECK(least >= now + least_ns && least < now + least_ns + tenth);
    CHECK(most <= now + most_ns && most > now + most_ns - tenth);
    CHECK(retry.next_ns == 0); /* a new window need not wait for it */
}

static void the_backlog_is_paced(void)
{
    check_pace((struct retry){.random = 3}, S / 10, S / 5); /* no fleet */
    check_pace((struct retry){.random = 3, .spread_ns = 60 * S}, 30 * S, 60 * S);
    check_pace((struct retry){.random = 3, .spread_ns = 60 * S, .hurries = true}, S / 10, S / 5);
}

static void a_hurry_ends_with_a_failure(void)
{
    static const enum verdict failures[] = {VERDICT_LATER, VERDICT_CONFIG};
    for (unsigned i = 0; i < 2; i++) {
        struct retry retry = {.hurries = true};
        retry_note(&retry, VERDICT_TAKEN, 0, now);
        CHECK(retry.hurries);
        retry_note(&retry, failures[i], 0, now);
        CHECK(!retry.hurries);
    }
}

static enum retry_next choose(unsigned failures, bool live, bool fresh, bool backlog)
{
    const struct retry retry = {.failures = failures};
    return retry_choose(&retry, &(struct retry_choice){live, fresh, backlog}, now);
}

static void the_newest_goes_first_then_the_backlog(void)
{
    CHECK_INT(choose(0, false, false, false), RETRY_NOTHING);
    CHECK_INT(choose(0, true, true, true), RETRY_LIVE);
    CHECK_INT(choose(0, true, false, true), RETRY_BACKLOG); /* the newest has had its turn */
    CHECK_INT(choose(3, true, false, true), RETRY_LIVE);    /* the service is down: ask with the newest */
    CHECK_INT(choose(3, false, false, true), RETRY_BACKLOG);
    CHECK_INT(choose(0, true, false, false), RETRY_LIVE);
}

static void what_is_not_due_waits(void)
{
    struct retry retry = {.backlog_ns = now + 1};
    static const struct retry_choice none = {0}, old = {.any_live = true, .any_backlog = true},
                                     fresh = {true, true, true};
    CHECK_INT(retry_choose(&retry, &none, now), RETRY_NOTHING);
    CHECK_INT(retry_choose(&retry, &old, now), RETRY_WAIT);
    CHECK_INT(retry_choose(&retry, &fresh, now), RETRY_LIVE);
    CHECK_INT(retry_choose(&retry, &old, now + 1), RETRY_BACKLOG);
    retry.failures = 1; /* then the back-off alone counts */
    CHECK_INT(retry_choose(&retry, &old, now), RETRY_LIVE);
    retry.next_ns = now + 1;
    CHECK_INT(retry_choose(&retry, &fresh, now), RETRY_WAIT);
    CHECK_INT(retry_choose(&retry, &none, now), RETRY_NOTHING);
}

TESTS({"back-off doubles up to a minute, with full jitter", backoff_doubles_up_to_a_minute},
      {"Retry-After is a floor, of at most ten minutes", retry_after_is_a_floor_of_at_most_ten_minutes},
      {"a moment that all were told is none that all come at",
       a_moment_that_all_were_told_is_none_that_all_come_at},
      {"two instances do not keep step", two_instances_do_not_keep_step},
      {"a wrong setting is probed, then tried every five minutes",
       a_wrong_setting_is_probed_and_then_tried_every_five_minutes},
      {"an answer ends the back-off", an_answer_ends_the_backoff},
      {"the backlog is paced", the_backlog_is_paced},
      {"a hurry ends with a failure", a_hurry_ends_with_a_failure},
      {"the newest goes first, then the backlog", the_newest_goes_first_then_the_backlog},
      {"what is not due waits", what_is_not_due_waits})
