/* Fewer descriptors than threads: the hottest have events, and one that becomes hot gets them. Real threads
 * of this program, which burn CPU time on request. */
#include "capture/follow/unsampled_threads.h"
#include "child.h"
#include "os/hot.h"
#include "os/perf_private.h"
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define S UINT64_C(1000000000)
enum { MS = 1000000, THREADS = 40, HOT = 3 };

/* ---- threads ---- */

struct hand {
    pthread_t thread;
    sem_t called;
    volatile uint32_t tid;
    volatile unsigned order_ms, done_ms; /* CPU time to have used */
};

static struct hand hands[THREADS];
static volatile bool dismissed;

static uint64_t own_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 5 * MS}, NULL);
}

static void *obey(void *context)
{
    struct hand *hand = context;
    hand->tid = (uint32_t)syscall(SYS_gettid);
    while (!dismissed) {
        while (hand->done_ms < hand->order_ms) {
            uint64_t end_ns = own_ns() + MS;
            while (own_ns() < end_ns) {
            }
            hand->done_ms++;
        }
        sem_wait(&hand->called);
    }
    return NULL;
}

static void have_burn(unsigned index, unsigned ms)
{
    hands[index].order_ms += ms;
    sem_post(&hands[index].called);
    while (hands[index].done_ms < hands[index].order_ms) {
        nap();
    }
}

static void hire(void)
{
    dismissed = false;
    for (unsigned i = 0; i < THREADS; i++) {
        hands[i] = (struct hand){0};
        sem_init(&hands[i].called, 0, 0);
        CHECK_INT(pthread_create(&hands[i].thread, NULL, obey, &hands[i]), 0);
        while (hands[i].tid == 0) {
            nap();
        }
    }
}

static void dismiss(void)
{
    dismissed = true;
    for (unsigned i = 0; i < THREADS; i++) {
        sem_post(&hands[i].called);
        pthread_join(hands[i].thread, NULL);
    }
}

static bool has(const struct pid_list *list, uint32_t tid)
{
    vec_each(&list->ids, id)
    {
        if (*id == tid) {
            return true;
        }
    }
    return false;
}

/* ---- tests ---- */

static void hottest_first(void)
{
    struct pid_list threads = {0};
    hire();
    have_burn(30, 300);
    have_burn(11, 600);
    CHECK(proc_list_threads((uint32_t)getpid(), &threads, NULL));
    hot_first((uint32_t)getpid(), &threads);
    CHECK_INT(threads.ids.len, THREADS + 1);
    CHECK_INT(threads.ids.at[0], hands[11].tid);
    CHECK_INT(threads.ids.at[1], hands[30].tid);
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(has(&threads, hands[i].tid));
    }
    CHECK_INT(hot_thread_ns((uint32_t)getpid(), 0x7ffffff0), 0);
    vec_release(&threads.ids);
    dismiss();
}

static void hot_is_a_hundredth(void)
{
    struct unsampled_thread thread = {.cpu_ns = 7 * MS, .asked_ns = 10 * S};
    CHECK(unsampled_is_hot(&thread, 17 * MS, 11 * S));
    CHECK(!unsampled_is_hot(&thread, 16 * MS, 11 * S));
    CHECK(!unsampled_is_hot(&thread, 7 * MS, 10 * S));
    CHECK(!unsampled_is_hot(&thread, 5 * MS, 11 * S)); /* the tid is another thread's now */
    thread.asked_ns = 0;
    CHECK(!unsampled_is_hot(&thread, 900 * S, 11 * S)); /* what it used before it was asked tells nothing */
}

static bool is_followed(const struct perf *perf, uint32_t tid)
{
    vec_each(&perf->followers, f)
    {
        if (f->tid == tid) {
            return true;
        }
    }
    return false;
}

/* About eight threads' worth, beside what is open anyway. */
static bool open_tight(struct perf *perf)
{
    const struct perf_sampling sampling = {.frequency_hz = 99};
    if (!perf_open(perf, &sampling, NULL)) {
        return false;
    }
    unsigned cpus = perf->ring_count;
    perf_close(perf);
    rlim_t files = (16 + cpus * 10) * 4 / 3;
    const struct rlimit limit = {files, files};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return perf_open(perf, &sampling, NULL);
}

static bool with_few_descriptors(void *context)
{
    struct perf *perf = perf_new(NULL);
    struct err err = {0};
    uint32_t own = (uint32_t)getpid();
    (void)context;
    if (!open_tight(perf)) {
        perf_free(perf);
        return false;
    }
    hire();
    for (unsigned i = THREADS - HOT; i < THREADS; i++) {
        have_burn(i, 100); /* those that are listed last */
    }
    CHECK(perf_follow_process(perf, own, &(struct perf_how){0}, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK(strstr(err.text, "of the 41 threads of pid") != NULL);
    CHECK_INT(perf_unsampled(perf)->ids.len + perf->followers.len, THREADS + 1);
    CHECK(perf->followers.len >= HOT && perf_unsampled(perf)->ids.len > THREADS / 2);
    for (unsigned i = THREADS - HOT; i < THREADS; i++) {
        CHECK(is_followed(perf, hands[i].tid));
    }
    perf_enable(perf);

    struct world world = world_here();
    struct images images;
    struct targets targets;
    struct unsampled_threads left = {0};
    images_init(&images, &world);
    targets_init(&targets, &images, false);
    targets_get(&targets, own);
    unsigned late = 0;
    while (is_followed(perf, hands[late].tid)) {
        late++;
    }
    size_t followers = perf->followers.len, others = perf_unsampled(perf)->ids.len;
    unsampled_add(&left, own, perf_unsampled(perf));
    CHECK_INT(unsampled_check(&left, perf, &targets, 1 * S), 0);
    have_burn(late, 200);
    CHECK_INT(unsampled_check(&left, perf, &targets, 1 * S + 1), 0); /* once a second at most */
    CHECK_INT(unsampled_check(&left, perf, &targets, 7 * S), 1);
    CHECK(is_followed(perf, hands[late].tid));
    CHECK_INT(perf->followers.len, followers); /* in the place of an idle one */
    CHECK_INT(left.threads.len, others);
    have_burn(late, 20);
    uint64_t counted_ns = perf_count_ns(perf);
    CHECK(counted_ns > 10 * MS);
    dismiss();
    (void)unsampled_check(&left, perf, &targets, 20 * S);
    CHECK_INT(left.threads.len, 0); /* gone */
    unsampled_release(&left);
    targets_release(&targets);
    images_release(&images);
    perf_free(perf);
    return true;
}

static void few_descriptors(void)
{
    if (!in_child(with_few_descriptors, NULL)) {
        SKIP("no perf events here");
    }
}

static bool coolest_of_two(void *context)
{
    struct perf *perf = perf_new(NULL);
    const struct perf_sampling sampling = {.frequency_hz = 99};
    uint64_t recent_ns, busy_ns = 0;
    (void)context;
    if (!perf_open(perf, &sampling, NULL)) {
        perf_free(perf);
        return false;
    }
    pid_t cool = fork();
    if (cool == 0) {
        pause();
    }
    pid_t hot = fork();
    while (hot == 0) {
    }
    CHECK(perf_follow_process(perf, (uint32_t)hot, &(struct perf_how){0}, NULL));
    CHECK(perf_follow_process(perf, (uint32_t)cool, &(struct perf_how){0}, NULL));
    perf_enable(perf);
    perf_mark(perf, 0, 0);
    CHECK_INT(perf_coolest(perf, 0, &recent_ns), 0); /* one mark tells nothing */
    for (unsigned i = 0; i < 1000 && busy_ns < 50 * MS; i++) {
        nap();
        busy_ns = perf_count_ns(perf);
    }
    perf_mark(perf, 0, 0);
    CHECK_INT(perf_coolest(perf, 0, &recent_ns), cool);
    CHECK(recent_ns < 20 * MS);
    CHECK_INT(perf_coolest(perf, (uint32_t)cool, &recent_ns), hot);
    perf_give_up(perf, (uint32_t)cool);
    CHECK(!perf_is_followed(perf, (uint32_t)cool));
    CHECK_INT(perf_coolest(perf, 0, &recent_ns), hot);
    CHECK(recent_ns >= 20 * MS);
    CHECK(perf_count_ns(perf) >= busy_ns);
    perf_free(perf);
    kill(hot, SIGKILL);
    kill(cool, SIGKILL);
    CHECK(waitpid(hot, NULL, 0) == hot && waitpid(cool, NULL, 0) == cool);
    return true;
}

static void coolest(void)
{
    if (!in_child(coolest_of_two, NULL)) {
        SKIP("no perf events here");
    }
}

TESTS({"the process that used least between two marks is the coolest", coolest},
      {"the threads that used most CPU time come first", hottest_first},
      {"a thread is hot from a hundredth of a CPU on, since it was asked last", hot_is_a_hundredth},
      {"with few descriptors the hottest threads are followed, and who becomes hot later",
       few_descriptors})
