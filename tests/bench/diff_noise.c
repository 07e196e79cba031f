/* diff_noise: functions of known cost below known callers, over and over, each call up to half longer or shorter by
 * chance. `diff_noise ROUNDS PERCENT` makes `merge`, which is half of it, so much slower. */
#include <stdint.h>
#include <stdlib.h>

static volatile uint64_t sink;
static uint32_t chance = 12345;
static uint32_t slower;

#define LEAF(name)                                                                                                     \
    __attribute__((noinline)) static void name(uint32_t n)                                                             \
    {                                                                                                                  \
        uint64_t x = n;                                                                                                \
        for (uint32_t i = 0; i < n; i++) {                                                                             \
            x = x * 6364136223846793005u + 1442695040888963407u;                                                       \
            __asm__ volatile("" : "+r"(x));                                                                            \
        }                                                                                                              \
        sink += x;                                                                                                     \
    }

LEAF(merge) LEAF(parse) LEAF(lex) LEAF(hash) LEAF(copy) LEAF(scan)
LEAF(format) LEAF(check) LEAF(encode) LEAF(log_line) LEAF(count) LEAF(rank)

static uint32_t around(uint32_t n)
{
    chance = chance * 1103515245u + 12345;
    return n / 2 + (uint32_t)((uint64_t)n * (chance >> 16 & 0xffff) / 65536);
}

#define BRANCH(name, body)                                                                                             \
    __attribute__((noinline)) static void name(void)                                                                   \
    {                                                                                                                  \
        body;                                                                                                          \
        __asm__ volatile("");                                                                                          \
    }

BRANCH(read_input, parse(around(1200)); lex(around(900)); scan(around(600)))
BRANCH(sort_rows, merge((uint32_t)((uint64_t)around(6000) * (100 + slower) / 100)); hash(around(700)))
BRANCH(write_output, format(around(800)); encode(around(600)); copy(around(400)); log_line(around(150)))
BRANCH(handle, read_input(); sort_rows(); write_output(); check(around(300)); count(around(100)); rank(around(250)))

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    slower = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    for (unsigned long i = 0; i < rounds; i++) {
        handle();
    }
    return 0;
}
