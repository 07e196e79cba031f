/*
 * steady SECONDS: what a program that is stopped now and then must not notice, counted by itself.
 *
 *   50 threads sum up numbers and are sent a queued signal each, up to a thousand times a second;
 *   one starts /bin/true by vfork, one by one, and takes its status;
 *   ten make system calls that may return EINTR, and count how often they do.
 *
 * At the end it prints "sums S wrong W signals G of E starts T failed F interrupted I": sums that were finished and
 * those that came out wrong, signals handled and sent, programs started and those that did not end with 0, and calls
 * that returned EINTR.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 50, NUMBERS = 20000 };

static atomic_bool over;
static atomic_ulong sums, wrong, handled, sent, starts, failed, interrupted;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    handled++;
}

static void *sum_up(void *unused)
{
    while (!over) {
        volatile uint64_t sum = 0;
        for (uint64_t i = 1; i <= NUMBERS; i++)
            sum += i;
        wrong += sum != (uint64_t)NUMBERS * (NUMBERS + 1) / 2;
        sums++;
    }
    return unused;
}

/* They are queued: each that was sent is handled once. */
static void send_signals(const pthread_t *threads, double seconds)
{
    struct timespec begin, now, pause = {0, 1000000};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (unsigned i = 0; i < THREADS; i++)
            sent += pthread_sigqueue(threads[i], SIGRTMIN + 1, (union sigval){0}) == 0;
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
}

static void *start_programs(void *unused)
{
    char *argv[] = {"true", NULL};
    while (!over) {
        int status = -1;
        pid_t pid = vfork();
        if (pid == 0) {
            execv("/bin/true", argv);
            _exit(127);
        }
        failed += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
        starts++;
    }
    return unused;
}

/* Each takes some microseconds of work first, so that it is met running. */
static int call(unsigned which, int fd, int semaphores)
{
    struct timespec brief = {0, 300000};
    struct timeval same = {0, 300};
    struct epoll_event event;
    struct sembuf down = {0, -1, 0};
    struct pollfd one = {fd, POLLIN, 0};
    char byte;
    sigset_t none;
    fd_set set;
    sigemptyset(&none);
    FD_ZERO(&set);
    FD_SET(fd, &set);
    switch (which) {
    case 0: return epoll_wait(fd, &event, 1, 1);
    case 1: return semtimedop(semaphores, &down, 1, &brief);
    case 2: return sigtimedwait(&none, NULL, &brief);
    case 3: return (int)recv(fd, &byte, 1, 0); /* with a timeout */
    case 4: return nanosleep(&brief, NULL);
    case 5: return poll(&one, 1, 1);
    case 6: return select(fd + 1, &set, NULL, NULL, &same);
    case 7: return (int)syscall(SYS_futex, &which, 0, which, &brief, NULL, 0);
    case 8: return ppoll(&one, 1, &brief, &none);
    default: return clock_nanosleep(CLOCK_MONOTONIC, 0, &brief, NULL) == EINTR ? (errno = EINTR, -1) : 0;
    }
}

static void *make_calls(void *number)
{
    unsigned which = (unsigned)(uintptr_t)number;
    int pair[2], fd = which == 0 ? epoll_create1(0) : -1, semaphores = semget(IPC_PRIVATE, 1, 0600);
    struct timeval timeout = {0, 300};
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    if (fd < 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
        fd = pair[0];
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    }
    while (!over) {
        for (volatile unsigned i = 0; i < 20000; i++)
            ;
        errno = 0;
        interrupted += call(which, fd, semaphores) < 0 && errno == EINTR;
    }
    semctl(semaphores, 0, IPC_RMID);
    return NULL;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_t threads[THREADS + 11];
    unsigned count = 0;
    action.sa_sigaction = on_signal;
    sigaction(SIGRTMIN + 1, &action, NULL);
    for (; count < THREADS; count++)
        pthread_create(&threads[count], NULL, sum_up, NULL);
    pthread_create(&threads[count++], NULL, start_programs, NULL);
    for (uintptr_t which = 0; which < 10; which++)
        pthread_create(&threads[count++], NULL, make_calls, (void *)which);
    printf("ready\n");
    fflush(stdout);
    send_signals(threads, seconds);
    over = true;
    while (count > 0)
        pthread_join(threads[--count], NULL);
    printf("sums %lu wrong %lu signals %lu of %lu starts %lu failed %lu interrupted %lu\n", sums, wrong, handled, sent,
           starts, failed, interrupted);
    return 0;
}
