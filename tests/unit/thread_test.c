/* Where a thread runs and how soon, in children of their own: rank and binding outlive a test. */
#include "os/thread.h"
#include "child.h"
#include "os/clock.h"
#include "os/proc.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { MS = 1000000, CPUS = 64 };

static bool bound_to_each(void *context)
{
    (void)context;
    unsigned cpus[CPUS];
    size_t count = thread_allowed_cpus(cpus, CPUS);
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct err err = {0};
        CHECK(thread_bind(cpus[i], &err));
        CHECK_INT(thread_cpu(), cpus[i]);
    }
    return true;
}

static void binds(void)
{
    CHECK(in_child(bound_to_each, NULL));
}

static void no_such_cpu(void)
{
    struct err err = {0};
    CHECK(!thread_bind(8191, &err));
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK(!thread_bind(UINT32_MAX, &err));
    CHECK_INT(err.kind, ERR_DENIED);
}

static void *bind_elsewhere(void *context)
{
    unsigned *cpus = context;
    struct err err = {0};
    CHECK(thread_bind(cpus[0], &err));
    unsigned now[CPUS];
    CHECK(thread_allowed_cpus(now, CPUS) == cpus[CPUS]); /* as many as before */
    CHECK_INT(thread_allowed_cpus(now, 1), 1);
    return NULL;
}

static void allowed_is_the_process(void)
{
    unsigned cpus[CPUS + 1];
    cpus[CPUS] = (unsigned)thread_allowed_cpus(cpus, CPUS);
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, bind_elsewhere, cpus), 0);
    pthread_join(thread, NULL);
}

static bool leaves_batch(void *context)
{
    (void)context;
    struct sched_param param = {0};
    struct thread_rank rank;
    int policy = -1, nice = -1;
    if (sched_setscheduler(0, SCHED_BATCH, &param) != 0) {
        return false;
    }
    CHECK(thread_rank_of((uint32_t)getpid(), &policy, &nice));
    CHECK_INT(policy, SCHED_BATCH);
    thread_rank(false, 0, 300000, &rank);
    CHECK_INT(rank.refused.kind, ERR_NONE);
    CHECK(rank.slice && !rank.fifo);
    CHECK(thread_rank_of((uint32_t)getpid(), &policy, &nice));
    CHECK_INT(policy, SCHED_OTHER);
    return true;
}

static void ranks_other(void)
{
    if (!in_child(leaves_batch, NULL)) {
        SKIP("no scheduling policy can be set here");
    }
}

/* "se.slice   :   300000" */
static bool slice_shows(void *context)
{
    (void)context;
    struct thread_rank rank;
    struct buf text;
    buf_init(&text, 64 * 1024);
    drop_root();
    thread_rank(false, 0, 300000, &rank);
    CHECK(rank.slice);
    bool there = proc_read(proc_own_pid(), 0, "sched", &text, NULL);
    const char *line = there ? strstr(buf_cstr(&text), "se.slice") : NULL;
    const char *colon = line != NULL ? strchr(line, ':') : NULL;
    if (colon != NULL) {
        CHECK_INT(atoi(colon + 1), 300000);
    }
    buf_release(&text);
    return colon != NULL;
}

static void slice_is_taken(void)
{
    if (!in_child(slice_shows, NULL)) {
        SKIP("this kernel's /proc/self/sched shows no slice");
    }
}

static bool refused_as_nobody(void *context)
{
    (void)context;
    struct thread_rank rank;
    drop_root();
    struct rlimit none = {0, 0};
    CHECK_INT(setrlimit(RLIMIT_RTPRIO, &none), 0);
    CHECK_INT(setrlimit(RLIMIT_NICE, &none), 0);
    CHECK_INT(setpriority(PRIO_PROCESS, 0, 3), 0);
    thread_rank(true, -5, 100000, &rank);
    CHECK(!rank.fifo && rank.slice);
    CHECK_INT(rank.refused.kind, ERR_DENIED);
    CHECK(strstr(rank.refused.text, "FIFO") != NULL); /* the first that was refused */
    CHECK_INT(rank.nice, 3);
    thread_rank(false, -5, 100000, &rank);
    CHECK(strstr(rank.refused.text, "nice") != NULL);
    CHECK_INT(rank.nice, 3);
    thread_rank(false, 4, 100000, &rank);
    CHECK_INT(rank.refused.kind, ERR_NONE);
    CHECK_INT(rank.nice, 4);
    return true;
}

static void refusals_are_told(void)
{
    CHECK(in_child(refused_as_nobody, NULL));
}

static bool granted_as_root(void *context)
{
    (void)context;
    struct thread_rank rank;
    int policy, nice;
    thread_rank(true, 0, 0, &rank);
    if (!rank.fifo) {
        CHECK_INT(rank.refused.kind, ERR_DENIED);
        return false;
    }
    CHECK(thread_rank_of((uint32_t)getpid(), &policy, &nice));
    CHECK_INT(policy, SCHED_FIFO);
    thread_rank(false, -7, 100000, &rank);
    CHECK_INT(rank.refused.kind, ERR_NONE);
    CHECK(thread_rank_of((uint32_t)getpid(), &policy, &nice));
    CHECK_INT(policy, SCHED_OTHER);
    CHECK_INT(nice, -7);
    CHECK_INT(rank.nice, -7);
    return true;
}

static void rights_are_used(void)
{
    if (!in_child(granted_as_root, NULL)) {
        SKIP("no right to SCHED_FIFO here");
    }
}

static void rank_of_nobody(void)
{
    int policy = 77, nice = 77;
    CHECK(!thread_rank_of(0x3ffffff, &policy, &nice)); /* above the greatest tid */
    CHECK(policy == 77 && nice == 77);
}

static void *set_soon(void *context)
{
    clock_sleep_ns(20 * MS);
    waker_set(*(int *)context);
    return NULL;
}

static void wakers(void)
{
    int waker = waker_open();
    CHECK(waker >= 0);
    uint64_t began_ns = clock_mono_ns();
    CHECK(!waker_wait(waker, -1, 10 * MS)); /* time is up */
    CHECK(clock_mono_ns() - began_ns >= 10 * MS);
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, set_soon, &waker), 0);
    began_ns = clock_mono_ns();
    CHECK(!waker_wait(waker, -1, 10000 * (uint64_t)MS));
    CHECK(clock_mono_ns() - began_ns < 5000 * (uint64_t)MS);
    pthread_join(thread, NULL);
    waker_set(waker);
    waker_set(waker); /* it stays set until it is waited for, however often it was set */
    began_ns = clock_mono_ns();
    CHECK(!waker_wait(waker, -1, 10000 * (uint64_t)MS));
    CHECK(clock_mono_ns() - began_ns < 5000 * (uint64_t)MS);
    began_ns = clock_mono_ns();
    CHECK(!waker_wait(waker, -1, 5 * MS));
    CHECK(clock_mono_ns() - began_ns >= 5 * MS);
    waker_close(waker);
}

static void waits_for_both(void)
{
    int waker = waker_open(), other = waker_open();
    waker_set(other);
    CHECK(waker_wait(waker, other, 10000 * (uint64_t)MS));
    waker_set(waker);
    CHECK(waker_wait(waker, other, 0)); /* both */
    CHECK(!waker_wait(other, -1, 0));   /* which takes it */
    waker_set(waker);
    CHECK(!waker_wait(waker, other, 0)); /* only the waker */
    waker_close(waker);
    waker_close(other);
    waker_close(-1);
}

TESTS_THAT_MEASURE({"a bound thread is on its CPU at once", binds},
      {"a CPU that is not there is refused", no_such_cpu},
      {"allowed CPUs are the process's, not those of a bound thread", allowed_is_the_process},
      {"a thread that inherited BATCH becomes OTHER", ranks_other},
      {"the slice asked for is the thread's, without any right", slice_is_taken},
      {"what an ordinary user is refused is told, and the rest is done", refusals_are_told},
      {"with the right, FIFO and a lower nice are taken", rights_are_used},
      {"a thread that is gone has no rank", rank_of_nobody},
      {"a waker wakes, stays set and is cleared", wakers},
      {"a descriptor is told from the waker", waits_for_both})
