/* Three threads, each of which waits for what the next one holds; a fourth waits for one of them, and the first thread
 * for the end of one. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

enum { COUNT = 3 };

static pthread_mutex_t locks[COUNT];
static pthread_barrier_t barrier;

static void *work(void *argument)
{
    long number = (long)argument;
    char name[16];
    snprintf(name, sizeof name, "dead-%ld", number % COUNT);
    pthread_setname_np(pthread_self(), number < COUNT ? name : "late");
    if (number < COUNT) {
        pthread_mutex_lock(&locks[number]);
    }
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&locks[(number + 1) % COUNT]);
    return NULL;
}

int main(void)
{
    pthread_t threads[COUNT + 1];
    pthread_barrier_init(&barrier, NULL, COUNT + 1);
    for (long i = 0; i <= COUNT; i++) {
        pthread_create(&threads[i], NULL, work, (void *)i);
    }
    pthread_join(threads[0], NULL);
    return 0;
}
