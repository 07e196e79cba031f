/*
 * work_libc: work whose innermost frames are in the C library. work_libc SECONDS
 *
 * Linked statically with a musl without unwind tables or frame pointers, it is the hardest case for
 * whoever walks stacks: every sample begins in code that nothing describes. Each deed calls the
 * library from a function of its own, at the end of a chain of three.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEED __attribute__((noinline, noclone))

static volatile size_t sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

DEED static void deed_malloc(unsigned round)
{
    void *kept[64];
    for (unsigned i = 0; i < 64; i++) {
        kept[i] = malloc((i * 37 + round) % 3000 + 1);
    }
    for (unsigned i = 0; i < 64; i++) {
        sink += kept[i] != NULL;
        free(kept[i]);
    }
}

DEED static int by_value(const void *left, const void *right)
{
    unsigned a = *(const unsigned *)left, b = *(const unsigned *)right;
    return (a > b) - (a < b);
}

DEED static void deed_qsort(unsigned round)
{
    unsigned numbers[256];
    for (unsigned i = 0; i < 256; i++) {
        numbers[i] = (i + round) * 2654435761u;
    }
    qsort(numbers, 256, sizeof numbers[0], by_value);
    sink += numbers[0];
}

DEED static void deed_snprintf(unsigned round)
{
    char text[200];
    for (unsigned i = 0; i < 20; i++) {
        sink += (size_t)snprintf(text, sizeof text, "%u %s %.6f %#lx", i, "a word", round / 7.0, (unsigned long)sink);
    }
}

DEED static void deed_strings(unsigned round)
{
    static __thread char from[8192], to[8192];
    memset(from, 'a' + (int)(round % 26), sizeof from - 1);
    for (unsigned i = 0; i < 20; i++) {
        memcpy(to, from, sizeof to - i);
        sink += strlen(to) + (strchr(to, '!') != NULL) + (size_t)memcmp(from, to, sizeof to - i);
    }
}

DEED static void deed_locks(unsigned round)
{
    for (unsigned i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        sink += round;
        pthread_mutex_unlock(&lock);
    }
}

DEED static void deed_system(unsigned round)
{
    for (unsigned i = 0; i < 100; i++) {
        sink += (size_t)getppid() + round;
    }
}

DEED static double deed_numbers(unsigned round)
{
    char text[40];
    double sum = 0;
    for (unsigned i = 0; i < 20; i++) {
        snprintf(text, sizeof text, "%u.%u", round, i);
        sum += strtod(text, NULL);
    }
    return sum;
}

DEED static void inner(unsigned round)
{
    deed_malloc(round);
    deed_qsort(round);
    deed_snprintf(round);
    deed_strings(round);
    deed_locks(round);
    deed_system(round);
    sink += (size_t)deed_numbers(round);
}

DEED static void outer(unsigned round)
{
    inner(round);
    sink++;
}

static void *work(void *seconds)
{
    time_t end = time(NULL) + atol(seconds);
    for (unsigned round = 0; time(NULL) < end; round++) {
        outer(round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t second;
    char *seconds = argc > 1 ? argv[1] : (char *)"1";
    int threads = pthread_create(&second, NULL, work, seconds) == 0;
    work(seconds);
    if (threads) {
        pthread_join(second, NULL);
    }
    return 0;
}
