/*
 * requests SECONDS: a thread for each request, as many servers start them, one after the other: 1.4 ms of CPU time
 * in seventy() and 0.6 ms in thirty(), in turns. No thread lives as long as a sampling period. At the end it prints
 * the true share of seventy() among the two, all its CPU time, and how often it did both:
 * "seventy 0.7003 seconds 3.98 turns 1990".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double spent[2];
static volatile uint64_t sink;

static double now_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void work(double seconds)
{
    double begin = now_of(CLOCK_THREAD_CPUTIME_ID);
    while (now_of(CLOCK_THREAD_CPUTIME_ID) < begin + seconds)
        for (uint64_t i = 0; i < 10000; i++)
            sink = sink * 6364136223846793005u + i;
}

__attribute__((noipa)) void *seventy(void *unused)
{
    work(0.0014);
    spent[0] += now_of(CLOCK_THREAD_CPUTIME_ID);
    return unused;
}

__attribute__((noipa)) void *thirty(void *unused)
{
    work(0.0006);
    spent[1] += now_of(CLOCK_THREAD_CPUTIME_ID);
    return unused;
}

int main(int argc, char **argv)
{
    long turns = 0;
    double end = now_of(CLOCK_MONOTONIC) + (argc > 1 ? atof(argv[1]) : 5);
    for (; now_of(CLOCK_MONOTONIC) < end; turns++) {
        void *(*const of[2])(void *) = {seventy, thirty};
        for (int i = 0; i < 2; i++) {
            pthread_t one;
            if (pthread_create(&one, NULL, of[i], NULL) != 0 || pthread_join(one, NULL) != 0)
                return 1;
        }
    }
    printf("seventy %.4f seconds %.2f turns %ld\n", spent[0] / (spent[0] + spent[1]),
           now_of(CLOCK_PROCESS_CPUTIME_ID), turns);
    return 0;
}
