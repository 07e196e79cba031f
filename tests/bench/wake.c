/*
 * wake HZ WAKES [TID]: sleeps and wakes up, HZ times a second, and does nothing else, or holds the thread TID once each
 * time, asks for its registers and lets it go. Prints the CPU time of a wake in ns, by its own clock. On the CPU of a
 * busy program this is what no profiler that interrupts it there, or stops it, can do without: an interrupt, switches,
 * the system calls, all of it with caches that the program has just filled.
 */
#include <elf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

static double own_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int hold(pid_t tid)
{
    unsigned long words[64];
    struct iovec all = {words, sizeof words};
    int status;
    return ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0 && ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 &&
           waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
           ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &all) == 0 && ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0;
}

int main(int argc, char **argv)
{
    long hz = argc >= 3 ? atol(argv[1]) : 0, wakes = argc >= 3 ? atol(argv[2]) : 0;
    pid_t tid = argc == 4 ? atoi(argv[3]) : 0;
    if (hz < 2 || wakes < 1) {
        fprintf(stderr, "usage: wake HZ WAKES [TID]\n");
        return 2;
    }
    double before = own_ns();
    for (long i = 0; i < wakes; i++) {
        struct timespec pause = {0, 1000000000 / hz};
        ppoll(NULL, 0, &pause, NULL);
        if (tid != 0 && !hold(tid)) {
            perror("wake: it cannot be held");
            return 1;
        }
    }
    printf("%.0f\n", (own_ns() - before) / (double)wakes);
    return 0;
}
