/* Deep stacks that are different each time: functions of several frame sizes, in a random order, down to so many KiB,
 * and work at the bottom; for so many seconds. What is read of such a stack later is of another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEAN_BYTES = 1060, WORK = 300000 };

static volatile long sink;
static long left;

static double used(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static long go(void);

#define STEP(name, bytes)                     \
    __attribute__((noinline)) long name(void) \
    {                                         \
        char room[bytes];                     \
        memset(room, (int)left, sizeof room); \
        return go() + room[left & 63];        \
    }

STEP(small, 200)
STEP(middle, 520)
STEP(large, 1100)
STEP(largest, 2300)

__attribute__((noinline)) long bottom(void)
{
    for (long i = 0; i < WORK; i++) {
        sink += i;
    }
    return sink;
}

static long go(void)
{
    static long (*const steps[])(void) = {small, middle, large, largest};
    return left-- <= 0 ? bottom() : 1 + steps[rand() & 3]();
}

int main(int argc, char **argv)
{
    long sum = 0, kib = argc > 1 ? atol(argv[1]) : 100;
    double until = used() + (argc > 2 ? atof(argv[2]) : 1);
    while (used() < until) {
        left = kib * 1024 / MEAN_BYTES;
        sum += go();
    }
    printf("%ld\n", sum);
    return 0;
}
