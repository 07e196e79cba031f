/* A recursion whose stack is larger than what a sample copies, and then a leaf that stays. */
#include <stdlib.h>

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long leaf(unsigned long turns)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < turns; i++) {
        sum += i * i ^ (sum >> 3);
    }
    sink += sum;
    return sum;
}

__attribute__((noinline)) static unsigned long descend(int depth, unsigned long turns)
{
    volatile char room[200];
    room[0] = (char)depth;
    unsigned long sum = depth == 0 ? leaf(turns) : descend(depth - 1, turns);
    return sum + (unsigned long)room[0];
}

int main(int argc, char **argv)
{
    return descend(150, argc > 1 ? strtoul(argv[1], NULL, 0) : 600000000) == 1;
}
