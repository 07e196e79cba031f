/* A signal handler that works on its own stack, above a loop that was interrupted. */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile unsigned long sink;
static volatile sig_atomic_t signals;

__attribute__((noinline)) static void handle(int signal)
{
    unsigned long sum = (unsigned long)signal;
    for (unsigned long i = 0; i < 3000000; i++) {
        sum += i * i ^ (sum >> 3);
    }
    sink += sum;
    signals++;
}

__attribute__((noinline)) static unsigned long interrupted(int wanted)
{
    unsigned long sum = 0;
    while (signals < wanted) {
        sum += sum >> 3 ^ sink;
    }
    return sum;
}

__attribute__((noinline)) static unsigned long outer(int wanted)
{
    return interrupted(wanted) + 1;
}

int main(int argc, char **argv)
{
    static char room[1 << 16];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval timer = {{0, 10000}, {0, 10000}};
    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    return outer(argc > 1 ? atoi(argv[1]) : 60) == 1;
}
