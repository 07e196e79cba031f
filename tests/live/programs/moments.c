/* Holds a thread for half of each millisecond, as profilers do that stop a process to read it, for so many seconds. */
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

int main(int argc, char **argv)
{
    pid_t tid = argc > 1 ? atoi(argv[1]) : 0;
    time_t until = time(NULL) + (argc > 2 ? atoi(argv[2]) : 1);
    const struct timespec half = {0, 500000};
    while (time(NULL) < until) {
        if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0) {
            (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
            (void)waitpid(tid, NULL, __WALL);
            (void)nanosleep(&half, NULL);
            (void)ptrace(PTRACE_DETACH, tid, NULL, NULL);
        }
        (void)nanosleep(&half, NULL);
    }
    return 0;
}
