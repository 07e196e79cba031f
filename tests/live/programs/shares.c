/*
 * shares SECONDS [TENTH]: SECONDS of CPU time, 60 % in sixty(), 30 % in thirty(), 10 % in ten(), by counting
 * work: each runs the same loop 6, 3 and 1 times as often. At the end it prints the true shares, measured
 * with the thread's CPU clock around each call: "sixty 0.6001 thirty 0.2999 ten 0.1000 seconds 20.01".
 *
 * A round of calls lasts about a second (ten times TENTH), many sampling periods, so that the error of a correct
 * profile is a fraction of a per cent and not that of drawing lots.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Inlined into each caller: the time is the caller's own. A function that never touches the stack gets no frame
 * pointer from gcc, whatever the flags say, and its caller would be missed: hence the volatile. */
static inline __attribute__((always_inline)) uint64_t work(uint64_t given, uint64_t rounds)
{
    volatile uint64_t kept = given;
    uint64_t seed = kept;
    for (uint64_t i = 0; i < rounds; i++)
        seed = seed * 6364136223846793005u + 1442695040888963407u + (seed >> 33);
    return seed;
}

__attribute__((noipa)) uint64_t sixty(uint64_t seed, uint64_t unit)
{
    return work(seed, unit * 6) + 6;
}

__attribute__((noipa)) uint64_t thirty(uint64_t seed, uint64_t unit)
{
    return work(seed, unit * 3) + 3;
}

__attribute__((noipa)) uint64_t ten(uint64_t seed, uint64_t unit)
{
    return work(seed, unit) + 1;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 20;
    uint64_t (*const call[3])(uint64_t, uint64_t) = {sixty, thirty, ten};
    double tenth = argc > 2 ? atof(argv[2]) : 0.1;
    double spent[3] = {0}, total = 0;
    uint64_t seed = 1, unit = argc > 2 ? 1 << 16 : 1 << 20;

    /* How many rounds are a tenth of it? Counted as ten()'s own time, so nothing is hidden. */
    double begin = cpu_now();
    seed = ten(seed, unit);
    double warm = cpu_now() - begin;
    spent[2] += warm;
    total += warm;
    unit = (uint64_t)((double)unit * tenth / (warm > 1e-4 ? warm : 1e-4));

    while (total < seconds)
        for (int i = 0; i < 3; i++) {
            begin = cpu_now();
            seed = call[i](seed, unit);
            double took = cpu_now() - begin;
            spent[i] += took;
            total += took;
        }
    printf("sixty %.4f thirty %.4f ten %.4f seconds %.3f\n", spent[0] / total, spent[1] / total, spent[2] / total,
           total);
    return seed == 0;
}
