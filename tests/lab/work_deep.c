/*
 * work_deep: two threads that are busy 25 calls deep. work_deep SECONDS
 *
 * Frame i of a stack is deep_i, i from 0; deep_24 does the work. Each keeps a buffer of another size,
 * so that no two frames are alike.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile unsigned sink;

__attribute__((noinline, noclone)) static unsigned deep_24(unsigned number)
{
    for (unsigned i = 0; i < 20000; i++) {
        number = number * 1103515245u + 12345u;
        number ^= number >> 13;
    }
    return number;
}

#define LEVEL(this, next)                                                                          \
    __attribute__((noinline, noclone)) static unsigned deep_##this(unsigned number)                \
    {                                                                                              \
        unsigned char room[8 + this * 16];                                                         \
        memset(room, (int)number, sizeof room);                                                    \
        __asm__ volatile("" ::"r"(room) : "memory");                                               \
        return deep_##next(number + room[this]) + room[0];                                         \
    }

LEVEL(23, 24)
LEVEL(22, 23)
LEVEL(21, 22)
LEVEL(20, 21)
LEVEL(19, 20)
LEVEL(18, 19)
LEVEL(17, 18)
LEVEL(16, 17)
LEVEL(15, 16)
LEVEL(14, 15)
LEVEL(13, 14)
LEVEL(12, 13)
LEVEL(11, 12)
LEVEL(10, 11)
LEVEL(9, 10)
LEVEL(8, 9)
LEVEL(7, 8)
LEVEL(6, 7)
LEVEL(5, 6)
LEVEL(4, 5)
LEVEL(3, 4)
LEVEL(2, 3)
LEVEL(1, 2)
LEVEL(0, 1)

static void *work(void *seconds)
{
    for (time_t end = time(NULL) + atol(seconds); time(NULL) < end;) {
        sink += deep_0(sink);
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
