/*
 * thousand MODE SECONDS: a thousand threads, and what they must not notice of being stopped now and then.
 *
 *   few   two of them compute all the time, the others wait
 *   all   each computes for half a millisecond once a second, each at its own moment
 *
 * Each is sent a queued signal every half second, but for every other one, which takes none and must never be told
 * EINTR by the call that it waits in. At the end it prints "sums S wrong W signals G of E interrupted I took N ns":
 * sums that were finished and those that came out wrong, signals handled and sent, calls that returned EINTR, and how
 * long a sum took by the clock on the wall (the median).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 1000, FEW = 2, NUMBERS = 1500000, STACK_BYTES = 64 * 1024, TOOK_MAX = 1 << 20, ROUND_NS = 500000000 };

static atomic_bool over;
static atomic_ulong sums, wrong, handled, sent, interrupted;
static bool few;
static uint32_t took[TOOK_MAX];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void on_signal(int number)
{
    (void)number;
    handled++;
}

__attribute__((noipa)) static void sum_up(void)
{
    volatile uint64_t sum = 0;
    uint64_t begin = now_ns();
    for (uint64_t i = 1; i <= NUMBERS; i++)
        sum += i;
    wrong += sum != (uint64_t)NUMBERS * (NUMBERS + 1) / 2;
    unsigned long at = sums++;
    if (at < TOOK_MAX)
        took[at] = (uint32_t)(now_ns() - begin);
}

/* Until that moment; a signal of ours may end the wait, nothing else may. */
static void sleep_until(uint64_t moment, bool takes_signals)
{
    struct timespec until = {(time_t)(moment / 1000000000u), (long)(moment % 1000000000u)};
    while (!over && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        interrupted += !takes_signals;
}

static void *live(void *number)
{
    uintptr_t which = (uintptr_t)number;
    bool takes_signals = which % 2 == 0;
    uint64_t moment = now_ns() + which * 1000000u;
    sigset_t all;
    sigfillset(&all);
    if (!takes_signals)
        pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (!over) {
        if (!few || which < FEW)
            sum_up();
        if (!few || which >= FEW)
            sleep_until(moment += 1000000000u, takes_signals);
    }
    return NULL;
}

/* They are queued: each that was sent is handled once. */
static void send_signals(const pthread_t *threads, double seconds)
{
    for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;) {
        struct timespec pause = {0, ROUND_NS / (THREADS / 2)};
        for (unsigned i = 0; i < THREADS && now_ns() < end; i += 2) {
            sent += pthread_sigqueue(threads[i], SIGRTMIN + 1, (union sigval){0}) == 0;
            nanosleep(&pause, NULL);
        }
    }
}

static int by_length(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    few = argc > 1 && strcmp(argv[1], "few") == 0;
    sigaction(SIGRTMIN + 1, &action, NULL);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &small, live, (void *)i) != 0)
            return 2;
    printf("ready\n");
    fflush(stdout);
    send_signals(threads, seconds);
    over = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    unsigned long count = sums < TOOK_MAX ? sums : TOOK_MAX;
    qsort(took, count, sizeof took[0], by_length);
    printf("sums %lu wrong %lu signals %lu of %lu interrupted %lu took %u ns\n", sums, wrong, handled, sent,
           interrupted, count > 0 ? took[count / 2] : 0);
    return 0;
}
