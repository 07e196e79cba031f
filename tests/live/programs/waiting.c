/*
 * waiting SECONDS: fifty threads that wait in six ways, and count what comes back with EINTR.
 *
 *     steady   forty-four threads that wait in one call from the beginning to the end
 *     mixed    six threads that each go from way to way, by lot: 20 to 200 ms in each, and 1 ms of computing between
 *
 * Each way is a function of its name: reads (a pipe), locks (a futex), polls (epoll), naps (nanosleep), accepts, and
 * flocks. The end prints how long all threads were in each, by their own clocks: "reads 12.345 locks 23.456 …", and
 * "interrupted 0". Who ends a wait that has no time limit of its own is a thread of its own, the waker.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { WAYS = 6, STEADY = 44, MIXED = 6, THREADS = STEADY + MIXED };

static const char *const names[WAYS] = {"reads", "locks", "polls", "naps", "accepts", "flocks"};
static const int steady_of[WAYS] = {12, 10, 8, 6, 5, 3};

struct waiter {
    pthread_t thread;
    int way; /* -1: mixed */
    uint64_t seed;
    int ends[2], epoll, listener, lock_file, lock_held;
    struct sockaddr_un address;
    socklen_t address_len;
    _Atomic uint32_t word;
    _Atomic uint64_t wake_ns; /* monotonic: when the waker is to end its wait; 0: it waits for nobody */
    _Atomic int waits_in;
    double spent[WAYS];
};

static struct waiter waiters[THREADS];
static _Atomic uint64_t interrupted, end_ns;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long counted(long result)
{
    if (result < 0 && errno == EINTR)
        interrupted++;
    return result;
}

#define WAY __attribute__((noipa)) static void

WAY reads(struct waiter *w)
{
    char byte;
    counted(read(w->ends[0], &byte, 1));
}

WAY locks(struct waiter *w)
{
    while (w->word == 0)
        counted(syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
    w->word = 0;
}

WAY polls(struct waiter *w)
{
    struct epoll_event event;
    char byte;
    if (counted(epoll_wait(w->epoll, &event, 1, -1)) == 1)
        counted(read(w->ends[0], &byte, 1));
}

WAY naps(struct waiter *w)
{
    uint64_t left_ns = w->wake_ns - now_ns();
    struct timespec t = {(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
    if ((int64_t)left_ns > 0)
        counted(nanosleep(&t, NULL));
}

WAY accepts(struct waiter *w)
{
    int fd = (int)counted(accept(w->listener, NULL, NULL));
    if (fd >= 0)
        close(fd);
}

WAY flocks(struct waiter *w)
{
    counted(flock(w->lock_file, LOCK_EX));
    flock(w->lock_file, LOCK_UN);
}

static void (*const way[WAYS])(struct waiter *) = {reads, locks, polls, naps, accepts, flocks};

static void end_wait(struct waiter *w, int in)
{
    int fd;
    switch (in) {
    case 0:
    case 2:
        if (write(w->ends[1], "x", 1) != 1)
            abort();
        break;
    case 1:
        w->word = 1;
        syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        break;
    case 4:
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&w->address, w->address_len) != 0)
            abort();
        close(fd);
        break;
    case 5:
        flock(w->lock_held, LOCK_UN);
        break;
    }
}

static void wait_once(struct waiter *w, int in, uint64_t until_ns)
{
    if (in == 5 && flock(w->lock_held, LOCK_EX) != 0)
        abort();
    uint64_t from_ns = now_ns();
    w->waits_in = in;
    w->wake_ns = until_ns;
    way[in](w);
    w->spent[in] += (double)(now_ns() - from_ns) / 1e9;
}

__attribute__((noipa)) static void compute(void)
{
    volatile uint64_t kept = 1;
    for (uint64_t until_ns = now_ns() + 1000000; now_ns() < until_ns;)
        kept = kept * 6364136223846793005u + 1442695040888963407u;
}

static uint64_t by_lot(struct waiter *w, uint64_t below)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return (w->seed >> 33) % below;
}

static void *run(void *arg)
{
    struct waiter *w = arg;
    if (w->way >= 0) {
        wait_once(w, w->way, end_ns);
        return NULL;
    }
    while (now_ns() < end_ns) {
        uint64_t until_ns = now_ns() + (20 + by_lot(w, 180)) * 1000000;
        wait_once(w, (int)by_lot(w, WAYS), until_ns < end_ns ? until_ns : end_ns);
        compute();
    }
    return NULL;
}

static void prepare(struct waiter *w, int index)
{
    char name[64];
    struct epoll_event event = {.events = EPOLLIN};
    w->seed = (uint64_t)index * 7919 + 1;
    w->address.sun_family = AF_UNIX;
    snprintf(w->address.sun_path + 1, sizeof w->address.sun_path - 1, "waiting-%d-%d", (int)getpid(), index);
    w->address_len = (socklen_t)(sizeof w->address.sun_family + 1 + strlen(w->address.sun_path + 1));
    snprintf(name, sizeof name, "/tmp/waiting-%d-%d", (int)getpid(), index);
    w->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    w->epoll = epoll_create1(0);
    w->lock_file = open(name, O_CREAT | O_RDWR, 0600);
    w->lock_held = open(name, O_RDWR);
    unlink(name);
    if (pipe(w->ends) != 0 || bind(w->listener, (struct sockaddr *)&w->address, w->address_len) != 0 ||
        listen(w->listener, 1) != 0 || w->lock_held < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->ends[0], &event) != 0)
        abort();
}

static void *wake(void *unused)
{
    struct timespec t = {0, 1000000};
    while (now_ns() < end_ns + 50000000) {
        for (int i = 0; i < THREADS; i++) {
            uint64_t wake_ns = waiters[i].wake_ns;
            if (wake_ns != 0 && now_ns() >= wake_ns) {
                waiters[i].wake_ns = 0;
                end_wait(&waiters[i], waiters[i].waits_in);
            }
        }
        nanosleep(&t, NULL);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t waker;
    pthread_attr_t small;
    int count = 0;
    if (argc < 2)
        return 2;
    end_ns = now_ns() + (uint64_t)(atof(argv[1]) * 1e9);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    for (int in = 0; in < WAYS; in++)
        for (int i = 0; i < steady_of[in]; i++)
            waiters[count++].way = in;
    while (count < THREADS)
        waiters[count++].way = -1;
    for (int i = 0; i < THREADS; i++)
        prepare(&waiters[i], i);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&waiters[i].thread, &small, run, &waiters[i]) != 0)
            return 1;
    if (pthread_create(&waker, &small, wake, NULL) != 0)
        return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(waiters[i].thread, NULL);
    pthread_join(waker, NULL);
    for (int in = 0; in < WAYS; in++) {
        double sum = 0;
        for (int i = 0; i < THREADS; i++)
            sum += waiters[i].spent[in];
        printf("%s %.3f ", names[in], sum);
    }
    printf("interrupted %llu\n", (unsigned long long)interrupted);
    return 0;
}
