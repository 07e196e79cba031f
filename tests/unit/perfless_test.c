/* Which threads ran, by timers: perf-less catchers read threads of a child that burn CPU time and sleep. The
 * runtime is one of this file: a thread's "stack" is one word that says what it does. */
#include "base/random.h"
#include "base/time.h"
#include "capture/catch/perfless_private.h"
#include "child.h"
#include "os/clock.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { MS = 1000000, HZ = 100, SLOTS = 2048, PHASES = 4 };

/* ---- the child ---- */

struct slot {
    volatile uint32_t tid, phase;
    volatile uint64_t used_ns; /* CPU time, by its own clock */
    volatile uint64_t turns;   /* a few nanoseconds each */
};

struct shared {
    struct slot slots[SLOTS];
    volatile uint32_t next;
    volatile bool stop;
};
static struct shared *shared;

static uint64_t own_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void burn(struct slot *slot, uint32_t phase, uint64_t ns)
{
    uint64_t until_ns = own_cpu_ns() + ns;
    slot->phase = phase;
    do {
        for (unsigned i = 0; i < 2000; i++) {
            slot->turns++;
        }
    } while ((slot->used_ns = own_cpu_ns()) < until_ns);
}

static void nap(struct slot *slot, uint64_t ns)
{
    slot->phase = 3;
    clock_sleep_ns(ns);
}

static struct slot *take_slot(void)
{
    struct slot *slot = &shared->slots[__atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)];
    slot->tid = (uint32_t)syscall(SYS_gettid);
    return slot;
}

static void *spins(void *context)
{
    (void)context;
    struct slot *slot = take_slot();
    for (;;) {
        burn(slot, 1, 300000);
        burn(slot, 2, 100000);
    }
    return NULL;
}

/* 2 ms of phase 1, a nap, 1 ms of phase 2, a nap: two thirds and one. */
static void *naps(void *context)
{
    (void)context;
    struct slot *slot = take_slot();
    for (;;) {
        burn(slot, 1, 2 * MS);
        nap(slot, 3 * MS);
        burn(slot, 2, 1 * MS);
        nap(slot, 1 * MS);
    }
    return NULL;
}

/* Asleep for 1.3 s, then busy for 0.2 s. */
static void *bursts(void *context)
{
    (void)context;
    struct slot *slot = take_slot();
    for (;;) {
        nap(slot, 1300 * (uint64_t)MS);
        burn(slot, 1, 200 * MS);
    }
    return NULL;
}

static void *sleeps(void *context)
{
    (void)context;
    take_slot();
    for (;;) {
        pause();
    }
    return NULL;
}

/* Short threads, one after the other. */
static void *burns_little(void *context)
{
    (void)context;
    burn(take_slot(), 1, 60 * MS);
    return NULL;
}

static void *starts_others(void *context)
{
    (void)context;
    take_slot();
    for (unsigned i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, burns_little, NULL);
        pthread_join(thread, NULL);
    }
    return sleeps(NULL);
}

static void *works_later(void *context)
{
    (void)context;
    struct slot *slot = take_slot();
    clock_sleep_ns(1500 * MS);
    for (unsigned i = 0; i < 30; i++) {
        burn(slot, 1, 5 * MS);
        burn(slot, 2, 5 * MS);
    }
    return sleeps(NULL);
}

/* The first thread works alone until a tenth of a second after a full one, and starts four. They sleep for longer than
 * they count as active, and then work. Who asks only once a second, because there was no other thread, knows that 0.4 s
 * late. */
static void *works_alone(void *context)
{
    (void)context;
    struct slot *slot = take_slot();
    burn(slot, 3, 600 * MS);
    while (clock_mono_ns() % (1000 * MS) / MS != 100) {
        burn(slot, 3, 1 * MS / 4);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, works_later, NULL);
    }
    for (;;) {
        pause();
    }
    return NULL;
}

/* A thread for each request: 2 ms of phase 1 and 1 ms of phase 2. */
static void *serves_one(void *context)
{
    (void)context;
    struct slot *slot = take_slot();
    burn(slot, 1, 2 * MS);
    burn(slot, 2, 1 * MS);
    slot->tid = 0;
    return NULL;
}

static void *serves(void *context)
{
    (void)context;
    take_slot();
    for (unsigned i = 0; i < SLOTS - 8; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, serves_one, NULL);
        pthread_join(thread, NULL);
    }
    return sleeps(NULL);
}

struct crew {
    void *(*work)(void *context);
    unsigned count;
};

__attribute__((noreturn)) static void be_child(const struct crew *crews, size_t count)
{
    pthread_attr_t attr;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    if (count == 0) {
        (void)works_alone(NULL);
    }
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < crews[i].count; k++) {
            pthread_t thread;
            pthread_create(&thread, &attr, crews[i].work, NULL);
        }
    }
    for (;;) {
        pause();
    }
}

/* ---- the runtime ---- */

static bool has_ended; /* the child: a tick may come before anybody knows */

static bool read_slot(const struct slot *slot, struct memory_batch *memory, struct slot *copy)
{
    struct memory_piece piece = {(uintptr_t)slot, copy, sizeof *copy, 0};
    bool read = memory_batch_read(memory, &piece, 1, NULL);
    CHECK(read || has_ended);
    return read;
}

/* 1: the next look does not return, as where the kernel does not let it; 2: one is held; 0: it goes on. */
static unsigned hold;

static void be_held(void)
{
    unsigned one = 1;
    if (__atomic_compare_exchange_n(&hold, &one, 2, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        while (__atomic_load_n(&hold, __ATOMIC_SEQ_CST) == 2) {
            clock_sleep_ns(1 * MS);
        }
    }
}

/* Reads twice, some 30 µs apart: a thread that stands still has made no turn in between. A process may end
 * at any moment of it. */
static void walk(const void *state, void *plan, const struct runtime_thread *thread,
                 struct memory_batch *memory, struct runtime_stack *out)
{
    (void)state, (void)plan, (void)thread;
    be_held();
    out->end = RUNTIME_NO_THREAD;
    for (uint32_t i = 0; i < shared->next && i < SLOTS; i++) {
        if (shared->slots[i].tid != thread->tid) {
            continue;
        }
        struct slot first, last;
        out->end = RUNTIME_UNREADABLE;
        if (!read_slot(&shared->slots[i], memory, &first)) {
            return;
        }
        uint64_t until_ns = clock_mono_ns() + 30000;
        while (clock_mono_ns() < until_ns) {
        }
        if (!read_slot(&shared->slots[i], memory, &last)) {
            return;
        }
        out->frame[0] = (struct runtime_frame){.code = last.phase,
                                               .position = (uint32_t)(last.turns - first.turns)};
        out->count = 1;
        out->end = RUNTIME_COMPLETE;
        return;
    }
}

/* As an interpreter has a list of its threads, the newest first. */
static size_t running(const void *state, struct memory_batch *memory, uint32_t *tids, size_t most)
{
    size_t count = 0;
    (void)memory;
    for (uint32_t i = shared->next < SLOTS ? shared->next : SLOTS; state != NULL && i-- > 0 && count < most;) {
        tids[count] = shared->slots[i].tid;
        count += tids[count] != 0;
    }
    return count;
}

static const struct runtime words = {.name = "words", .walk = walk, .running = running};

/* ---- the sampler ---- */

static struct own_cost charged; /* by_time: as where CPU time is counted in ticks */

struct rig {
    pid_t pid;
    struct catch *catch;
    struct remote remote;
    uint64_t weights[PHASES], no_thread, unreadable, settled, samples, verdicts[CATCH_VERDICT_COUNT];
    uint64_t moved; /* proven, and yet not still */
    uint64_t largest; /* weight of a sample */
    uint64_t began_ns, used_before_ns, own_before_ns;
};

static void on_caught(void *context, unsigned cpu, const void *record, size_t len,
                      const struct caught *caught)
{
    struct rig *r = context;
    (void)cpu;
    CHECK(record == NULL && len == 0 && caught != NULL);
    CHECK_INT(caught->pid, r->pid);
    r->samples++;
    r->largest = caught->weight_ns > r->largest ? caught->weight_ns : r->largest;
    r->verdicts[caught->verdict]++;
    if (caught->end == RUNTIME_NO_THREAD) {
        r->no_thread += caught->weight_ns;
        return;
    }
    if (caught->end == RUNTIME_UNREADABLE) {
        CHECK(has_ended);
        r->unreadable += caught->weight_ns;
        return;
    }
    r->moved += caught->verdict == CATCH_PROVEN && caught->frame[0].position != 0;
    uint64_t phase = caught->frame_count > 0 ? caught->frame[0].code : 0;
    r->weights[phase < PHASES ? phase : 0] += caught->weight_ns;
}

static void on_settled(void *context, uint32_t pid, uint32_t tid, uint64_t cpu_ns)
{
    struct rig *r = context;
    CHECK(pid == (uint32_t)r->pid && tid != 0);
    r->settled += cpu_ns;
}

static uint64_t process_ns(const struct rig *r)
{
    uint64_t ns = 0;
    CHECK(clock_process_cpu_ns((uint32_t)r->pid, &ns));
    return ns;
}

/* `lists`: the runtime has a list of its threads. */
static bool begin_with(struct rig *r, const struct crew *crews, size_t count, unsigned threads, bool lists)
{
    struct err err = {0};
    *r = (struct rig){0};
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    fflush(stdout);
    r->pid = fork();
    if (r->pid == 0) {
        be_child(crews, count);
    }
    for (unsigned i = 0; i < 500 && shared->next < threads; i++) {
        clock_sleep_ns(10 * MS);
    }
    r->catch = catch_init(HZ, &err);
    catch_charge(r->catch, &charged);
    if (!remote_open(&r->remote, (uint32_t)r->pid, (uintptr_t)shared, &err)) {
        return false;
    }
    CHECK(catch_perfless(r->catch, &err));
    r->used_before_ns = process_ns(r);
    r->own_before_ns = clock_own_cpu_ns();
    r->began_ns = clock_mono_ns();
    const struct catch_target target = {.pid = (uint32_t)r->pid,
                                        .runtime = &words,
                                        .state = lists ? shared : NULL,
                                        .remote = &r->remote,
                                        .serial = 7};
    CHECK(catch_publish(r->catch, &target, 1));
    return true;
}

static bool begin(struct rig *r, const struct crew *crews, size_t count, unsigned threads)
{
    return begin_with(r, crews, count, threads, false);
}

static void run_for(struct rig *r, uint64_t ms)
{
    uint64_t until_ns = clock_mono_ns() + ms * MS;
    while (clock_mono_ns() < until_ns) {
        clock_sleep_ns(100 * MS);
        catch_drain(r->catch, on_caught, r);
    }
}

/* Returns what the process used meanwhile. */
static uint64_t end(struct rig *r)
{
    uint64_t used_ns = process_ns(r) - r->used_before_ns;
    kill(r->pid, SIGSTOP);
    clock_sleep_ns(30 * MS); /* a last tick */
    catch_drain(r->catch, on_caught, r);
    catch_settle(r->catch, on_settled, r);
    double wall_s = (double)(clock_mono_ns() - r->began_ns) / 1e9;
    printf("# %.2f s: used %.3f s, in samples %.3f %.3f %.3f (%.3f), unknown thread %.3f, settled %.3f; "
           "%lu samples, largest %.3f, proven %lu, late %lu, other CPU %lu, long %lu, moved %lu, asleep %lu; "
           "own %.2f %%\n",
           wall_s, (double)used_ns / 1e9, (double)r->weights[1] / 1e9, (double)r->weights[2] / 1e9,
           (double)r->weights[3] / 1e9, (double)r->weights[0] / 1e9, (double)r->no_thread / 1e9,
           (double)r->settled / 1e9, r->samples, (double)r->largest / 1e9, r->verdicts[0], r->verdicts[1],
           r->verdicts[2], r->verdicts[3], r->verdicts[4], r->verdicts[5],
           (double)(clock_own_cpu_ns() - r->own_before_ns) / 1e7 / wall_s);
    CHECK_INT(r->moved, 0);
    catch_stop(r->catch);
    remote_close(&r->remote);
    kill(r->pid, SIGKILL);
    CHECK(waitpid(r->pid, NULL, 0) == r->pid);
    return used_ns;
}

#define BEGIN(r, crews, threads)                                                                   \
    if (!begin(r, crews, sizeof(crews) / sizeof(crews)[0], threads)) {                             \
        SKIP("a child's memory cannot be read here");                                              \
    }

static bool is_about(uint64_t value, uint64_t due, unsigned percent)
{
    uint64_t most = due * percent / 100;
    return value + most >= due && value <= due + most;
}

static uint64_t in_samples(const struct rig *r)
{
    return r->weights[0] + r->weights[1] + r->weights[2] + r->weights[3] + r->no_thread +
           r->unreadable;
}

/* On a machine that others use as well six seconds are 200 samples: 11 points are three standard
 * deviations. */
static void two_that_spin(void)
{
    static const struct crew crews[] = {{spins, 2}};
    struct rig r;
    BEGIN(&r, crews, 2);
    run_for(&r, 6000);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 2));
    CHECK(is_about(r.weights[1] * 100, in_samples(&r) * 75, 15));
    CHECK(r.settled * 20 < used_ns);
}

/* They are met as ever, each is read, and none is called proven. */
static void none_is_proven(void)
{
    static const struct crew crews[] = {{spins, 1}, {sleeps, 3}};
    struct rig r;
    charged.by_time = true;
    bool good = begin(&r, crews, 2, 4);
    charged.by_time = false;
    if (!good) {
        SKIP("a child's memory cannot be read here");
    }
    run_for(&r, 2000);
    const char *trouble = catch_trouble(r.catch);
    CHECK(strstr(trouble, "does not tell when a thread runs") != NULL);
    uint64_t used_ns = end(&r);
    CHECK(r.verdicts[CATCH_UNPROVABLE] > 20 && r.verdicts[CATCH_UNPROVABLE] == r.samples);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 5));
    CHECK(r.weights[1] > r.weights[2]);
    CHECK(charged.awake_ns > 0);
}

static void one_that_naps(void)
{
    static const struct crew crews[] = {{naps, 1}};
    struct rig r;
    BEGIN(&r, crews, 1);
    run_for(&r, 6000);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 3));
    CHECK(is_about(r.weights[1] * 100, in_samples(&r) * 67, 20));
    CHECK(r.weights[3] * 20 < in_samples(&r)); /* not where it waits */
}

static void bursts_are_met(void)
{
    static const struct crew crews[] = {{bursts, 1}, {sleeps, 20}};
    struct rig r;
    BEGIN(&r, crews, 21);
    run_for(&r, 6000);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 5));
    CHECK(r.settled * 4 < used_ns);
}

static void more_than_cpus(void)
{
    static const struct crew crews[] = {{spins, 6}};
    struct rig r;
    BEGIN(&r, crews, 6);
    run_for(&r, 6000);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 3));
    CHECK(is_about(r.weights[1] * 100, in_samples(&r) * 75, 15));
}

static void threads_come_and_go(void)
{
    static const struct crew crews[] = {{starts_others, 1}};
    struct rig r;
    BEGIN(&r, crews, 1);
    run_for(&r, 3000);
    uint64_t used_ns = end(&r);
    CHECK(in_samples(&r) + r.settled <= used_ns + used_ns / 20); /* what was never listed is for accounting */
}

static void threads_after_one_alone(void)
{
    struct rig r;
    if (!begin_with(&r, NULL, 0, 1, false)) {
        SKIP("a child's memory cannot be read here");
    }
    run_for(&r, 4500);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 5));
    CHECK(r.largest <= used_ns / 20);
}

/* Threads of 3 ms, of which task/ is listed ten times a second: they are named by the runtime's own list. 5 s are 400
 * samples: 12 points are five standard deviations. */
static void a_thread_for_each_request(void)
{
    static const struct crew crews[] = {{serves, 1}};
    struct rig r;
    if (!begin_with(&r, crews, 1, 1, true)) {
        SKIP("a child's memory cannot be read here");
    }
    run_for(&r, 5000);
    uint64_t used_ns = end(&r);
    uint64_t known = r.weights[1] + r.weights[2];
    CHECK(in_samples(&r) + r.settled <= used_ns + used_ns / 20);
    CHECK(known * 100 >= used_ns * 85);
    CHECK(r.weights[1] * 100 >= known * 55 && r.weights[1] * 100 <= known * 79);
}

static void idle_threads_cost_little(void)
{
    static const struct crew crews[] = {{sleeps, 2000}};
    struct rig r;
    BEGIN(&r, crews, 2000);
    run_for(&r, 2000); /* they are listed, and checked once */
    r.own_before_ns = clock_own_cpu_ns();
    r.began_ns = clock_mono_ns();
    run_for(&r, 5000);
    uint64_t own_ns = clock_own_cpu_ns() - r.own_before_ns;
    if (end(&r) > 500 * (uint64_t)MS) {
        SKIP("here they are not idle: an emulator or a sanitizer works in each of them");
    }
    CHECK(own_ns < 50 * (uint64_t)MS); /* 1 %, with sanitizers and neighbours; some 0.15 % without */
}

static void busy_among_idle(void)
{
    static const struct crew crews[] = {{sleeps, 1000}, {bursts, 3}, {spins, 1}};
    struct rig r;
    BEGIN(&r, crews, 1004);
    run_for(&r, 6000);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 30)); /* an idle one is asked once a second */
    CHECK(r.settled * 4 < used_ns);
}

/* ---- processes that come and go ---- */

static const struct crew two_spinners[] = {{spins, 2}, {sleeps, 5}};

/* Readers detach and attach anew: another serial, the same process. */
static void attached_anew(void)
{
    struct rig r;
    BEGIN(&r, two_spinners, 7);
    run_for(&r, 500);
    struct catch_target target = {
        .pid = (uint32_t)r.pid, .runtime = &words, .remote = &r.remote, .serial = 8};
    for (unsigned i = 0; i < 20; i++) {
        CHECK(catch_publish(r.catch, NULL, 0));
        run_for(&r, 30);
        target.serial++;
        CHECK(catch_publish(r.catch, &target, 1));
        run_for(&r, 30);
    }
    uint64_t before = r.samples;
    run_for(&r, 1000);
    CHECK(r.samples > before + 10);
    catch_settle(r.catch, on_settled, &r);
    run_for(&r, 100);
    CHECK_INT(r.catch->perfless->processes.len, 1); /* the others came back */
    end(&r);
}

static void ended_process(void)
{
    struct rig r;
    BEGIN(&r, two_spinners, 7);
    run_for(&r, 500);
    uint64_t used_ns = process_ns(&r) - r.used_before_ns;
    uint64_t before = r.weights[0];
    has_ended = true;
    kill(r.pid, SIGKILL);
    CHECK(waitpid(r.pid, NULL, 0) == r.pid);
    run_for(&r, 1500);
    CHECK_INT(r.weights[0], before); /* no stack was made of what could not be read */
    catch_settle(r.catch, on_settled, &r);
    CHECK(in_samples(&r) + r.settled <= used_ns * 6 / 5 + 50 * MS);
    CHECK(in_samples(&r) > used_ns / 2);
    CHECK(catch_publish(r.catch, NULL, 0));
    run_for(&r, 300);
    CHECK_INT(r.catch->perfless->processes.len, 0);
    CHECK_INT(r.catch->perfless->files, 0); /* every descriptor was given back */
    catch_stop(r.catch);
    remote_close(&r.remote);
    has_ended = false;
}

/* What the catcher uses stays when the others have gone: it goes on, and ends, in memory that is still its own. */
static void held_at_the_end(void)
{
    static struct rig r; /* nobody releases its catchers */
    static const struct crew crews[] = {{spins, 1}};
    BEGIN(&r, crews, 1);
    run_for(&r, 200);
    hold = 1;
    for (unsigned i = 0; i < 1000 && __atomic_load_n(&hold, __ATOMIC_SEQ_CST) != 2; i++) {
        clock_sleep_ns(10 * MS);
    }
    CHECK_INT(hold, 2);
    CHECK(!catch_stop(r.catch));
    __atomic_store_n(&hold, 0, __ATOMIC_SEQ_CST);
    clock_sleep_ns(100 * MS);
    has_ended = true;
    kill(r.pid, SIGKILL);
    CHECK(waitpid(r.pid, NULL, 0) == r.pid);
    has_ended = false;
}

static void few_descriptors(void)
{
    static const struct crew crews[] = {{spins, 3}};
    struct rig r;
    BEGIN(&r, crews, 3);
    __atomic_store_n(&r.catch->perfless->files_most, 1, __ATOMIC_RELAXED);
    run_for(&r, 3000);
    /* one, and one per CPU that is being given back */
    CHECK(__atomic_load_n(&r.catch->perfless->files, __ATOMIC_RELAXED) <= 1 + r.catch->perfless->cpu_count);
    uint64_t used_ns = end(&r);
    CHECK(is_about(in_samples(&r) + r.settled, used_ns, 15));
    CHECK(r.samples > 20);
}

/* ---- pure ---- */

static bool last_ran(const char *text, uint64_t *ns)
{
    return perfless_parse_last_ran((struct str){text, strlen(text)}, ns);
}

static void moments_of_the_scheduler(void)
{
    uint64_t ns = 7;
    CHECK(last_ran("sh (12, #threads: 1)\n-----\n"
                   "se.exec_start                                :      14828795.741711\n"
                   "se.vruntime                                  :        140622.432968\n",
                   &ns));
    CHECK_INT(ns, 14828795741711);
    CHECK(last_ran("se.exec_start:0.000001\n", &ns) && ns == 1);
    ns = 7;
    /* a name may be anything, but is followed by a parenthesis */
    CHECK(!last_ran("se.exec_start : 1.000000 (1, #threads: 1)\nse.vruntime : 2.000000\n", &ns));
    CHECK(!last_ran("se.exec_start : 12.34\n", &ns)); /* not six digits */
    CHECK(!last_ran("se.exec_start : -2.000000\n", &ns));
    CHECK(!last_ran("se.exec_start : 99999999999999999999.000000\n", &ns));
    CHECK(!last_ran("se.exec_start : 18446744073709.000000\n", &ns)); /* 2^64 ns and more */
    CHECK(!last_ran("se.exec_start", &ns));
    CHECK(!last_ran("", &ns));
    CHECK_INT(ns, 7);
}

/* A turn that ended 10 µs before we had the CPU was not ended by us. A catcher that another one woke gets its CPU some
 * microseconds later, and has not waited for anybody. */
static void turns_that_we_ended(void)
{
    CHECK(perfless_is_one_switch(14828795741711, 14828795741711));
    CHECK(perfless_is_one_switch(1000, 3000) && perfless_is_one_switch(3000, 1000));
    CHECK(!perfless_is_one_switch(10000, 20000) && !perfless_is_one_switch(20000, 10000));
    CHECK(!perfless_is_late(0, false) && !perfless_is_late(0, true));
    CHECK(perfless_is_late(20000, false) && !perfless_is_late(20000, true));
    CHECK(perfless_is_late(1 * MS, true));
}

/* A stop that came late, of a thread that has slept meanwhile. */
static void late_stops(void)
{
    uint8_t lates = 0;
    CHECK(perfless_is_of_this_moment(false, true, &lates) && perfless_is_of_this_moment(true, true, &lates));
    CHECK(perfless_is_of_this_moment(false, false, &lates)); /* it computed all the while: it stood in the queue */
    CHECK_INT(lates, 0);
    for (unsigned i = 0; i < PERFLESS_LATES_MAX; i++) {
        CHECK(!perfless_is_of_this_moment(true, false, &lates));
    }
    CHECK_INT(lates, PERFLESS_LATES_MAX);
    CHECK(perfless_is_of_this_moment(true, false, &lates)); /* nothing better comes */
    CHECK_INT(lates, PERFLESS_LATES_MAX);
}

static void run_times(void)
{
    struct perfless t = {.tick_ns = 10 * MS};
    uint64_t ns, slices;
    CHECK(perfless_parse_run(&t, STR("201700347 404598475 52633\n"), &ns, &slices) && ns == 201700347);
    CHECK_INT(slices, 52633);
    CHECK(!perfless_parse_run(&t, STR(""), &ns, &slices));
    t.by_stat = true;
    CHECK(perfless_parse_run(&t, STR("5 (a) R 1 1 1 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 9 0 0"), &ns, &slices));
    CHECK_INT(ns, 70 * MS);
    CHECK(!perfless_parse_run(&t, STR("201700347 404598475 52633\n"), &ns, &slices));
}

static void pauses(void)
{
    const uint64_t period_ns = 10 * MS;
    CHECK_INT(perfless_pause_ns(period_ns, 5, 0, 0, 500), period_ns); /* ran, and nobody knows who */
    CHECK_INT(perfless_pause_ns(period_ns, 5, 2, 0, 500), 5 * period_ns);
    CHECK_INT(perfless_pause_ns(period_ns, 5, 0, 2000 * MS, 500), 100 * MS);
    CHECK_INT(perfless_pause_ns(period_ns, 5, 0, (uint64_t)61000 * MS, 500), 500 * MS);
    CHECK_INT(perfless_pause_ns(period_ns, 5, 5, 0, 500), 1000 * MS); /* all are checked anyway */
    CHECK_INT(perfless_pause_ns(period_ns, 0, 0, 0, 500), period_ns); /* but these are not listed yet */
    CHECK_INT(perfless_pause_ns(period_ns, 2000, 1, 0, 400000), 400 * MS); /* a thousandth */
    /* 10 ms for 5 threads is not the kernel's adding up: 9 times 300 ns are the most */
    CHECK_INT(perfless_pause_ns(period_ns, 5, 0, 0, 10 * MS), 10 * MS);
}

/* 250 ms that were used before anybody knew the thread: no sample has more than its own and three times as much of
 * them. */
static void early_time(void)
{
    struct perfless_thread thread = {.pending_ns = 10 * MS, .early_ns = 240 * MS};
    uint64_t sum_ns = perfless_weigh(&thread), first_ns = sum_ns, count = 1;
    for (; thread.early_ns > 0 && count < 100; count++) {
        thread.pending_ns = 10 * MS;
        sum_ns += perfless_weigh(&thread);
    }
    CHECK_INT(first_ns, 40 * MS);
    CHECK_INT(count, 8);
    CHECK_INT(sum_ns, 240 * MS + 8 * 10 * MS);
    CHECK_INT(perfless_weigh(&thread), 0);
}

static void irregular_ticks(void)
{
    uint64_t seed = 1, sum = 0, least = UINT64_MAX, most = 0;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t step = random_next_ns(1000, 10 * MS, &seed) - 1000;
        sum += step;
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    CHECK(is_about(sum / 10000, 10 * MS, 2));
    CHECK(least >= 5 * MS && least < 5100000 && most <= 15 * MS && most > 14900000);
}

/* A program whose turns take as long as a period, and a function that has the first half of each: of 200 profiles of
 * 880 ticks hardly one tells it more than four points from 50 %, as with moments that are independent. */
static void no_rhythm_is_met(void)
{
    uint64_t seed = 1, now_ns = 0;
    unsigned wrong = 0;
    for (unsigned profile = 0; profile < 200; profile++) {
        unsigned first_half = 0;
        for (unsigned i = 0; i < 880; i++) {
            now_ns = random_next_ns(now_ns, 10 * MS, &seed);
            first_half += now_ns % (10 * MS) < 5 * MS;
        }
        wrong += first_half < 880 * 46 / 100 || first_half > 880 * 54 / 100;
    }
    CHECK(wrong <= 10); /* by a quarter of a period: 40 to 50 */
}

TESTS_THAT_MEASURE({"weights of threads that spin add up to their CPU time, shares are true", two_that_spin},
      {"where CPU time is counted in ticks, no sample is called proven", none_is_proven},
      {"a thread that naps is sampled where it burns", one_that_naps},
      {"bursts between long sleeps are met", bursts_are_met},
      {"with more threads than CPUs each has its time", more_than_cpus},
      {"threads that come and go are never counted twice", threads_come_and_go},
      {"threads that begin beside one that was alone are known at once", threads_after_one_alone},
      {"threads that end before they are listed are met where they run", a_thread_for_each_request},
      {"idle threads cost next to nothing", idle_threads_cost_little},
      {"busy threads are found among idle ones", busy_among_idle},
      {"a process attached to anew goes on being sampled, and nothing is left over", attached_anew},
      {"a process that ended is given back with all its threads", ended_process},
      {"a catcher that is held up at the end keeps what it uses", held_at_the_end},
      {"with hardly a descriptor it goes on without keeping them", few_descriptors},
      {"when a thread ran last is read from its sched file, or not at all", moments_of_the_scheduler},
      {"a thread whose turn ended before ours began was not interrupted by us", turns_that_we_ended},
      {"a late stop of a thread that slept meanwhile is dropped, but not for ever", late_stops},
      {"CPU time comes from schedstat, or in clock ticks from stat", run_times},
      {"a process's clock is asked as often as it may tell something", pauses},
      {"what a thread used before it was known is for several samples", early_time},
      {"ticks are irregular, and on average as many as were asked for", irregular_ticks},
      {"a program with a rhythm of its own has its true shares", no_rhythm_is_met})
