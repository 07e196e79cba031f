/*
 * faults PAGES SECONDS: touches fresh pages, PAGES of them in one() and three times as many in three(), in
 * turns, computing between them so that all takes about SECONDS of CPU time. At the end it prints how many minor
 * faults its process had since main: "faults 80012".
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { PAGE = 4096, TURN = 100 };

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
}

/* Huge pages would be one fault for hundreds. Inlined: the fault is the caller's own. */
static inline __attribute__((always_inline)) void touch(size_t pages)
{
    volatile char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    madvise((void *)at, pages * PAGE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++)
        at[i * PAGE] = 1;
    munmap((void *)at, pages * PAGE);
}

__attribute__((noipa)) void one(size_t pages)
{
    touch(pages);
}

__attribute__((noipa)) void three(size_t pages)
{
    touch(pages * 3);
}

__attribute__((noipa)) uint64_t compute(uint64_t seed, double until)
{
    volatile uint64_t kept = seed;
    do
        for (unsigned i = 0; i < 10000; i++)
            kept = kept * 6364136223846793005u + 1442695040888963407u;
    while (cpu_now() < until);
    return kept;
}

int main(int argc, char **argv)
{
    long pages = argc > 1 ? atol(argv[1]) : 20000, before = faults();
    double seconds = argc > 2 ? atof(argv[2]) : 2, begin = cpu_now();
    long turns = pages / TURN;
    uint64_t seed = 1;
    for (long i = 0; i < turns; i++) {
        one(TURN);
        three(TURN);
        seed = compute(seed, begin + seconds * (double)(i + 1) / (double)turns);
    }
    printf("faults %ld\n", faults() - before);
    return seed == 0;
}
