/*
 * work_churn DEED …: processes and threads that come and go, with the CPU time that the kernel says they took.
 * Each deed ends with lines "NAME COUNT NANOSECONDS" on standard output. Statically linked, so that
 * starting one of its own kind costs little. Times are wall seconds unless said otherwise.
 *
 *     churn SECONDS RATE LONGS FOLDER   RATE processes per second, started by vfork and exec: of eight, seven
 *                          burn 2 ms (FOLDER/short) and one does so at both ends of 100 ms (FOLDER/middle);
 *                          beside LONGS that use a fifth of a CPU each (FOLDER/long) and then stay until
 *                          standard input ends. The links in FOLDER lead here
 *     idle COUNT SECONDS   so many processes that wake up five times a second and do next to nothing
 *     threads SECONDS RATE threads per second, each burns 0.3 ms; this one and the next three do nothing for
 *                          the last 0.4 s, so that who reads /proc has read what they used
 *     forks ROUNDS WIDTH   so many children at once, which leave two children each behind
 *     chain COUNT FOLDER   a process that becomes another program (FOLDER/odd, FOLDER/even), 10 CPU ms each
 *     reuse COUNT          children one after the other under one pid, of two names; a PID namespace of
 *                          its own and the right to set ns_last_pid are needed
 *     mass IDLE BUSY LATE SECONDS   IDLE sleeping threads; behind them BUSY threads that use half a CPU
 *                          together; then, from half of the time on, LATE of the first ones do instead
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024, THREADS_MAX = 8192, PATH_MOST = 4096 };

static volatile uint64_t sink;

static uint64_t now_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

__attribute__((noipa)) static void turn(void)
{
    volatile uint64_t seed = sink;
    uint64_t x = seed;
    for (int i = 0; i < 20000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u + (x >> 33);
    sink = x;
}

/* CPU time of the calling thread. */
__attribute__((noipa)) static void burn(double ms)
{
    uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(ms * 1e6);
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        turn();
}

static uint64_t cpu_of(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

static uint64_t cpu_who(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return cpu_of(&usage);
}

static void say(const char *name, unsigned long count, uint64_t ns)
{
    printf("%s %lu %llu\n", name, count, (unsigned long long)ns);
    fflush(stdout);
}

static int rest(void)
{
    nap_ns(400000000);
    return 0;
}

/* ---- what is started ---- */

static int be_short(void)
{
    burn(2);
    return 0;
}

static int be_middle(void)
{
    burn(2);
    nap_ns(100000000);
    burn(2);
    return 0;
}

/* long SECONDS */
static int be_long(char **argv)
{
    uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)(atof(argv[1]) * 1e9);
    char byte;
    while (now_ns(CLOCK_MONOTONIC) < end) {
        burn(4);
        nap_ns(16000000);
    }
    say("long", 1, cpu_who(RUSAGE_SELF));
    return read(0, &byte, 1) < 0;
}

/* idle SECONDS */
static int be_idle(double seconds)
{
    uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
    while (now_ns(CLOCK_MONOTONIC) < end)
        nap_ns(200000000);
    return 0;
}

/* ---- deeds ---- */

static pid_t start(const char *folder, const char *name, char *argument)
{
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *argv[] = {path, argument, NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        execv(path, argv);
        _exit(127);
    }
    return pid;
}

struct tally {
    unsigned long ended, failed;
    uint64_t ns;
};

/* Whoever of the short-lived has ended. */
static void reap(struct tally *tally, const pid_t *longs, int long_count, bool wait_for_all)
{
    int status;
    struct rusage usage;
    for (pid_t pid; (pid = wait4(-1, &status, wait_for_all ? 0 : WNOHANG, &usage)) > 0;) {
        for (int i = 0; i < long_count; i++)
            tally->failed += longs[i] == pid;
        tally->failed += status != 0;
        tally->ended++;
        tally->ns += cpu_of(&usage);
    }
}

static int deed_churn(char **argv)
{
    double seconds = atof(argv[0]), rate = atof(argv[1]);
    int long_count = atoi(argv[2]);
    pid_t longs[64] = {0};
    struct tally tally = {0};
    for (int i = 0; i < long_count; i++)
        longs[i] = start(argv[3], "long", argv[0]);
    uint64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + (uint64_t)(seconds * 1e9);
    unsigned long started = 0;
    for (uint64_t now; (now = now_ns(CLOCK_MONOTONIC)) < end;) {
        for (; rate > 0 && (double)started < (double)(now - begin) / 1e9 * rate; started++)
            if (start(argv[3], started % 8 == 7 ? "middle" : "short", NULL) < 0)
                tally.failed++;
        reap(&tally, longs, long_count, false);
        nap_ns(2000000);
    }
    while (tally.ended < started) {
        reap(&tally, longs, long_count, false);
        nap_ns(2000000);
    }
    say("dead", tally.ended, tally.ns);
    say("own", 1, cpu_who(RUSAGE_SELF));
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    while (wait(NULL) > 0)
        ;
    return tally.failed > 0;
}

static int deed_idle(char **argv)
{
    double seconds = atof(argv[1]);
    for (int i = 0; i < atoi(argv[0]); i++)
        if (fork() == 0)
            _exit(be_idle(seconds));
    printf("ready\n");
    fflush(stdout);
    while (wait(NULL) > 0)
        ;
    return 0;
}

static void *short_thread(void *unused)
{
    (void)unused;
    burn(0.3);
    return NULL;
}

static int deed_threads(char **argv)
{
    double seconds = atof(argv[0]), rate = atof(argv[1]);
    uint64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + (uint64_t)(seconds * 1e9);
    unsigned long started = 0;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (uint64_t now; (now = now_ns(CLOCK_MONOTONIC)) < end;) {
        pthread_t thread[64];
        int count = 0;
        while (count < 64 && (double)started < (double)(now - begin) / 1e9 * rate)
            if (pthread_create(&thread[count], &attr, short_thread, NULL) == 0)
                count++, started++;
        for (int i = 0; i < count; i++)
            pthread_join(thread[i], NULL);
        nap_ns(1000000);
    }
    say("threads", started, cpu_who(RUSAGE_SELF));
    return rest();
}

static int leave_two(void)
{
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            burn(2);
            _exit(0);
        }
    burn(2);
    return 0;
}

static int deed_forks(char **argv)
{
    unsigned long ended = 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (int round = 0; round < atoi(argv[0]); round++) {
        for (int i = 0; i < atoi(argv[1]); i++)
            if (fork() == 0)
                _exit(leave_two());
        while (wait(NULL) > 0) /* the orphans as well: they come to us */
            ended++;
    }
    say("forks", ended, cpu_who(RUSAGE_SELF) + cpu_who(RUSAGE_CHILDREN));
    return rest();
}

/* chain COUNT FOLDER; in the chain argv[0] is odd or even. */
static int deed_chain(char **argv)
{
    int left = atoi(argv[0]);
    char path[PATH_MOST], number[16];
    burn(10);
    if (left == 0) {
        say("chain", 1, cpu_who(RUSAGE_SELF));
        return rest();
    }
    snprintf(path, sizeof path, "%s/%s", argv[1], left % 2 == 1 ? "odd" : "even");
    snprintf(number, sizeof number, "%d", left - 1);
    char *next[] = {path, "chain", number, argv[1], NULL};
    execv(path, next);
    return 127;
}

static int deed_reuse(char **argv)
{
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    struct tally tally[2] = {0};
    char number[16];
    int wanted = 4000;
    for (int i = 0; i < atoi(argv[0]); i++) {
        int status;
        struct rusage usage;
        int len = snprintf(number, sizeof number, "%d", wanted - 1);
        if (pwrite(fd, number, (size_t)len, 0) != len)
            return 99;
        pid_t pid = fork();
        if (pid == 0) {
            if (getpid() != wanted) /* the profiler has a process of its own by that number */
                _exit(98);
            prctl(PR_SET_NAME, i % 2 == 0 ? "one" : "two");
            burn(i % 2 == 0 ? 30 : 10);
            _exit(0);
        }
        if (wait4(pid, &status, 0, &usage) != pid || (status != 0 && (WEXITSTATUS(status) != 98 || wanted++ == 5000)))
            return WEXITSTATUS(status);
        if (status != 0) {
            i--;
            continue;
        }
        tally[i % 2].ended++;
        tally[i % 2].ns += cpu_of(&usage);
    }
    say("one", tally[0].ended, tally[0].ns);
    say("two", tally[1].ended, tally[1].ns);
    return rest();
}

/* ---- many threads ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int phase; /* 1: the last threads are busy, 2: the first ones */
    int idle, busy, late;
    _Atomic uint64_t busy_ns, late_ns;
} mass = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void work_while(int phase, int workers)
{
    while (__atomic_load_n(&mass.phase, __ATOMIC_RELAXED) == phase) {
        burn(2);
        nap_ns((uint64_t)workers * 4000000u);
    }
}

static void wait_for(int phase)
{
    pthread_mutex_lock(&mass.lock);
    while (mass.phase < phase)
        pthread_cond_wait(&mass.changed, &mass.lock);
    pthread_mutex_unlock(&mass.lock);
}

static void *mass_idle(void *number)
{
    if ((intptr_t)number < mass.late) {
        prctl(PR_SET_NAME, "late");
        wait_for(2);
        work_while(2, mass.late);
        mass.late_ns += now_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    wait_for(3);
    return NULL;
}

static void *mass_busy(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "busy");
    work_while(1, mass.busy);
    mass.busy_ns += now_ns(CLOCK_THREAD_CPUTIME_ID);
    wait_for(3);
    return NULL;
}

static void enter(int phase)
{
    pthread_mutex_lock(&mass.lock);
    __atomic_store_n(&mass.phase, phase, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&mass.changed);
    pthread_mutex_unlock(&mass.lock);
}

static int deed_mass(char **argv)
{
    static pthread_t thread[THREADS_MAX];
    int count = 0;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    mass.idle = atoi(argv[0]);
    mass.busy = atoi(argv[1]);
    mass.late = atoi(argv[2]);
    uint64_t half = (uint64_t)(atof(argv[3]) * 5e8);
    mass.phase = 1;
    for (; count < mass.idle + mass.busy && count < THREADS_MAX; count++)
        if (pthread_create(&thread[count], &attr, count < mass.idle ? mass_idle : mass_busy,
                           (void *)(intptr_t)count) != 0)
            return 98;
    printf("ready\n");
    fflush(stdout);
    nap_ns(half);
    enter(2);
    nap_ns(half);
    enter(3);
    while (count > 0)
        pthread_join(thread[--count], NULL);
    say("busy", (unsigned long)mass.busy, mass.busy_ns);
    say("late", (unsigned long)mass.late, mass.late_ns);
    say("all", 1, cpu_who(RUSAGE_SELF));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        int (*deed)(char **argv);
    } deeds[] = {
        {"churn", 4, deed_churn}, {"idle", 2, deed_idle},   {"threads", 2, deed_threads},
        {"forks", 2, deed_forks}, {"chain", 2, deed_chain}, {"reuse", 1, deed_reuse},
        {"mass", 4, deed_mass},
    };
    const char *slash = strrchr(argv[0], '/'), *own = slash != NULL ? slash + 1 : argv[0];
    if (strcmp(own, "short") == 0)
        return be_short();
    if (strcmp(own, "middle") == 0)
        return be_middle();
    if (strcmp(own, "long") == 0 && argc == 2)
        return be_long(argv);
    for (size_t i = 0; argc > 1 && i < sizeof deeds / sizeof deeds[0]; i++)
        if (strcmp(argv[1], deeds[i].name) == 0 && argc == deeds[i].arguments + 2)
            return deeds[i].deed(argv + 2);
    fprintf(stderr, "usage: work_churn DEED …\n");
    return 2;
}
