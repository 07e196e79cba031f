/* How long the loop sleeps usually: of a run without perf events, by when it began and what was found since. */
#include "capture/run/pause.h"
#include "base/time.h"
#include "child.h"
#include "os/clock.h"
#include "test.h"

enum { FIRST_S = 100, EAGER_MS = 25, POLL_MS = 100, BUSY_MS = 250, IDLE_MS = 1000 };

struct scene {
    struct world world;
    struct settings settings;
    struct observer observer;
    struct rooms r;
    struct profile profile;
};

static void on_drain(void *context)
{
    (void)context;
}

/* A command's, FIRST_S after the machine's start. */
static void begin(struct scene *s, uint32_t command_pid, bool reads_runtimes)
{
    *s = (struct scene){.world = world_here()};
    struct shared *shared = &s->r.shared;
    const struct follow_hooks hooks = {.drain = on_drain, .context = s};
    shared->settings = &s->settings;
    shared->world = &s->world;
    shared->observer = reads_runtimes ? NULL : &s->observer;
    shared->frequency_hz = 99;
    shared->stops = true;
    shared->stops_hz = 19;
    shared->first_ns = FIRST_S * NS_PER_S;
    shared->command_pid = command_pid;
    CHECK(profile_init(&s->profile, 1 << 20, NULL));
    shared->window.profile = &s->profile;
    follow_init(&s->r.follow, shared, &hooks);
    s->r.follow.targets.any_on_proc = true;
    s->r.polling = polling_new(&s->r.follow);
    s->r.catching = catching_new(&s->r.follow, polling_accounting(s->r.polling));
    s->r.extra = extra_records_new(shared);
    s->r.waiting = waiting_new(shared, &s->r.stacks, NULL, &s->r.follow.targets, false);
    CHECK(s->r.polling != NULL && s->r.catching != NULL && s->r.extra != NULL && s->r.waiting != NULL);
}

static void end(struct scene *s)
{
    CHECK(catching_end(s->r.catching));
    waiting_concern.release(s->r.waiting);
    extra_records_concern.release(s->r.extra);
    catching_concern.release(s->r.catching);
    closing_concern.release(s->r.polling);
    follow_release(&s->r.follow);
    profile_release(&s->profile);
}

/* So long after the run began. */
static uint64_t pause_ms(const struct scene *s, uint64_t ms, bool idle)
{
    return pause_usual_ns(&s->r, idle, false, FIRST_S * NS_PER_S + ms * NS_PER_MS) / NS_PER_MS;
}

static void a_commands_first_second(void)
{
    struct scene s;
    begin(&s, 5, true);
    CHECK_INT(pause_ms(&s, 0, false), EAGER_MS);
    CHECK_INT(pause_ms(&s, 999, true), EAGER_MS);
    CHECK_INT(pause_ms(&s, 1000, false), POLL_MS);
    s.r.follow.targets.any_on_proc = false; /* nothing is there yet */
    CHECK_INT(pause_ms(&s, 999, true), EAGER_MS);
    CHECK_INT(pause_ms(&s, 1000, true), IDLE_MS);
    CHECK_INT(pause_ms(&s, 1000, false), BUSY_MS);
    end(&s);
}

static void nothing_to_be_found(void)
{
    struct scene s;
    begin(&s, 0, true); /* attached: whatever there is has begun before */
    CHECK_INT(pause_ms(&s, 0, false), POLL_MS);
    end(&s);
    begin(&s, 5, false);
    CHECK_INT(pause_ms(&s, 0, false), POLL_MS);
    end(&s);
}

static void something_is_found(void)
{
    struct scene s;
    pid_t pid = child_that_sleeps();
    begin(&s, (uint32_t)pid, true);
    targets_comm(&s.r.follow.targets, (uint32_t)pid, (uint32_t)pid, STR("app"), true);
    struct target *target = targets_find(&s.r.follow.targets, (uint32_t)pid);
    targets_set_mode(&s.r.follow.targets, target, CAPTURE_PROC);
    CHECK(targets_read_maps(&s.r.follow.targets, target));
    CHECK_INT(pause_ms(&s, 10, false), EAGER_MS);
    catching_search(s.r.catching, clock_mono_ns());
    bool read = catching_timer(s.r.catching) != NULL;
    uint64_t found_ms = pause_ms(&s, 20, false);
    end(&s);
    end_child(pid);
    if (!read) {
        SKIP("a child's memory cannot be read here");
    }
    CHECK_INT(found_ms, POLL_MS);
}

TESTS({"in a command's first second the loop looks again soon", a_commands_first_second},
      {"it does not where all has begun before, or no runtime is read", nothing_to_be_found},
      {"nor once something is read by a timer", something_is_found})
