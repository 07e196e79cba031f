/*
 * wake HZ WAKES: sleeps and wakes up, HZ times a second, and does nothing else. Prints the CPU time of a wake in ns, by
 * its own clock. On the CPU of a busy program this is what no profiler that interrupts it there can do without: an
 * interrupt, two switches, one system call, all of it with caches that the program has just filled.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double own_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    long hz = argc == 3 ? atol(argv[1]) : 0, wakes = argc == 3 ? atol(argv[2]) : 0;
    if (hz < 2 || wakes < 1) {
        fprintf(stderr, "usage: wake HZ WAKES\n");
        return 2;
    }
    double before = own_ns();
    for (long i = 0; i < wakes; i++) {
        struct timespec pause = {0, 1000000000 / hz};
        ppoll(NULL, 0, &pause, NULL);
    }
    printf("%.0f\n", (own_ns() - before) / (double)wakes);
    return 0;
}
