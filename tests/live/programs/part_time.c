/*
 * part_time SECONDS: for so long a fifth of a processor, 60 % of it in sixty(), 30 % in thirty(), 10 % in ten(). For
 * tests that wait for a person's keys: what they look at need not cost a whole one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline __attribute__((always_inline)) void work(uint64_t ms)
{
    struct timespec now;
    volatile uint64_t sum = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    uint64_t end = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + ms * 1000000;
    do {
        for (uint64_t i = 0; i < 100000; i++) {
            sum += i;
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec < end);
}

__attribute__((noipa)) void sixty(void)
{
    work(12);
}

__attribute__((noipa)) void thirty(void)
{
    work(6);
}

__attribute__((noipa)) void ten(void)
{
    work(2);
}

int main(int argc, char **argv)
{
    for (unsigned rounds = argc > 1 ? (unsigned)(atof(argv[1]) * 10) : 100; rounds > 0; rounds--) {
        sixty();
        thirty();
        ten();
        puts("what would be in the middle of the screen");
        fflush(stdout);
        usleep(80000);
    }
    return 0;
}
