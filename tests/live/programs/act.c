/*
 * act DEED [ARGS...]: one program for the small deeds the live tests need of a command. Each deed is one
 * function below, with its usage. Times are CPU seconds unless said otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile uint64_t sink;

/* About 2 ms of arithmetic. A function that never touches the stack gets no frame pointer from gcc, whatever the
 * flags say, and its caller would be missed: hence the volatile. */
__attribute__((noipa)) static void burn(void)
{
    volatile uint64_t seed = sink;
    uint64_t x = seed;
    for (int i = 0; i < 1000000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u + (x >> 33);
    sink = x;
}

__attribute__((noipa)) static int spin(double seconds)
{
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < seconds)
        burn();
    return 0;
}

/* gap SECONDS: below an array of which one page is used, to its last bytes; the kernel copies the stack up to there */
__attribute__((noipa)) static int deed_gap(char **argv)
{
    volatile char room[128 * 1024];
    volatile uint64_t *last = (volatile uint64_t *)(((uintptr_t)room + 8192) & ~(uintptr_t)4095) - 1;
    *last = 0;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < atof(argv[0])) {
        burn();
        ++*last;
    }
    return 0;
}

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static double number(char **argv, int at, double otherwise)
{
    return argv[at] ? atof(argv[at]) : otherwise;
}

/* exit STATUS */
static int deed_exit(char **argv)
{
    return (int)number(argv, 0, 0);
}

/* kill SIGNAL: dies by it, whatever its parent ignores */
static int deed_kill(char **argv)
{
    int signal_number = (int)number(argv, 0, SIGTERM);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    return 99;
}

/* spin SECONDS [STATUS] */
static int deed_spin(char **argv)
{
    spin(number(argv, 0, 1));
    return argv[0] && argv[1] ? atoi(argv[1]) : 0;
}

/* wait SECONDS [STATUS]: sleeps that long (wall time) */
static int deed_wait(char **argv)
{
    nap(number(argv, 0, 1));
    return argv[0] && argv[1] ? atoi(argv[1]) : 0;
}

/* hold MB SECONDS [STATUS]: uses that much memory, and runs */
static int deed_hold(char **argv)
{
    size_t bytes = (size_t)(number(argv, 0, 1) * 1048576);
    volatile char *memory = malloc(bytes);
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 0;
    spin(number(argv, 1, 1));
    return memory[bytes / 2] + (int)number(argv, 2, 0);
}

/* closeall SECONDS STATUS: closes every descriptor first */
static int deed_closeall(char **argv)
{
    for (int fd = 0; fd < 65536; fd++)
        close(fd);
    spin(number(argv, 0, 0.1));
    return (int)number(argv, 1, 0);
}

/* files: lists the open descriptors, the signal dispositions, the limits: what a command inherits */
static int deed_files(char **argv)
{
    (void)argv;
    char path[64], target[256];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        char *inode = strchr(target, '[');
        printf("fd %d %s flags %d\n", fd, inode ? "pipe or socket" : target, fcntl(fd, F_GETFD));
    }
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(target, sizeof target, status))
        if ((strncmp(target, "Sig", 3) == 0 && target[3] != 'Q') || strncmp(target, "Shd", 3) == 0 ||
            strncmp(target, "Seccomp", 7) == 0 ||
            strncmp(target, "Cap", 3) == 0 || strncmp(target, "NoNew", 5) == 0 ||
            strncmp(target, "Cpus_allowed:", 13) == 0)
            fputs(target, stdout);
    for (int limit = 0; limit < RLIM_NLIMITS; limit++) {
        struct rlimit r;
        getrlimit(limit, &r);
        printf("limit %d %llu %llu\n", limit, (unsigned long long)r.rlim_cur, (unsigned long long)r.rlim_max);
    }
    int reaper = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &reaper, 0, 0, 0);
    printf("nice %d dumpable %d subreaper %d timer slack %d\n", getpriority(PRIO_PROCESS, 0),
           prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), reaper, prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
    printf("children %s\n", waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? "none" : "some");
    return 0;
}

/* ids: process, group and session, whether it leads them, and its parent */
static int deed_ids(char **argv)
{
    (void)argv;
    printf("pid %d parent %d group %d session %d\n", getpid(), getppid(), getpgrp(), getsid(0));
    return 0;
}

__attribute__((noipa)) static int daemon_work(double seconds)
{
    return spin(seconds);
}

/* daemon SECONDS: double fork, own session, no descriptors; prints the daemon's pid */
static int deed_daemon(char **argv)
{
    int ready[2];
    pid_t pid = 0;
    if (pipe2(ready, O_CLOEXEC) != 0)
        return 98;
    if (fork() == 0) {
        setsid();
        pid = fork();
        if (pid == 0) {
            for (int fd = 0; fd < 1024; fd++)
                close(fd);
            _exit(daemon_work(number(argv, 0, 0.5)));
        }
        _exit(write(ready[1], &pid, sizeof pid) != sizeof pid);
    }
    if (read(ready[0], &pid, sizeof pid) != sizeof pid)
        return 98;
    wait(NULL);
    printf("%d\n", pid);
    return 0;
}

__attribute__((noipa)) static int left_behind(double seconds)
{
    return spin(seconds);
}

/* leave COUNT SECONDS: children that go on after their parent ended with 3 */
static int deed_leave(char **argv)
{
    for (int i = 0; i < (int)number(argv, 0, 1); i++)
        if (fork() == 0)
            _exit(left_behind(number(argv, 1, 0.3)));
    return 3;
}

/* signals: prints "ready PID", then each signal's number and value; TERM ends it with status 7 */
static int deed_signals(char **argv)
{
    (void)argv;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    printf("ready %d\n", getpid());
    fflush(stdout);
    for (;;) {
        siginfo_t info;
        int signal_number = sigwaitinfo(&all, &info);
        if (signal_number < 0)
            continue;
        if (signal_number >= SIGRTMIN)
            printf("RTMIN+%d\n", signal_number - SIGRTMIN);
        else
            printf("%s\n", sigabbrev_np(signal_number));
        fflush(stdout);
        if (signal_number == SIGTERM)
            return 7;
    }
}

static void *thread_work(void *argument)
{
    prctl(PR_SET_NAME, "worker");
    spin(*(double *)argument);
    return NULL;
}

/* threads COUNT SECONDS: each thread spends SECONDS */
static int deed_threads(char **argv)
{
    int count = (int)number(argv, 0, 4);
    double seconds = number(argv, 1, 1);
    pthread_t thread[64];
    for (int i = 0; i < count && i < 64; i++)
        pthread_create(&thread[i], NULL, thread_work, &seconds);
    for (int i = 0; i < count && i < 64; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

__attribute__((noipa)) static int child_work(double seconds)
{
    return spin(seconds);
}

/* processes COUNT SECONDS: each child spends SECONDS; one after the other when COUNT is negative */
static int deed_processes(char **argv)
{
    int count = (int)number(argv, 0, 4);
    for (int i = 0; i < abs(count); i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child_work(number(argv, 1, 1)));
        if (count < 0)
            waitpid(pid, NULL, 0);
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

__attribute__((noipa)) static void doze(void)
{
    double until = clock_of(CLOCK_THREAD_CPUTIME_ID) + 0.003;
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
        burn();
    nap(0.0071);
}

/* sleepy SECONDS: that long by the wall clock, a third of it working, 100 naps a second */
static int deed_sleepy(char **argv)
{
    double until = clock_of(CLOCK_MONOTONIC) + number(argv, 0, 1);
    while (clock_of(CLOCK_MONOTONIC) < until)
        doze();
    return 0;
}

__attribute__((noipa)) static void *thread_after(void *argument)
{
    prctl(PR_SET_NAME, "later");
    spin(0.2);
    return argument;
}

__attribute__((noipa)) static void *thread_before(void *argument)
{
    prctl(PR_SET_NAME, "earlier");
    while (clock_of(CLOCK_MONOTONIC) < *(double *)argument) {
        burn();
        nap(0.001);
    }
    return NULL;
}

__attribute__((noipa)) static int child_after(void)
{
    return spin(0.2);
}

/* grow SECONDS: by the wall clock; one thread from the start, every half second a new thread and a new child */
static int deed_grow(char **argv)
{
    double until = clock_of(CLOCK_MONOTONIC) + number(argv, 0, 1);
    pthread_t early, later;
    pthread_create(&early, NULL, thread_before, &until);
    puts("ready");
    fflush(stdout);
    while (clock_of(CLOCK_MONOTONIC) < until) {
        pthread_create(&later, NULL, thread_after, NULL);
        pid_t pid = fork();
        if (pid == 0)
            _exit(child_after());
        pthread_join(later, NULL);
        waitpid(pid, NULL, 0);
        nap(0.25);
    }
    pthread_join(early, NULL);
    return 0;
}

static void *crew_member(void *dismissed)
{
    while (!__atomic_load_n((bool *)dismissed, __ATOMIC_ACQUIRE)) {
        burn();
        nap(0.02);
    }
    return NULL;
}

/* crew COUNT SECONDS: by the wall clock; threads that work a little each until USR1 comes, then alone; prints "ready",
 * "alone" */
static int deed_crew(char **argv)
{
    static bool dismissed;
    int count = (int)number(argv, 0, 4);
    double until = clock_of(CLOCK_MONOTONIC) + number(argv, 1, 1);
    pthread_t thread[64];
    sigset_t usr1;
    int signal_number;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    for (int i = 0; i < count && i < 64; i++)
        pthread_create(&thread[i], NULL, crew_member, &dismissed);
    puts("ready");
    fflush(stdout);
    sigwait(&usr1, &signal_number);
    __atomic_store_n(&dismissed, true, __ATOMIC_RELEASE);
    for (int i = 0; i < count && i < 64; i++)
        pthread_join(thread[i], NULL);
    puts("alone");
    fflush(stdout);
    while (clock_of(CLOCK_MONOTONIC) < until)
        doze();
    return 0;
}

/* clock SECONDS: reads the wall clock without entering the kernel */
static int deed_clock(char **argv)
{
    double until = clock_of(CLOCK_MONOTONIC) + number(argv, 0, 1);
    while (clock_of(CLOCK_MONOTONIC) < until)
        for (int i = 0; i < 10000; i++)
            clock_of(CLOCK_REALTIME);
    return 0;
}

/* kernel SECONDS: nearly all of it inside the kernel */
static int deed_kernel(char **argv)
{
    static char buffer[1 << 20];
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    double until = number(argv, 0, 1);
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
        if (read(zero, buffer, sizeof buffer) < 0)
            return 98;
    return 0;
}

/* unlink FILE SECONDS: removes FILE (its own executable), then works */
static int deed_unlink(char **argv)
{
    unlink(argv[0]);
    return spin(number(argv, 1, 1));
}

/* How many processes of this PID namespace are zombies. */
static int zombies(void)
{
    int count = 0;
    char path[64], line[512];
    for (int pid = 1; pid < 32768; pid++) {
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *stat = fopen(path, "re");
        if (!stat)
            continue;
        if (fgets(line, sizeof line, stat) && strrchr(line, ')') && strrchr(line, ')')[2] == 'Z')
            count++;
        fclose(stat);
    }
    return count;
}

/* waitall [STATUS]: a child of a quarter of a second, and a wait for every child there is */
static int deed_waitall(char **argv)
{
    if (fork() == 0) {
        nap(0.25);
        _exit(0);
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
    return (int)number(argv, 0, 0);
}

/* orphans COUNT: grandchildren that lose their parent and end; then prints how many zombies there are */
static int deed_orphans(char **argv)
{
    for (int i = 0; i < (int)number(argv, 0, 3); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (fork() == 0) {
                nap(0.05);
                _exit(0);
            }
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    nap(0.4);
    printf("zombies %d\n", zombies());
    return 0;
}

/* generated SECONDS: in a loop of a thousand instructions that is in no file */
static int deed_generated(char **argv)
{
    enum { LENGTH = 1000 };
    uint32_t *code = mmap(NULL, 4 * (LENGTH + 3), PROT_READ | PROT_WRITE | PROT_EXEC,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*run)(uint64_t turns) = (void (*)(uint64_t))(uintptr_t)code;
    double until = number(argv, 0, 1);
    if (code == MAP_FAILED)
        return 98;
#if defined __x86_64__
    int32_t back = -(4 * (LENGTH - 1) + 9);
    memset(code, 0x90, 4 * (LENGTH + 3)); /* nop */
    memcpy((char *)code + 4 * (LENGTH - 1), "\x48\xff\xcf\x0f\x85", 5); /* dec %rdi; jne code */
    memcpy((char *)code + 4 * (LENGTH - 1) + 5, &back, 4);
    memcpy((char *)code + 4 * (LENGTH - 1) + 9, "\xc3", 1); /* ret */
#else
    for (int i = 0; i < LENGTH; i++)
        code[i] = 0xd503201f; /* nop */
    code[LENGTH] = 0xf1000400;                                        /* subs x0, x0, #1 */
    code[LENGTH + 1] = 0x54000001 | ((uint32_t)-(LENGTH + 1) & 0x7ffff) << 5; /* b.ne code */
    code[LENGTH + 2] = 0xd65f03c0;                                    /* ret */
    __builtin___clear_cache((char *)code, (char *)(code + LENGTH + 3));
#endif
    while (clock_of(CLOCK_THREAD_CPUTIME_ID) < until)
        run(1000);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(char **);
} deeds[] = {
    {"exit", deed_exit},       {"kill", deed_kill},       {"spin", deed_spin},           {"wait", deed_wait},
    {"closeall", deed_closeall}, {"files", deed_files},   {"ids", deed_ids},             {"daemon", deed_daemon},
    {"leave", deed_leave},     {"signals", deed_signals}, {"threads", deed_threads},     {"processes", deed_processes},
    {"sleepy", deed_sleepy},   {"grow", deed_grow},       {"clock", deed_clock},         {"kernel", deed_kernel},
    {"unlink", deed_unlink},   {"orphans", deed_orphans}, {"crew", deed_crew},           {"gap", deed_gap},
    {"generated", deed_generated}, {"hold", deed_hold},         {"waitall", deed_waitall},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof deeds / sizeof deeds[0]; i++)
        if (strcmp(deeds[i].name, argv[1]) == 0)
            return deeds[i].run(argv + 2);
    fprintf(stderr, "act: what?\n");
    return 97;
}
