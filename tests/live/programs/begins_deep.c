/* begins_deep DEEP SHALLOW: works so many seconds of CPU time below 40 KB of stack, then as many others below main. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned sink;

__attribute__((noipa)) static void work(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    double end = (double)t.tv_sec + (double)t.tv_nsec / 1e9 + seconds;
    do {
        for (unsigned i = 0; i < 100000; i++) {
            sink = sink * 1103515245u + i;
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    } while ((double)t.tv_sec + (double)t.tv_nsec / 1e9 < end);
}

__attribute__((noipa)) static unsigned below(unsigned levels, double seconds)
{
    char room[1024];
    memset(room, (int)levels, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    if (levels == 0) {
        work(seconds);
        return (unsigned)room[0];
    }
    return below(levels - 1, seconds) + (unsigned)room[levels];
}

__attribute__((noipa)) static void shallow(double seconds)
{
    work(seconds);
    sink++;
}

int main(int argc, char **argv)
{
    sink = below(40, argc > 1 ? atof(argv[1]) : 1);
    shallow(argc > 2 ? atof(argv[2]) : 1);
    return 0;
}
