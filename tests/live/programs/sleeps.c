/*
 * sleeps turns N: N times sleeps 1.2 s in long_sleep(), 0.6 s in short_sleep(), and computes for 0.2 s of CPU
 * time. It prints what these took by the wall clock: "long 2.41 short 1.20 compute 0.43".
 *
 * sleeps naps N: the same with a 200th of all times: waits of 6 and 3 ms.
 *
 * sleeps blocked SECONDS: three threads that wait from before the line "ready" until the end, in pauses(), in
 * reads() and in sleeps_on(), and the first thread, which waits for the last of them in main.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double scale = 1;

static inline __attribute__((always_inline)) void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0)
        ;
}

__attribute__((noipa)) void long_sleep(void)
{
    nap(1.2 * scale);
}

__attribute__((noipa)) void short_sleep(void)
{
    nap(0.6 * scale);
}

__attribute__((noipa)) void compute(void)
{
    volatile uint64_t kept = 1;
    double until = now(CLOCK_PROCESS_CPUTIME_ID) + 0.2 * scale;
    do
        for (unsigned i = 0; i < 10000; i++)
            kept = kept * 6364136223846793005u + 1442695040888963407u;
    while (now(CLOCK_PROCESS_CPUTIME_ID) < until);
}

static int turns(int count)
{
    void (*const part[3])(void) = {long_sleep, short_sleep, compute};
    double took[3] = {0};
    for (int i = 0; i < count * 3; i++) {
        double begin = now(CLOCK_MONOTONIC);
        part[i % 3]();
        took[i % 3] += now(CLOCK_MONOTONIC) - begin;
    }
    printf("long %.3f short %.3f compute %.3f\n", took[0], took[1], took[2]);
    return 0;
}

static int ends[2];
static double seconds;

__attribute__((noipa)) static void *pauses(void *unused)
{
    pause();
    return unused;
}

__attribute__((noipa)) static void *reads(void *unused)
{
    char byte;
    return read(ends[0], &byte, 1) == 1 ? unused : NULL;
}

__attribute__((noipa)) static void *sleeps_on(void *unused)
{
    nap(seconds);
    return unused;
}

static int blocked(void)
{
    pthread_t thread[3];
    void *(*const part[3])(void *) = {pauses, reads, sleeps_on};
    if (pipe(ends) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread[i], NULL, part[i], NULL) != 0)
            return 1;
    nap(0.2); /* they wait now */
    puts("ready");
    fflush(stdout);
    pthread_join(thread[2], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    seconds = atof(argv[2]);
    if (strcmp(argv[1], "naps") == 0)
        scale = 0.005;
    return strcmp(argv[1], "blocked") == 0 ? blocked() : turns(atoi(argv[2]));
}
