/* Threads that have events of two followers: seen by their samples, and counted once. */
#include "capture/follow/duplicates.h"
#include "os/perf_private.h"
#include "test.h"

#include <stdlib.h>

enum { PROCESS = 4000000, WORKER = PROCESS + 1 };

struct setting {
    struct settings settings;
    struct shared shared;
    struct follow follow;
    struct duplicates *duplicates;
    unsigned drains;
};

static void count_drain(void *context)
{
    ((struct setting *)context)->drains++;
}

static void follow(struct setting *s, uint32_t tid, uint64_t first_id)
{
    struct perf_follower *f = vec_push(&s->shared.perf->followers);
    *f = (struct perf_follower){.pid = PROCESS, .tid = tid, .fds = calloc(1, sizeof *f->fds)};
    f->end_fd = f->own_fd = -1;
    f->first_id = first_id;
    f->last_id = first_id + 1; /* of two CPUs */
}

static void begin(struct setting *s)
{
    *s = (struct setting){.shared = {.settings = &s->settings, .perf = perf_new(NULL)}};
    s->follow = (struct follow){.shared = &s->shared, .hooks = {.drain = count_drain, .context = s}};
    targets_init(&s->follow.targets, NULL, false);
    s->duplicates = duplicates_new(&s->follow);
    follow(s, PROCESS, 10);
    follow(s, WORKER, 20);
    follow(s, WORKER + 1, 30);
}

static void end(struct setting *s)
{
    perf_free(s->shared.perf);
    targets_release(&s->follow.targets);
    duplicates_concern.release(s->duplicates);
}

/* How many of a thread's samples, by the events they come from (0 ends them), are kept. */
static unsigned kept(struct setting *s, uint32_t tid, const uint64_t *events)
{
    unsigned count = 0;
    for (; *events != 0; events++) {
        const struct record sample = {
            .kind = RECORD_SAMPLE, .pid = PROCESS, .tid = tid, .event = *events};
        count += !duplicates_has(s->duplicates, &sample);
    }
    return count;
}

static void one_event(void)
{
    struct setting s;
    begin(&s);
    CHECK_INT(kept(&s, WORKER, (uint64_t[]){20, 21, 20, 0}), 3); /* another CPU's, of the same follower */
    CHECK_INT(kept(&s, PROCESS, (uint64_t[]){10, 10, 0}), 2);
    CHECK_INT(kept(&s, WORKER + 9, (uint64_t[]){11, 11, 0}), 2); /* inherited */
    CHECK_INT(kept(&s, WORKER, (uint64_t[]){5, 15, 99, 0}), 3); /* of followers that are gone */
    duplicates_concern.round(s.duplicates, 1);
    CHECK_INT(s.drains, 0);
    CHECK_INT(s.shared.perf->followers.len, 3);
    end(&s);
}

static void two_events(void)
{
    struct setting s;
    begin(&s);
    /* the first of each are one period each; from then on the later follower's are too many */
    CHECK_INT(kept(&s, WORKER, (uint64_t[]){10, 20, 11, 21, 10, 20, 11, 0}), 4);
    /* what has inherited from the worker has the process's, too */
    CHECK_INT(kept(&s, WORKER + 9, (uint64_t[]){20, 10, 0}), 1);
    duplicates_concern.round(s.duplicates, 1);
    CHECK_INT(s.drains, 1);
    CHECK_INT(s.shared.perf->followers.len, 2);
    CHECK_INT(s.shared.perf->followers.at[0].tid, PROCESS);
    CHECK_INT(s.shared.perf->followers.at[1].tid, WORKER + 1);
    CHECK_INT(kept(&s, WORKER, (uint64_t[]){10, 11, 10, 0}), 3);
    end(&s);
}

static void the_later_one_first(void)
{
    struct setting s;
    begin(&s);
    CHECK_INT(kept(&s, WORKER, (uint64_t[]){20, 10, 20, 10, 20, 10, 0}), 4);
    duplicates_concern.round(s.duplicates, 1);
    CHECK_INT(s.shared.perf->followers.len, 2);
    bool duplicate;
    CHECK_INT(perf_follower_of(s.shared.perf, 20, &duplicate), 0);
    end(&s);
}

/* An exec gives the process's id to the thread that called it, and its events are that thread's. */
static void an_id_changes_hands(void)
{
    struct setting s;
    begin(&s);
    CHECK_INT(kept(&s, PROCESS, (uint64_t[]){10, 11, 20, 20, 21, 0}), 5);
    duplicates_concern.round(s.duplicates, 1);
    CHECK_INT(s.drains, 0);
    end(&s);
}

static void counts_of_duplicates(void)
{
    struct setting s;
    begin(&s);
    s.shared.perf->followers.at[1].duplicate = true;
    s.shared.perf->followers.at[1].reported_ns = 7;
    perf_end_duplicates(s.shared.perf);
    CHECK_INT(s.shared.perf->ended_count_ns, 7); /* what was reported before stays reported */
    CHECK_INT(s.shared.perf->ended.len, 0);
    end(&s);
}

static void followers_by_event(void)
{
    struct setting s;
    begin(&s);
    static const struct {
        uint64_t event, follower;
    } cases[] = {{9, 0}, {10, 10}, {11, 10}, {12, 0}, {19, 0}, {21, 20}, {30, 30}, {31, 30}, {32, 0}, {0, 0}};
    bool duplicate;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(perf_follower_of(s.shared.perf, cases[i].event, &duplicate), cases[i].follower);
        CHECK(!duplicate);
    }
    perf_set_duplicate(s.shared.perf, 20);
    CHECK(perf_follower_of(s.shared.perf, 21, &duplicate) == 20 && duplicate);
    CHECK(perf_follower_of(s.shared.perf, 31, &duplicate) == 30 && !duplicate);
    perf_give_up(s.shared.perf, PROCESS);
    CHECK_INT(perf_follower_of(s.shared.perf, 10, &duplicate), 0); /* there are none */
    end(&s);
}

TESTS({"all samples of one follower's events count", one_event},
      {"of a thread with events of two followers the later one's are dropped, and end", two_events},
      {"whichever came first", the_later_one_first},
      {"an id that another thread gets is no second event", an_id_changes_hands},
      {"what a duplicate counted is nobody's", counts_of_duplicates},
      {"an event's id tells its follower", followers_by_event})
