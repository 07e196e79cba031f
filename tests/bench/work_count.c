/*
 * work_count THREADS SECONDS [IDLE [FILE]]: that many threads busy 25 calls deep, for SECONDS by the
 * wall clock, beside IDLE ones that sleep. Prints the pieces of work that were done and the CPU time of
 * the process in ns: a piece is always the same work, so pieces per CPU second tell what sampling
 * takes from the program itself. FILE, of one page, shows them meanwhile: in each 64 bytes a number, the
 * process id and then the pieces of one thread.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 22, THREADS_MAX = 4096, IDLE_STACK_BYTES = 64 * 1024, SHOWN_MAX = 64 };

struct shown {
    _Alignas(64) atomic_uint_fast64_t number;
};
static struct shown *shown;

static atomic_bool over;
static atomic_uint_fast64_t pieces;
static volatile unsigned sink;

/* Some 20 microseconds. */
__attribute__((noipa)) static unsigned piece(unsigned number)
{
    for (unsigned i = 0; i < 10000; i++) {
        number = number * 1103515245u + 12345u;
        number ^= number >> 13;
    }
    return number;
}

__attribute__((noipa)) static unsigned descend(unsigned depth, unsigned number)
{
    volatile unsigned char room[96];
    room[depth] = (unsigned char)number;
    unsigned deeper = depth > 0 ? descend(depth - 1, number) : piece(number);
    return deeper + room[depth];
}

static void *work(void *number)
{
    struct shown unseen, *show = shown != NULL ? shown + (intptr_t)number : &unseen;
    uint64_t done = 0;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        sink += descend(DEPTH, sink);
        atomic_store_explicit(&show->number, ++done, memory_order_relaxed);
    }
    atomic_fetch_add(&pieces, done);
    return NULL;
}

static void *idle(void *unused)
{
    (void)unused;
    pause();
    return NULL;
}

static void nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* True unless the file cannot be shared. */
static bool show_in(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0666);
    void *page = fd >= 0 && ftruncate(fd, SHOWN_MAX * sizeof *shown) == 0
                     ? mmap(NULL, SHOWN_MAX * sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                     : MAP_FAILED;
    shown = page != MAP_FAILED ? page : NULL;
    return shown != NULL;
}

int main(int argc, char **argv)
{
    static pthread_t thread[THREADS_MAX];
    int busy = argc > 1 ? atoi(argv[1]) : 2, sleeping = argc > 3 ? atoi(argv[3]) : 0;
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    if (argc > 4 && (busy >= SHOWN_MAX || !show_in(argv[4]))) {
        fprintf(stderr, "%s: %s cannot be shared\n", argv[0], argv[4]);
        return 1;
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, IDLE_STACK_BYTES);
    for (int i = 0; i < sleeping && i < THREADS_MAX; i++) {
        pthread_create(&thread[0], &small, idle, NULL);
    }
    uint64_t before = cpu_ns();
    for (int i = 0; i < busy && i < THREADS_MAX; i++) {
        pthread_create(&thread[i], NULL, work, (void *)(intptr_t)(i + 1));
    }
    if (shown != NULL) {
        atomic_store(&shown->number, (uint64_t)getpid());
    }
    nap(seconds);
    atomic_store(&over, true);
    for (int i = 0; i < busy && i < THREADS_MAX; i++) {
        pthread_join(thread[i], NULL);
    }
    printf("%llu %llu\n", (unsigned long long)pieces, (unsigned long long)(cpu_ns() - before));
    fflush(stdout);
    _exit(0);
}
