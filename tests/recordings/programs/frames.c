/* Three functions deep, then the C library: qsort calls back, snprintf and memcpy are leaves. Built with
 * and without frame pointers, against glibc and musl, and stripped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long spin(unsigned long turns)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < turns; i++) {
        sum += i * i ^ (sum >> 3);
    }
    sink += sum;
    return sum;
}

__attribute__((noinline)) static int compare(const void *left, const void *right)
{
    unsigned long unused = spin(20);
    return *(const int *)left - *(const int *)right + (unused == 7);
}

__attribute__((noinline)) static unsigned long sort(int *numbers, int count)
{
    for (int i = 0; i < count; i++) {
        numbers[i] = (i * 7919) % count;
    }
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    return (unsigned long)numbers[1];
}

__attribute__((noinline)) static unsigned long print(int count)
{
    char text[128];
    unsigned long length = 0;
    for (int i = 0; i < count; i++) {
        length += (unsigned long)snprintf(text, sizeof text, "%d %s %.3f", i, "abc", i / 7.0);
    }
    return length + (unsigned long)text[0];
}

__attribute__((noinline)) static unsigned long copy(char *to, const char *from, size_t bytes)
{
    for (int i = 0; i < 40; i++) {
        memcpy(to, from, bytes);
        sink += (unsigned long)to[i];
    }
    return sink + 1;
}

__attribute__((noinline)) static unsigned long work(int round)
{
    static int numbers[3000];
    static char from[1 << 16], to[1 << 16];
    return spin(200000) + sort(numbers, 3000) + print(2000) + copy(to, from, sizeof to) +
           (unsigned long)round;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 250;
    unsigned long sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += work(i);
    }
    return sum == 1;
}
