/*
 * Some runtimes know a thread by pthread_self only: the address of libc's thread structure, which
 * holds the thread's number at a place that depends on libc and its version. It is learnt from the
 * threads that there are. Places seen: glibc 720 (x86-64), 208 (AArch64); musl 48, 32.
 */
#include "runtime/common/find.h"

enum {
    PTHREAD_BYTES = 1024,
    THREADS = 8, /* that must agree */
};

struct thread_structures {
    unsigned char bytes[THREADS][PTHREAD_BYTES];
    size_t count;
};

static void read_structures(struct find *f, const uint64_t *pthreads, size_t count,
                            struct thread_structures *all)
{
    for (size_t i = 0; i < count && all->count < THREADS; i++) {
        uint64_t address = pthreads[i];
        struct memory_piece piece = {address, all->bytes[all->count], PTHREAD_BYTES, 0};
        memset(all->bytes[all->count], 0, PTHREAD_BYTES);
        if (find_is_data(f, address) &&
            memory_batch_read(f->process->memory, &piece, 1, f->unread) && piece.got >= 64) {
            all->count++;
        }
    }
}

static uint64_t number_of(const struct thread_structures *all, size_t thread, uint32_t at)
{
    return find_number(all->bytes[thread], at, 4);
}

/* How many threads have a number of theirs there, all different. */
static size_t fitting(struct find *f, const struct thread_structures *all, uint32_t at)
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++) {
            again = again || number_of(all, k, at) == number_of(all, i, at);
        }
        count += !again && find_is_tid(f, number_of(all, i, at));
    }
    return count;
}

bool find_tid_in_pthread(struct find *f, const uint64_t *pthreads, size_t count, uint32_t *offset)
{
    static const uint32_t seen[] = {720, 48, 208, 32};
    struct thread_structures all = {.count = 0};
    size_t best = 0;
    read_structures(f, pthreads, count, &all);
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        size_t fit = fitting(f, &all, seen[i]);
        if (fit > best) {
            best = fit;
            *offset = seen[i];
        }
    }
    for (uint32_t at = 0; best < all.count && at < PTHREAD_BYTES; at += 4) {
        size_t fit = fitting(f, &all, at);
        if (fit > best) { /* places that were seen win against others that fit as well */
            best = fit;
            *offset = at;
        }
    }
    return best > 0;
}
