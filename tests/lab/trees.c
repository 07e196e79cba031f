/*
 * trees DEED …: trees of processes that are drawn by lot, and the truth of who used how much CPU time. Times are CPU
 * time unless said otherwise. FOLDER holds links to this program, one for each of `names` and "tree", and one to a
 * shell, "sh"; the environment's TREES_SUFFIX is the end of all these names.
 *
 *     FOLDER/tree root SEED US [hold]   the first process of a tree that uses some US microseconds. The truth goes to
 *                          FOLDER/truth. With "hold" a part of it is there before it says "ready" and waits for
 *                          standard input; what was used before the line "go" does not count
 *     FOLDER/NAME node SEED US DEPTH    any other one that an exec made (held: it waits for the root first)
 *     burn MS              one process that burns
 *     levels COUNT MS      so many children, one after the other, that do nothing but wait for a child that burns
 *     meet COUNT US        so many children, one after the other, each with four threads that burn and end at once
 *     pool THREADS BUSY SECONDS     threads that each burn 0.5 ms about once a second, beside BUSY that always do; wall
 *     hog                  burns until it is ended
 *
 * The truth, one line per event, T is the monotonic time in ns, as all numbers:
 *     began PID PARENT T                 a process that can tell about itself
 *     shell PID PARENT T                 one that cannot
 *     used PID NAME OWN CHILDREN T       so far, at the end of a name or of a life; NAME is "-" before "go"
 *     waited PID ALL T                   what wait4 said of it and of those that it had waited for
 *     go T
 * lab/trees.py adds it up.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
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

/* Descriptors that all of a tree inherit: held ones wait for GO's end, and the root for ALIVE's. */
enum { GO = 7, TRUTH = 8, ALIVE = 9 };
enum {
    DEPTH_MOST = 6,
    CHILDREN_MOST = 40,
    THREADS_MOST = 2000,
    LITTLE_US = 3000, /* is not shared out any more */
    STACK_BYTES = 64 * 1024,
    PATH_MOST = 256,
};

static const char *const names[] = {"ash",   "beech", "cedar", "elm",  "fir",   "hazel",
                                    "larch", "maple", "oak",   "pine", "rowan", "yew"};
static char folder[PATH_MOST];
static const char *suffix = ""; /* of all names */
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap_us(uint64_t us)
{
    struct timespec t = {(time_t)(us / 1000000u), (long)(us % 1000000u) * 1000};
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

__attribute__((noipa)) static void burn_us(int64_t us)
{
    uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + (us > 0 ? (uint64_t)us * 1000 : 0);
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        turn();
}

/* ---- the lot ---- */

struct lot {
    uint64_t state;
};

static uint64_t next(struct lot *lot)
{
    uint64_t x = lot->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int64_t below(struct lot *lot, int64_t limit)
{
    return limit <= 1 ? 0 : (int64_t)(next(lot) % (uint64_t)limit);
}

static bool chance(struct lot *lot, int percent)
{
    return below(lot, 100) < percent;
}

/* To be used before the next one is drawn. */
static const char *some_name(struct lot *lot)
{
    static char name[16];
    snprintf(name, sizeof name, "%s%s", names[below(lot, sizeof names / sizeof names[0])], suffix);
    return name;
}

/* ---- the truth ---- */

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    char line[256];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (write(TRUTH, line, (size_t)len) != len) /* O_APPEND: whole, whoever else writes */
        _exit(96);
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

static void tell_began(void)
{
    tell("began %d %d %llu\n", getpid(), getppid(), (unsigned long long)now_ns(CLOCK_MONOTONIC));
}

static void tell_used(const char *name)
{
    tell("used %d %s %llu %llu %llu\n", getpid(), name, (unsigned long long)cpu_who(RUSAGE_SELF),
         (unsigned long long)cpu_who(RUSAGE_CHILDREN), (unsigned long long)now_ns(CLOCK_MONOTONIC));
}

static void tell_used_by_this_name(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    tell_used(name);
}

static void leave(void)
{
    tell_used_by_this_name();
    _exit(0);
}

static pid_t wait_and_tell(pid_t pid)
{
    struct rusage usage;
    pid_t ended;
    while ((ended = wait4(pid, NULL, 0, &usage)) < 0 && errno == EINTR)
        ;
    if (ended > 0)
        tell("waited %d %llu %llu\n", ended, (unsigned long long)cpu_of(&usage),
             (unsigned long long)now_ns(CLOCK_MONOTONIC));
    return ended;
}

/* ---- work in threads ---- */

static void *burns(void *us)
{
    burn_us((intptr_t)us);
    return NULL;
}

static int begin_threads(pthread_t *thread, int count, void *(*does)(void *), intptr_t argument)
{
    pthread_attr_t attr;
    int begun = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    while (begun < count && pthread_create(&thread[begun], &attr, does, (void *)argument) == 0)
        begun++;
    pthread_attr_destroy(&attr);
    return begun;
}

static void join(pthread_t *thread, int count)
{
    while (count > 0)
        pthread_join(thread[--count], NULL);
}

/* Idle threads: each runs half a millisecond about once a second. */
static struct {
    pthread_t thread[THREADS_MOST];
    int count, rounds;
    bool waits_for_go;
} pool;

static void *idles(void *unused)
{
    struct lot lot = {(uint64_t)(uintptr_t)pthread_self()};
    char byte;
    (void)unused;
    while (pool.waits_for_go && read(GO, &byte, 1) < 0 && errno == EINTR)
        ;
    nap_us((uint64_t)below(&lot, 1000000));
    for (int i = 0; i < pool.rounds; i++) {
        burn_us(500);
        if (i + 1 < pool.rounds)
            nap_us(700000 + (uint64_t)below(&lot, 600000));
    }
    return NULL;
}

/* Returns what is left to do. */
static int64_t fill_pool(struct lot *lot, int64_t us)
{
    pool.rounds = 1 + (int)below(lot, 2);
    int64_t count = us / (500 * pool.rounds);
    pool.count = begin_threads(pool.thread, count > 600 ? 600 : (int)count, idles, 0);
    return us - pool.count * 500 * pool.rounds;
}

static void work(struct lot *lot, int64_t us)
{
    static pthread_t thread[8];
    int64_t manner = us < LITTLE_US ? 0 : below(lot, 10);
    if (manner < 6) {
        burn_us(us);
    } else if (manner < 8) {
        int count = 2 + (int)below(lot, 7);
        join(thread, begin_threads(thread, count, burns, us / count));
    } else {
        int64_t each = 300 + below(lot, 5000);
        for (int64_t left = us; left > 0; left -= each)
            join(thread, begin_threads(thread, 1, burns, left < each ? left : each));
    }
}

/* ---- processes ---- */

static void live(struct lot lot, int64_t us, int depth);

static void become(const char *deed, const char *name, uint64_t seed, int64_t us, int depth)
{
    char path[PATH_MOST + 16], a[32], b[32], c[32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(a, sizeof a, "%llu", (unsigned long long)seed);
    snprintf(b, sizeof b, "%lld", (long long)us);
    snprintf(c, sizeof c, "%d", depth);
    execl(path, path, deed, a, b, c, (char *)NULL);
    _exit(127);
}

static void live_and_leave(uint64_t seed, int64_t us, int depth)
{
    live((struct lot){seed}, us, depth);
    leave();
}

static int add_command(struct lot *lot, char *line, int room, int64_t us, int depth)
{
    uint64_t seed = next(lot);
    return snprintf(line, (size_t)room, "%s/%s node %llu %lld %d", folder, some_name(lot), (unsigned long long)seed,
                    (long long)us, depth);
}

/* A shell in the middle, which hardly runs itself: a; true, a; b; true, a & b; wait, or a that is left alone. */
static pid_t start_shell(struct lot *lot, int64_t us, int depth)
{
    static const struct {
        const char *begin, *between, *end;
    } forms[] = {{"", "; ", "; true"}, {"", "; ", "; true"}, {"", " & ", "; wait; true"}, {"(", " &); ", "; true"}};
    char line[4 * PATH_MOST], shell[PATH_MOST + 16];
    int form = chance(lot, 10) ? 3 : (int)below(lot, 3), len = 0, room = sizeof line;
    snprintf(shell, sizeof shell, "%s/sh%s", folder, suffix);
    int64_t first = form == 0 ? 0 : below(lot, us);
    if (form != 0) {
        len += snprintf(line, (size_t)room, "%s", forms[form].begin);
        len += add_command(lot, line + len, room - len, first, depth);
        len += snprintf(line + len, (size_t)(room - len), "%s", forms[form].between);
    }
    len += add_command(lot, line + len, room - len, us - first, depth);
    snprintf(line + len, (size_t)(room - len), "%s", forms[form].end);
    pid_t pid = vfork();
    if (pid == 0) {
        signal(SIGCHLD, SIG_DFL);
        execl(shell, "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    tell("shell %d %d %llu\n", pid, getpid(), (unsigned long long)now_ns(CLOCK_MONOTONIC));
    return pid;
}

static pid_t start_by_vfork(const char *name, uint64_t seed, int64_t us, int depth)
{
    pid_t pid = vfork();
    if (pid == 0)
        become("node", name, seed, us, depth);
    return pid;
}

static pid_t start(struct lot *lot, int64_t us, int depth)
{
    uint64_t seed = next(lot);
    const char *name = some_name(lot);
    int64_t kind = below(lot, 100);
    if (kind < 30)
        return start_shell(lot, us, depth);
    if (kind < 45)
        return start_by_vfork(name, seed, us, depth);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    pool.count = 0; /* the parent's threads are not here */
    tell_began();
    if (kind < 55) {
        tell_used_by_this_name();
        become("node", name, seed, us, depth);
    }
    if (kind < 62 && fork() != 0) /* a double fork: what does the work is nobody's child */
        leave();
    if (kind < 62) {
        tell_began();
        /* Without perf nobody can know it: mostly a small part of the whole. */
        us = us > 50000 && chance(lot, 75) ? 50000 : us;
    }
    if (kind < 85) {
        tell_used_by_this_name();
        prctl(PR_SET_NAME, name);
    }
    live_and_leave(seed, us, depth);
    return -1;
}

static int draw_children(struct lot *lot, int64_t us, int depth)
{
    if (depth >= DEPTH_MOST || us < LITTLE_US || chance(lot, depth * 15))
        return 0;
    return chance(lot, 12) ? 5 + (int)below(lot, CHILDREN_MOST - 5) : 1 + (int)below(lot, 4);
}

/* Of what a process and its children use. */
static int64_t draw_own(struct lot *lot, int64_t us)
{
    if (chance(lot, 40))
        return below(lot, us < 1000 ? us : 1000);
    return below(lot, us);
}

static void live(struct lot lot, int64_t us, int depth)
{
    bool deaf = chance(&lot, 5), waits_late = chance(&lot, 85);
    pid_t late[CHILDREN_MOST];
    int late_count = 0;
    signal(SIGCHLD, deaf ? SIG_IGN : SIG_DFL);
    if (depth > 0 && depth < DEPTH_MOST && chance(&lot, 12)) {
        int64_t before = below(&lot, us);
        work(&lot, before);
        tell_used_by_this_name();
        become("node", some_name(&lot), next(&lot), us - before, depth + 1);
    }
    int children = draw_children(&lot, us, depth);
    int64_t own = children == 0 ? us : draw_own(&lot, us), rest = us - own;
    if (depth < 2 && pool.count == 0 && own >= 10000 && chance(&lot, depth == 0 ? 30 : 10))
        own = fill_pool(&lot, own);
    for (int i = 0; i < children; i++) {
        int64_t now = own / (children - i + 1);
        int64_t part = i + 1 == children ? rest : below(&lot, 2 * rest / (children - i));
        work(&lot, now);
        own -= now;
        rest -= part;
        pid_t pid = start(&lot, part, depth + 1);
        if (chance(&lot, 40))
            wait_and_tell(pid);
        else if (waits_late)
            late[late_count++] = pid;
        if (chance(&lot, 20))
            nap_us((uint64_t)below(&lot, 60000));
    }
    work(&lot, own);
    if (late_count > 0 && chance(&lot, 50))
        nap_us((uint64_t)below(&lot, 200000));
    for (int i = 0; i < late_count; i++)
        wait_and_tell(late[i]);
    join(pool.thread, pool.count);
    pool.count = 0;
}

/* ---- the root ---- */

static void wait_for_go(void)
{
    char byte;
    while (read(GO, &byte, 1) < 0 && errno == EINTR)
        ;
}

static int be_held(uint64_t seed, int64_t us, int depth)
{
    tell_began();
    burn_us(3000);
    tell_used("-");
    if (write(STDOUT_FILENO, "x", 1) != 1)
        _exit(96);
    wait_for_go();
    live_and_leave(seed, us, depth);
    return 98;
}

/* A process that is there when the profiler comes, and goes on by itself afterwards. */
static void hold(struct lot *lot, int64_t us, int there, int go)
{
    uint64_t seed = next(lot);
    const char *name = some_name(lot);
    bool execs = chance(lot, 50);
    if (fork() != 0)
        return;
    close(go); /* which only the root writes to */
    dup2(there, STDOUT_FILENO);
    if (execs)
        become("held", name, seed, us, 1);
    prctl(PR_SET_NAME, name);
    be_held(seed, us, 1);
}

static int64_t stand_ready(struct lot *lot, int64_t us)
{
    int go[2], there[2], count = (int)below(lot, 4);
    char byte;
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(there, O_CLOEXEC) != 0 || dup2(go[0], GO) < 0)
        return 0;
    pid_t before = fork();
    if (before == 0) {
        tell_began();
        burn_us(30000);
        leave();
    }
    wait_and_tell(before);
    for (int i = 0; i < count; i++) {
        int64_t part = below(lot, us);
        us -= part;
        hold(lot, part, there[1], go[1]);
    }
    for (int i = 0; i < count; i++)
        if (read(there[0], &byte, 1) != 1)
            return 0;
    if (chance(lot, 40)) {
        pool.waits_for_go = true;
        us = fill_pool(lot, us / 2) + us - us / 2;
        nap_us(50000);
    }
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
        ;
    tell_used("-");
    tell("go %llu\n", (unsigned long long)now_ns(CLOCK_MONOTONIC));
    close(go[1]);
    return us;
}

static int be_root(uint64_t seed, int64_t us, bool holds)
{
    struct lot lot = {seed};
    char path[PATH_MOST + 16], byte;
    int alive[2];
    snprintf(path, sizeof path, "%s/truth", folder);
    for (int fd = GO; fd <= ALIVE; fd++) /* so that no pipe has these numbers */
        dup2(STDIN_FILENO, fd);
    int truth = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (truth < 0 || dup2(truth, TRUTH) < 0 || pipe2(alive, O_CLOEXEC) != 0 || dup2(alive[1], ALIVE) < 0)
        return 97;
    close(alive[1]);
    tell_began();
    if (holds)
        us = stand_ready(&lot, us);
    bool reaps = chance(&lot, 50), rests = chance(&lot, 85);
    live((struct lot){next(&lot)}, us, 0);
    close(ALIVE);
    while (read(alive[0], &byte, 1) < 0 && errno == EINTR) /* until all others have ended */
        ;
    while (reaps && wait_and_tell(-1) > 0)
        ;
    if (rests)
        nap_us(300000);
    leave();
    return 98;
}

static int be_node(uint64_t seed, int64_t us, int depth)
{
    tell_began();
    live_and_leave(seed, us, depth);
    return 98;
}

/* ---- small ones with a truth of their own ---- */

static int deed_levels(int count, int64_t us)
{
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            if (fork() == 0) {
                burn_us(us);
                _exit(0);
            }
            wait(NULL);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}

static void *meets(void *together)
{
    burn_us(pool.rounds);
    pthread_barrier_wait(together);
    return NULL;
}

static int deed_meet(int count, int us)
{
    enum { FOUR = 4 };
    pool.rounds = us;
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            pthread_t thread[FOUR];
            pthread_barrier_t together;
            pthread_barrier_init(&together, NULL, FOUR);
            for (int k = 0; k < FOUR; k++)
                pthread_create(&thread[k], NULL, meets, &together);
            join(thread, FOUR);
            _exit(0);
        }
        wait(NULL);
    }
    return 0;
}

static int deed_pool(int threads, int busy, int seconds)
{
    static pthread_t thread[64];
    pool.rounds = seconds;
    pool.count = begin_threads(pool.thread, threads > THREADS_MOST ? THREADS_MOST : threads, idles, 0);
    busy = begin_threads(thread, busy > 64 ? 64 : busy, burns, (intptr_t)seconds * 1000000);
    printf("ready\n");
    fflush(stdout);
    join(pool.thread, pool.count);
    join(thread, busy);
    return 0;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *deed = argc > 1 ? argv[1] : "";
    if (getenv("TREES_SUFFIX") != NULL)
        suffix = getenv("TREES_SUFFIX");
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - argv[0]) : 1, slash != NULL ? argv[0] : ".");
    if (strcmp(deed, "root") == 0 && argc >= 4)
        return be_root(strtoull(argv[2], NULL, 10), atoll(argv[3]), argc == 5);
    if (strcmp(deed, "node") == 0 && argc == 5)
        return be_node(strtoull(argv[2], NULL, 10), atoll(argv[3]), atoi(argv[4]));
    if (strcmp(deed, "held") == 0 && argc == 5)
        return be_held(strtoull(argv[2], NULL, 10), atoll(argv[3]), atoi(argv[4]));
    if (strcmp(deed, "burn") == 0 && argc == 3)
        burn_us(atoll(argv[2]) * 1000);
    else if (strcmp(deed, "levels") == 0 && argc == 4)
        return deed_levels(atoi(argv[2]), atoll(argv[3]) * 1000);
    else if (strcmp(deed, "meet") == 0 && argc == 4)
        return deed_meet(atoi(argv[2]), atoi(argv[3]));
    else if (strcmp(deed, "pool") == 0 && argc == 5)
        return deed_pool(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    else if (strcmp(deed, "hog") == 0)
        burn_us(INT64_MAX / 1000);
    else
        return fprintf(stderr, "usage: trees DEED …\n"), 2;
    return 0;
}
