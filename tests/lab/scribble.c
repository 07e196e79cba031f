/* For an interpreter that is told to spoil itself (live/programs/python/scribbling.py): memory behind a pointer is
 * replaced by rubbish and put back, while the caller keeps the interpreter's lock, so nobody but a profiler sees it.
 * Needs no C library but its syscall(): it is loaded into interpreters of all of them. */
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>

extern long syscall(long number, ...);

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

/* By the kernel, which refuses where a store of ours would be a crash. */
static int copy(int call, int pid, void *here, uint64_t there, uint64_t len)
{
    struct iovec near = {here, len}, far = {(void *)(uintptr_t)there, len};
    return syscall(call, (long)pid, &near, 1L, &far, 1L, 0L) == (long)len;
}

static uint64_t rubbish(uint64_t at, uint64_t was)
{
    const uint64_t kinds[] = {0, ~0ull, draw(~0ull), at, at & ~0xfffull, was + 8, was ^ 1ull << draw(64), draw(4096),
                              0x7fffffffffffffff, was << 32 | was >> 32, at + draw(4096) * 8, 1ull << draw(64)};
    return kinds[draw(sizeof kinds / sizeof kinds[0])];
}

/* A place some pointers away from `from`, or there. */
static uint64_t walk(int pid, uint64_t from, unsigned words)
{
    for (uint64_t step = draw(4); step > 0; step--) {
        uint64_t next = 0;
        for (int tries = 0; tries < 16 && (next < 4096 || next % 8 != 0 || next >> 47 != 0); tries++) {
            (void)copy(SYS_process_vm_readv, pid, &next, from + draw(words) * 8, 8);
        }
        uint64_t word;
        from = copy(SYS_process_vm_readv, pid, &word, next, 8) ? next : from;
        words = 24;
    }
    return from;
}

/* Some words of what lies around, for a while. */
void scribble(uint64_t seed, uint64_t from, unsigned words, long pid, unsigned turns)
{
    uint64_t at[8], was[8];
    unsigned count = 0;
    state = seed;
    for (unsigned most = 1 + (unsigned)draw(8); count < most; count++) {
        uint64_t near = walk((int)pid, from, words);
        at[count] = near + draw(near == from ? words : 24) * 8;
        uint64_t word = 0;
        was[count] = 0;
        if (!copy(SYS_process_vm_readv, (int)pid, &was[count], at[count], 8)) {
            break;
        }
        word = rubbish(at[count], was[count]);
        if (!copy(SYS_process_vm_writev, (int)pid, &word, at[count], 8)) {
            break;
        }
    }
    for (volatile unsigned i = 0; i < turns; i++) {
    }
    while (count-- > 0) {
        (void)copy(SYS_process_vm_writev, (int)pid, &was[count], at[count], 8);
    }
}
