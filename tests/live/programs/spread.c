/*
 * spread DEPTH CPU SECONDS [CPU SECONDS [CPU SECONDS]]: a thread for each pair, bound to that CPU, which spends so
 * much CPU time in first(), second() or third(), DEPTH KiB of stack below its beginning. Where a thread cannot be bound
 * it says so. At the end, or when TERM comes, it prints what each took, and all of it together:
 * "first 0.600 second 0.300 third 0.100 all 1.003".
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 3 };

static struct part {
    int cpu, depth;
    double seconds, spent;
    void (*work)(double seconds);
} parts[THREADS];

static volatile sig_atomic_t enough;

static void on_term(int number)
{
    (void)number;
    enough = 1;
}

static double cpu_now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Inlined, so that the time is the caller's own; volatile, so that it gets a frame. */
static inline __attribute__((always_inline)) void burn(double seconds)
{
    volatile uint64_t kept = 1;
    while (!enough && cpu_now(CLOCK_THREAD_CPUTIME_ID) < seconds)
        for (int i = 0; i < 100000; i++)
            kept = kept * 6364136223846793005u + 1442695040888963407u;
}

__attribute__((noipa)) static void first(double seconds)
{
    burn(seconds);
}

__attribute__((noipa)) static void second(double seconds)
{
    burn(seconds + 0);
}

__attribute__((noipa)) static void third(double seconds)
{
    burn(seconds * 1);
}

__attribute__((noipa)) static int below(struct part *part, int depth)
{
    volatile char room[1000];
    room[depth % 1000] = 1;
    if (depth < part->depth)
        return below(part, depth + 1) + room[depth % 1000];
    part->work(part->seconds);
    return room[depth % 1000];
}

static void *run(void *context)
{
    struct part *part = context;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(part->cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        printf("not bound to CPU %d\n", part->cpu);
    below(part, 0);
    part->spent = cpu_now(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

int main(int argc, char **argv)
{
    static void (*const works[THREADS])(double) = {first, second, third};
    static const char *const names[THREADS] = {"first", "second", "third"};
    pthread_t threads[THREADS];
    int count = 0;
    signal(SIGTERM, on_term);
    for (int at = 2; at + 1 < argc && count < THREADS; at += 2, count++) {
        parts[count] = (struct part){atoi(argv[at]), atoi(argv[1]), atof(argv[at + 1]), 0, works[count]};
        pthread_create(&threads[count], NULL, run, &parts[count]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        printf("%s %.3f ", names[i], parts[i].spent);
    printf("all %.3f\n", cpu_now(CLOCK_PROCESS_CPUTIME_ID));
    return 0;
}
