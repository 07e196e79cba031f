/* A process that means ill, by deed and seed (lab/hostile.py): code in mapped files and in anonymous memory, files that
 * change below their mappings, frames that lead nowhere, names of rubbish, lives of a millisecond. It ends with its
 * parent, and what it breaks of itself it breaks in a child, which is followed by the next. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

enum { PAGE = 4096, DEPTH = 40 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- spin: what is mutated and then runs ---- */

static volatile unsigned sink;

static inline __attribute__((always_inline)) unsigned inlined(unsigned x)
{
    for (int i = 0; i < 2000; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

KEEP unsigned leaf(unsigned x)
{
    return inlined(x) + 1;
}

KEEP unsigned nested(unsigned x, int depth) __asm__("_ZN7hostile6nestedIiLi7EEEjjT_");
KEEP unsigned nested(unsigned x, int depth)
{
    return depth == 0 ? leaf(x) : nested(x + 1, depth - 1) + 1;
}

static void spin(void)
{
    for (;;) {
        sink += nested(sink, (int)(sink % DEPTH));
    }
}

/* ---- code ---- */

typedef void code(void);

static _Noreturn void run(void *at)
{
    for (;;) {
        ((code *)(uintptr_t)at)();
    }
}

static const unsigned char count_down[] = {
#ifdef __x86_64__
    0xb9, 0x00, 0x40, 0x00, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3,
#else
    0x00, 0x00, 0x88, 0x52, 0x00, 0x04, 0x00, 0x71, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
#endif
};

static void *map(const char *file, uint64_t offset, size_t len, int protection)
{
    int fd = open(file, O_RDONLY);
    void *at = mmap(NULL, len, protection, MAP_PRIVATE, fd, (off_t)offset);
    close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* FILE OFFSET: the file as a library would be mapped, but at places that are drawn, and the code at OFFSET. */
static void mapped(char **argv)
{
    uint64_t offset = strtoull(argv[1], NULL, 0), page = offset & ~(uint64_t)(PAGE - 1);
    uint64_t before = draw(2) ? page : draw(page / PAGE + 1) * PAGE;
    if (draw(2)) {
        map(argv[0], 0, (1 + draw(64)) * PAGE, PROT_READ);
        map(argv[0], 0, (1 + draw(64)) * PAGE, PROT_READ | PROT_WRITE);
    }
    char *at = map(argv[0], before, page - before + 2 * PAGE, PROT_READ | PROT_EXEC);
    if (at != NULL) {
        run(at + (offset - before));
    }
}

/* ADDRESS [FILE]: code that no file tells of but what its process writes; FILE is mapped as a jitdump is. */
static void generated(char **argv)
{
    char *at = mmap((void *)(uintptr_t)strtoull(argv[0], NULL, 0), 16 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED || (argv[1] != NULL && map(argv[1], 0, PAGE, PROT_READ | PROT_EXEC) == NULL)) {
        return;
    }
    for (uint64_t turn = 0;; turn++) {
        char *function = at + turn % 16 * PAGE + draw(PAGE / 2);
        memcpy(function, count_down, sizeof count_down);
        __builtin___clear_cache(function, function + sizeof count_down);
        for (int i = 0; i < 2000; i++) {
            ((code *)(uintptr_t)function)();
        }
    }
}

/* ---- files that change ---- */

static void change(const char *file, char *at, size_t len)
{
    int fd = open(file, O_RDWR);
    char other[128];
    snprintf(other, sizeof other, "%s.%d", file, (int)draw(3));
    for (size_t i = 0; i < sizeof state; i++) {
        uint64_t word = draw(UINT64_MAX);
        (void)!pwrite(fd, &word, sizeof word, (off_t)draw(len));
    }
    switch (draw(7)) {
    case 0: (void)!ftruncate(fd, (off_t)draw(len)); break;
    case 1: (void)!ftruncate(fd, (off_t)draw(1ull << 40)); break;
    case 2: (void)unlink(file); break;
    case 3: (void)rename(file, other); break;
    case 4: munmap(at, draw(len)); break;
    case 5: mremap(at, len, PAGE, MREMAP_MAYMOVE); break;
    default: mprotect(at, len, PROT_READ | PROT_WRITE | PROT_EXEC); break;
    }
    close(fd);
}

/* FILE OFFSET: a copy of it changes while it runs. A child that its file was taken from ends by a signal. */
static void changing(char **argv)
{
    uint64_t offset = strtoull(argv[1], NULL, 0);
    char name[64];
    snprintf(name, sizeof name, "%s.own", argv[0]);
    size_t len = 64 * PAGE + offset;
    char *from = map(argv[0], 0, len, PROT_READ);
    int fd = open(argv[0], O_RDONLY), copy = open(name, O_RDWR | O_CREAT | O_TRUNC, 0755);
    off_t size = lseek(fd, 0, SEEK_END);
    (void)!write(copy, from, (size_t)size);
    close(copy);
    close(fd);
    char *at = map(name, 0, len, PROT_READ | PROT_EXEC);
    if (at == NULL) {
        return;
    }
    double begin = now();
    for (double next = begin + 0.02; now() < begin + 0.3;) {
        ((code *)(uintptr_t)(at + offset))();
        if (now() > next) {
            change(name, at, len);
            next += 0.02;
        }
    }
}

/* ---- stacks ---- */

/* Runs with another frame pointer and stack pointer for a while; interrupts find them so. */
static void with_frame(uint64_t frame, uint64_t stack)
{
#ifdef __x86_64__
    __asm__ volatile("push %%rbp\n mov %%rsp, %%r12\n mov %0, %%rbp\n mov %1, %%rsp\n mov $20000000, %%ecx\n"
                     "1: dec %%ecx\n jnz 1b\n mov %%r12, %%rsp\n pop %%rbp"
                     : : "r"(frame), "r"(stack) : "rcx", "r12", "r13", "memory", "cc");
#else
    __asm__ volatile("stp x29, x30, [sp, #-16]!\n mov x19, sp\n mov x29, %0\n mov sp, %1\n mov w20, #0x1000000\n"
                     "1: subs w20, w20, #1\n b.ne 1b\n mov sp, x19\n ldp x29, x30, [sp], #16"
                     : : "r"(frame), "r"(stack) : "x19", "x20", "memory", "cc");
#endif
}

static void frames(char **argv)
{
    (void)argv;
    size_t len = (1 + draw(64)) * PAGE;
    uint64_t *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t base = (uint64_t)(uintptr_t)at, words = len / 8;
    for (size_t i = 0; i < words; i++) {
        const uint64_t kinds[] = {base + draw(words) * 8, (uint64_t)(uintptr_t)leaf + draw(64), base + i * 8,
                                  draw(UINT64_MAX), i + 2 < words ? base + (i + 2) * 8 : 0, ~0ull};
        at[i] = kinds[draw(6)];
    }
    uint64_t somewhere = base + draw(words) * 8;
    const uint64_t values[] = {somewhere, base + len - 8, base + len, base, 0, ~0ull, ~0ull << 12, somewhere | 1,
                               1ull << 47};
    for (int i = 0; i < 8; i++) {
        with_frame(values[draw(9)], values[draw(9)] & ~15ull);
    }
}

/* ---- names ---- */

static void *rename_itself(void *unused)
{
    (void)unused;
    uint64_t turn = (uint64_t)syscall(SYS_gettid);
    for (;;) {
        char name[16];
        for (size_t i = 0; i < sizeof name; i++) {
            turn = turn * 6364136223846793005u + 1;
            name[i] = turn >> 33 & 1 ? (char)(turn >> 40) : "\n;\r\033\\\"<&)(\t /[]\177"[turn >> 40 & 15];
        }
        prctl(PR_SET_NAME, name);
        for (int i = 0; i < 50; i++) {
            (void)leaf((unsigned)i);
        }
    }
    return NULL;
}

static void named(char **argv)
{
    (void)argv;
    pthread_t thread;
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, rename_itself, NULL);
    }
    (void)rename_itself(NULL);
}

/* ---- short lives ---- */

static void *live_shortly(void *unused)
{
    (void)leaf(1);
    return unused;
}

static void churn(char **argv)
{
    (void)argv;
    for (double end = now() + 0.3; now() < end;) {
        pthread_t thread;
        if (draw(2) && pthread_create(&thread, NULL, live_shortly, NULL) == 0) {
            pthread_join(thread, NULL);
        } else if (fork() == 0) {
            if (draw(8) == 0) {
                execl("/proc/self/exe", "short", "once", "0", NULL);
            }
            (void)leaf(1);
            _exit(0);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        usleep(300);
    }
}

static void once(char **argv)
{
    (void)argv;
    _exit((int)leaf(1) & 1);
}

static void spinning(char **argv)
{
    (void)argv;
    spin();
}

static const struct {
    const char *name;
    void (*act)(char **argv);
    int least; /* arguments */
    bool breaks; /* something of its own process */
} deeds[] = {
    {"spin", spinning, 0, false},   {"mapped", mapped, 2, true}, {"generated", generated, 1, false},
    {"changing", changing, 2, true}, {"frames", frames, 0, true}, {"named", named, 0, false},
    {"churn", churn, 0, true},      {"once", once, 0, false},
};

static void do_again(void (*act)(char **argv), char **argv)
{
    for (;; draw(2)) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            act(argv);
            _exit(0);
        }
        while (waitpid(pid, NULL, 0) != pid) {
        }
        usleep(1000);
    }
}

/* DEED SEED [ARGUMENT...] */
int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; argc > 2 && i < sizeof deeds / sizeof deeds[0]; i++) {
        if (strcmp(argv[1], deeds[i].name) == 0 && argc >= 3 + deeds[i].least) {
            state = strtoull(argv[2], NULL, 0);
            if (deeds[i].breaks) {
                do_again(deeds[i].act, argv + 3);
            }
            deeds[i].act(argv + 3);
        }
    }
    fprintf(stderr, "usage: hostile DEED SEED [ARGUMENT...]\n");
    return 2;
}
