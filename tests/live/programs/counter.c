/*
 * counter SECONDS [THREADS [KIB]]: counts as fast as it can, and keeps the count in memory, too.
 *
 * Each thread counts in a register (rbx, x19) and stores it each turn, so a sample's register and the memory
 * read later tell how many turns the thread made in between. Prints a line per thread, "TID WORD START LIMIT"
 * with the addresses in hexadecimal: the count's, and those of an area of KIB KiB on the thread's stack in
 * which every word holds its own address. Then "ready".
 */
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

static size_t area_words;
static pthread_barrier_t all_ready;
static _Alignas(64) uint64_t words[THREADS_MAX][8];

static void count(uint64_t *word)
{
#if defined(__x86_64__)
    __asm__ volatile("xorl %%ebx, %%ebx\n"
                     "1: incq %%rbx\n"
                     "movq %%rbx, (%0)\n"
                     "jmp 1b"
                     :
                     : "r"(word)
                     : "rbx", "memory");
#else
    __asm__ volatile("mov x19, #0\n"
                     "1: add x19, x19, #1\n"
                     "str x19, [%0]\n"
                     "b 1b"
                     :
                     : "r"(word)
                     : "x19", "memory");
#endif
}

static void *work(void *context)
{
    uint64_t *word = context;
    uint64_t *volatile area = alloca((area_words + 1) * sizeof *area);
    for (size_t i = 0; i < area_words; i++) {
        area[i] = (uint64_t)(uintptr_t)&area[i];
    }
    printf("%ld %lx %lx %lx\n", syscall(SYS_gettid), (unsigned long)(uintptr_t)word,
           (unsigned long)(uintptr_t)area, (unsigned long)(uintptr_t)(area + area_words));
    pthread_barrier_wait(&all_ready);
    count(word);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    area_words = argc > 3 ? (size_t)atoi(argv[3]) * 1024 / sizeof(uint64_t) : 0;
    threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    alarm(seconds);
    pthread_barrier_init(&all_ready, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, words[i]);
    }
    pthread_barrier_wait(&all_ready);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
