/* Looking at threads that wait, in a world that the test makes up: the thread is this program's own, what its files say
 * is not. */
#include "base/time.h"
#include "capture/stacks/readers.h"
#include "capture/stacks/waits.h"
#include "os/clock.h"
#include "target/stat.h"
#include "test.h"

#include <sys/syscall.h>
#include <unistd.h>

/* What the thread's files say. */
struct told {
    struct proc_schedstat times;
    char state;
    bool no_times, no_place;
    enum err_kind refused; /* its place is */
    bool runs_meanwhile;   /* whenever its place is read */
    unsigned places;       /* how often it was read */
};

struct scene {
    struct told told;
    struct world world;
    struct images images;
    struct targets targets;
    struct stacks stacks;
    struct profile profile;
    struct waits waits;
};

static bool place_of(struct told *told, char text[static 128], struct err *err)
{
    told->places++;
    told->times.slices += told->runs_meanwhile;
    if (told->refused != ERR_NONE) {
        return err_set(err, told->refused, 0, "refused");
    }
    snprintf(text, 128, "%d 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffc00 0x7f01\n", SYS_futex);
    return !told->no_place || err_set(err, ERR_GONE, 0, "no such file");
}

static bool text_of(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out, struct err *err)
{
    struct told *told = context;
    char text[128] = "";
    if (tid != pid) { /* an emulator's own threads */
        return err_set(err, ERR_GONE, 0, "no such thread");
    }
    if (strcmp(name, "schedstat") == 0) {
        snprintf(text, sizeof text, "%llu %llu %llu\n", (unsigned long long)told->times.cpu_ns,
                 (unsigned long long)told->times.wait_ns, (unsigned long long)told->times.slices);
    } else if (strcmp(name, "stat") == 0) {
        snprintf(text, sizeof text, "2 (a) %c 0 0 0 0 -1 0 0 0 0 0 0 15 0 0 20 -5 1 0 12 0 0\n", told->state);
    } else if (strcmp(name, "syscall") == 0 && !place_of(told, text, err)) {
        return false;
    }
    bool gone = text[0] == '\0' || (told->no_times && strcmp(name, "schedstat") == 0);
    buf_clear(out);
    buf_add(out, text, strlen(text));
    return !gone || err_set(err, ERR_GONE, 0, "no such file");
}

static bool read_nothing(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    (void)context, (void)address, (void)out, (void)len;
    return err_set(err, ERR_MALFORMED, 0, "not mapped");
}

static struct memory_reader no_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    (void)context, (void)pid, (void)moment_ns;
    return (struct memory_reader){.read = read_nothing};
}

static void begin(struct scene *s)
{
    *s = (struct scene){.told = {.times = {.cpu_ns = 100, .slices = 1}, .state = 'S'}};
    s->world = (struct world){.text = text_of, .memory = no_memory, .context = &s->told};
    images_init(&s->images, &s->world);
    targets_init(&s->targets, &s->images, false);
    CHECK(stacks_init(&s->stacks, &s->targets, NULL, NULL, 0));
    CHECK(profile_init(&s->profile, 1 << 20, NULL));
    targets_comm(&s->targets, (uint32_t)getpid(), (uint32_t)getpid(), STR("app"), true);
    CHECK(waits_init(&s->waits, &s->stacks, NULL, &s->targets, NULL));
}

static void end(struct scene *s)
{
    waits_release(&s->waits);
    stacks_release(&s->stacks);
    profile_release(&s->profile);
    targets_release(&s->targets);
    images_release(&s->images);
}

static void look(struct scene *s)
{
    waits_look(&s->waits, &s->profile, clock_mono_ns());
}

static void end_window(struct scene *s)
{
    waits_end_window(&s->waits, &s->profile, clock_mono_ns());
}

/* The time below a leaf of this name. */
static uint64_t waited_ns(const struct scene *s, const char *leaf)
{
    uint64_t sum_ns = 0;
    vec_each(&s->profile.waits, wait)
    {
        struct str name = profile_text(&s->profile, s->profile.frames.at[s->profile.nodes.at[wait->node].frame].name);
        sum_ns += str_eq(name, str_of(leaf)) ? wait->wait_ns : 0;
    }
    return sum_ns;
}

/* Waits as long as the thread is said to have run and waited for a CPU, and longer. */
static void run_for(struct scene *s, uint64_t cpu_ms, uint64_t wait_ms, uint64_t all_ms)
{
    clock_sleep_ns(all_ms * NS_PER_MS);
    s->told.times.cpu_ns += cpu_ms * NS_PER_MS;
    s->told.times.wait_ns += wait_ms * NS_PER_MS;
    s->told.times.slices += cpu_ms > 0;
}

static void times(void)
{
    struct scene s;
    begin(&s);
    uint64_t from_ns = clock_mono_ns();
    look(&s);
    CHECK_INT(s.profile.waits.len, 0); /* since when it waits is not known */
    uint64_t since_ns = clock_mono_ns();
    run_for(&s, 0, 0, 30);
    look(&s);
    run_for(&s, 11, 7, 40);
    uint64_t until_ns = clock_mono_ns();
    look(&s);
    uint64_t now_ns = clock_mono_ns(), waited = waited_ns(&s, "[waits: lock]");
    CHECK(waited >= until_ns - since_ns - 18 * NS_PER_MS);
    CHECK(waited <= now_ns - from_ns - 18 * NS_PER_MS);
    CHECK_INT(s.profile.threads.at[s.profile.waits.at[0].thread].tid, getpid());
    CHECK_INT(s.profile.samples.len, 1); /* none: it is no CPU time */
    end(&s);
}

static void one_reading(void)
{
    struct scene s;
    begin(&s);
    for (unsigned i = 0; i < 5; i++) {
        look(&s);
    }
    CHECK_INT(s.told.places, 1);
    run_for(&s, 1, 0, 2);
    look(&s);
    look(&s);
    CHECK_INT(s.told.places, 2);
    end_window(&s); /* nodes of the next profile are others */
    profile_clear(&s.profile);
    targets_end_window(&s.targets);
    look(&s);
    CHECK_INT(s.told.places, 3);
    end(&s);
}

static void ran_meanwhile(void)
{
    struct scene s;
    begin(&s);
    s.told.runs_meanwhile = true;
    for (unsigned i = 0; i < 5; i++) {
        look(&s);
        clock_sleep_ns(5 * NS_PER_MS);
    }
    CHECK_INT(s.told.places, 5);
    CHECK_INT(s.profile.waits.len, 0);
    end_window(&s);
    CHECK_INT(waited_ns(&s, "[waits: lock]"), 0);
    CHECK(waited_ns(&s, "[off-CPU]") >= 20 * NS_PER_MS);
    end(&s);
}

static void owed(void)
{
    struct scene s;
    begin(&s);
    s.told.state = 'R';
    look(&s);
    run_for(&s, 10, 0, 40);
    look(&s);
    CHECK_INT(s.profile.waits.len, 0);
    CHECK_INT(s.told.places, 0);
    s.told.state = 'S';
    run_for(&s, 1, 0, 2);
    look(&s);
    uint64_t waited = waited_ns(&s, "[waits: lock]");
    CHECK(waited >= 31 * NS_PER_MS);
    s.told.times.wait_ns += waited / 2; /* schedstat tells late that some of it was waiting for a CPU */
    look(&s);
    CHECK_INT(waited_ns(&s, "[waits: lock]"), waited);
    end_window(&s);
    CHECK_INT(waited_ns(&s, "[off-CPU]"), 0);
    end(&s);
}

static void another_thread(void)
{
    struct scene s;
    begin(&s);
    s.told.times = (struct proc_schedstat){.cpu_ns = 500, .wait_ns = 9 * NS_PER_S, .slices = 9};
    look(&s);
    clock_sleep_ns(20 * NS_PER_MS);
    s.told.times = (struct proc_schedstat){.cpu_ns = 100, .slices = 2}; /* its id was given to another */
    look(&s);
    CHECK_INT(s.profile.waits.len, 0);
    clock_sleep_ns(20 * NS_PER_MS);
    look(&s);
    CHECK(waited_ns(&s, "[waits: lock]") >= 20 * NS_PER_MS);
    end(&s);
}

static void refusals(void)
{
    struct scene s;
    begin(&s);
    s.told.refused = ERR_DENIED;
    look(&s);
    clock_sleep_ns(20 * NS_PER_MS);
    end_window(&s);
    CHECK_INT(s.waits.refusal.kind, ERR_DENIED);
    CHECK_INT(s.waits.refusal.pid, getpid());
    CHECK(waited_ns(&s, "[off-CPU]") >= 20 * NS_PER_MS); /* how long is told all the same */
    CHECK(!s.waits.any_stack);
    end(&s);
}

static void missing_files(void)
{
    struct scene s;
    begin(&s);
    s.told.no_place = true;
    look(&s);
    CHECK_INT(s.waits.refusal.kind, ERR_UNSUPPORTED);
    CHECK_TEXT(s.waits.refusal.file, "syscall");
    s.waits.refusal.kind = ERR_NONE;
    s.told.no_times = true;
    look(&s);
    CHECK_INT(s.waits.refusal.kind, ERR_UNSUPPORTED);
    CHECK_TEXT(s.waits.refusal.file, "schedstat");
    s.told.no_times = false;
    s.waits.refusal.kind = ERR_NONE;
    s.told.times = (struct proc_schedstat){0};
    look(&s);
    CHECK_INT(s.waits.refusal.kind, ERR_UNSUPPORTED); /* who sleeps has run: nothing is counted here */
    CHECK_TEXT(s.waits.refusal.file, "schedstat");
    s.waits.refusal.kind = ERR_NONE;
    s.told.state = 'R';
    look(&s);
    CHECK_INT(s.waits.refusal.kind, ERR_NONE); /* a new thread */
    end(&s);
}

static void excluded(void)
{
    struct scene s;
    begin(&s);
    struct target *target = targets_find(&s.targets, (uint32_t)getpid());
    target->filter.excluded = true;
    look(&s);
    clock_sleep_ns(20 * NS_PER_MS);
    end_window(&s);
    CHECK_INT(s.told.places, 0);
    CHECK_INT(s.profile.waits.len, 0);
    end(&s);
}

static void drawn_by_lot(void)
{
    struct scene s;
    begin(&s);
    uint64_t least_ns = UINT64_MAX, most_ns = 0;
    for (unsigned i = 0; i < 200; i++) {
        waits_look(&s.waits, &s.profile, NS_PER_S);
        uint64_t pause_ns = s.waits.next_ns - NS_PER_S;
        least_ns = pause_ns < least_ns ? pause_ns : least_ns;
        most_ns = pause_ns > most_ns ? pause_ns : most_ns;
    }
    CHECK(least_ns >= 50 * NS_PER_MS && least_ns < 60 * NS_PER_MS);
    CHECK(most_ns <= 150 * NS_PER_MS && most_ns > 140 * NS_PER_MS);
    s.waits.stretch = 4;
    waits_look(&s.waits, &s.profile, NS_PER_S);
    CHECK(s.waits.next_ns >= NS_PER_S + 200 * NS_PER_MS);
    end(&s);
}

static void note_plan(const void *state, void *plan, const struct runtime_thread *thread, struct memory_batch *memory,
                      struct runtime_stack *out)
{
    (void)thread, (void)memory, (void)out;
    *(void **)(uintptr_t)state = plan;
}

static void plan_is_aligned(void)
{
    struct scene s;
    void *plan = NULL;
    const struct runtime runtime = {.walk = note_plan};
    struct reader reader = {.runtime = &runtime, .state = &plan, .pid = 2, .serial = 1};
    begin(&s);
    CHECK_INT(waits_node(&s.waits, NULL, &reader, 2), 0);
    CHECK(plan != NULL);
    CHECK_INT((uintptr_t)plan % 16, 0);
    end(&s);
}

TESTS_THAT_MEASURE({"how long a thread waits is the clock's time less what it ran and waited for a CPU", times},
      {"its stack is read once per wait and window", one_reading},
      {"a stack is not believed when the thread ran while it was read", ran_meanwhile},
      {"time without a place goes to the next one, and none is counted twice", owed},
      {"a thread that has another's id begins anew", another_thread},
      {"where a thread may not be looked at its time is told, and the refusal", refusals},
      {"a system without the files is told from a thread that is new", missing_files},
      {"an excluded process is not looked at", excluded},
      {"looks come at moments drawn by lot, and the budget stretches them", drawn_by_lot},
      {"a runtime's plan of a waiting thread is aligned", plan_is_aligned})
