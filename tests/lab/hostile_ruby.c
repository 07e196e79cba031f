/* A program that looks like a Ruby of version FAMILY (a row of tests/unit/ruby_process.h) and spoils what it shows: it
 * exports what a Ruby exports, its structures are those of the unit tests in memory of its own, its threads run.
 *
 *     hostile_ruby SEED
 *
 * By turns of some milliseconds all is in order, or frames come and go, or words of rubbish stand somewhere. */
#include "ruby_process.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STRING(x) #x
#define TEXT(x) STRING(x)

const char ruby_version[] = TEXT(VERSION);
uint64_t ruby_current_vm_ptr;
unsigned char ruby_global_symbols[0x100];

int ruby_run_node(void);

static struct ruby_process process;
static unsigned char *const shown = (unsigned char *)RUBY_BASE;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

/* Structures are where something is: most places hold nothing. */
static uint64_t place(void)
{
    static const struct {
        uint32_t start, step;
    } places[] = {{AT_VM, 0}, {AT_RACTOR, 0}, {AT_OBJSPACE, 0}, {AT_THREAD, 0x400}, {AT_NATIVE, 0x100}, {AT_EC, 0x100},
                  {AT_ISEQ, 0x1000}, {AT_ISEQ + 0x100, 0x1000}, {AT_ISEQ + 0x900, 0x1000}, {AT_METHOD, 0x100},
                  {AT_METHOD + 0x80, 0x100}, {AT_CLASS, 0x200}, {AT_STRING, 0x80}, {AT_IDS, 0}, {AT_ID_BLOCK, 0},
                  {AT_ID_LIST, 0}, {AT_PTHREAD + 0x2c0, 0x800}, {AT_STACK + STACK_BYTES - 0x200, STACK_BYTES}};
    uint64_t which = draw(sizeof places / sizeof places[0]);
    return places[which].start + places[which].step * draw(RUBY_THREADS) + 8 * draw(draw(2) == 0 ? 16 : 64);
}

static uint64_t rubbish(uint64_t was)
{
    const uint64_t kinds[] = {0, ~0ULL, draw(~0ULL), ruby_there(place()), RUBY_BASE + RUBY_BYTES - 8 * draw(8), was + 8,
                              was - 8, was ^ 1ULL << draw(64), draw(4096), INT64_MAX, was << 32 | was >> 32,
                              1ULL << draw(64), ruby_there(place()) | 1, 0x1a | draw(16) << 12, draw(1ULL << 32)};
    return kinds[draw(sizeof kinds / sizeof kinds[0])];
}

static void spoil(void)
{
    for (uint64_t count = 1 + draw(draw(4) == 0 ? 200 : 6); count > 0; count--) {
        uint64_t at = place(), value = rubbish(load_u64(shown + at));
        memcpy(shown + at, &value, sizeof value);
    }
    if (draw(8) == 0) {
        ruby_current_vm_ptr = rubbish(ruby_current_vm_ptr);
    }
    if (draw(8) == 0) {
        memset(ruby_global_symbols + 8 * draw(8), (int)draw(256), 8);
    }
    if (draw(50) == 0) {
        (void)mprotect(shown + 4096 * draw(RUBY_BYTES / 4096), 4096, PROT_NONE);
    }
}

static void put_right(void)
{
    (void)mprotect(shown, RUBY_BYTES, PROT_READ | PROT_WRITE);
    memcpy(shown, process.bytes, RUBY_BYTES);
    ruby_current_vm_ptr = load_u64(shown + AT_VM_POINTER);
    memcpy(ruby_global_symbols, process.bytes + AT_SYMBOLS, sizeof ruby_global_symbols);
}

static void *run(void *number)
{
    volatile uint64_t sum = 0;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    unsigned char *told = process.bytes + AT_PTHREAD + 0x800 * *(unsigned *)number + 720;
    __atomic_store_n((uint32_t *)(void *)told, tid, __ATOMIC_RELEASE); /* else the compiler sees nobody who reads it */
    for (;;) {
        sum += sum ^ tid;
    }
    return NULL;
}

/* The leaf of each thread is one of its frames. */
static void move_leaves(void)
{
    for (unsigned i = 0; i < 20000; i++) {
        unsigned n = (unsigned)draw(RUBY_THREADS);
        uint64_t cfp = ruby_there(process.cfp[n] + draw(5) * (unsigned)process.family->frame_bytes);
        memcpy(shown + AT_EC + 0x100 * n + 16, &cfp, sizeof cfp);
    }
}

static void turn(void)
{
    struct timespec while_it_is_so = {0, 100000 + (long)draw(8000000)};
    uint64_t kind = draw(4);
    if (kind == 0) {
        move_leaves();
    } else if (kind == 1) {
        spoil();
    }
    (void)nanosleep(&while_it_is_so, NULL);
    put_right();
}

int ruby_run_node(void)
{
    for (;;) {
        turn();
    }
}

int main(int argc, char **argv)
{
    static unsigned numbers[RUBY_THREADS];
    pthread_t threads[RUBY_THREADS];
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(shown, RUBY_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) != shown) {
        return 1;
    }
    ruby_make(&process, &ruby_families[FAMILY], true);
    uint32_t pid = (uint32_t)getpid();
    memcpy(process.bytes + AT_PTHREAD + 720, &pid, sizeof pid);
    for (unsigned i = 1; i < RUBY_THREADS; i++) {
        numbers[i] = i;
        (void)pthread_create(&threads[i], NULL, run, &numbers[i]);
    }
    (void)usleep(20000);
    put_right();
    (void)usleep(draw(4) * 500000); /* a profiler attaches to what is in order */
    return ruby_run_node();
}
