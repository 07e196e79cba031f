/*
 * burst SECONDS BUSY_US ASLEEP_US: counts for some microseconds, sleeps, and so on, as a server does at
 * light load. The count is kept like counter.c's, and the same line is printed: "TID WORD 0 0", then "ready".
 *
 * All of it is one piece of assembly, so that the register holds the count at every sample.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t word;

/* `rounds` times: `turns` turns, then a sleep (none when `asleep` is null). */
static void count(uint64_t rounds, uint64_t turns, const struct timespec *asleep)
{
#if defined(__x86_64__)
    register uint64_t left __asm__("r12") = rounds;
    register uint64_t each __asm__("r13") = turns;
    register const struct timespec *pause_for __asm__("r14") = asleep;
    register uint64_t *to __asm__("r15") = &word;
    __asm__ volatile("1: movq %1, %%rdx\n"
                     "2: incq %%rbx\n"
                     "movq %%rbx, (%3)\n"
                     "decq %%rdx\n"
                     "jnz 2b\n"
                     "testq %2, %2\n"
                     "jz 3f\n"
                     "movl $35, %%eax\n" /* nanosleep */
                     "movq %2, %%rdi\n"
                     "xorl %%esi, %%esi\n"
                     "syscall\n"
                     "3: decq %0\n"
                     "jnz 1b"
                     : "+r"(left)
                     : "r"(each), "r"(pause_for), "r"(to)
                     : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r11", "memory");
#else
    register uint64_t left __asm__("x20") = rounds;
    register uint64_t each __asm__("x21") = turns;
    register const struct timespec *pause_for __asm__("x22") = asleep;
    register uint64_t *to __asm__("x23") = &word;
    __asm__ volatile("1: mov x9, %1\n"
                     "2: add x19, x19, #1\n"
                     "str x19, [%3]\n"
                     "subs x9, x9, #1\n"
                     "b.ne 2b\n"
                     "cbz %2, 3f\n"
                     "mov x8, #101\n" /* nanosleep */
                     "mov x0, %2\n"
                     "mov x1, #0\n"
                     "svc #0\n"
                     "3: subs %0, %0, #1\n"
                     "b.ne 1b"
                     : "+r"(left)
                     : "r"(each), "r"(pause_for), "r"(to)
                     : "x0", "x1", "x8", "x9", "x19", "cc", "memory");
#endif
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t turns_per_ms(void)
{
    enum { TURNS = 1000000 };
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t start = now_ns();
        count(1, TURNS, NULL);
        uint64_t took = now_ns() - start;
        best_ns = took < best_ns ? took : best_ns;
    }
    return (uint64_t)TURNS * 1000000 / best_ns;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    uint64_t busy_us = argc > 2 ? strtoull(argv[2], NULL, 10) : 30;
    const struct timespec asleep = {0, argc > 3 ? atol(argv[3]) * 1000 : 200000};
    uint64_t turns = turns_per_ms() * busy_us / 1000;
    prctl(PR_SET_TIMERSLACK, 1); /* as short as asked for */
    printf("%d %lx 0 0\nready\n", (int)getpid(), (unsigned long)(uintptr_t)&word);
    fflush(stdout);
    alarm(seconds);
    count(UINT64_MAX, turns > 0 ? turns : 1, &asleep);
    return 0;
}
