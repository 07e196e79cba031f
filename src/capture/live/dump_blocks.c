/* blocks: the words on a thread's data stack that are bound methods __exit__, and the locks they are of. All of it may
 * be anything: what is no such chain of objects is passed over, and a method that nobody refers to any more has ended. */
#include "capture/live/dump_blocks.h"
#include "base/vec.h"
#include "os/clock.h"

#include <stdlib.h>

enum { COUNT_MAX = 1 << 20 };

struct within { /* the thread at `thread` is in a block of the lock of this futex */
    uint64_t futex;
    uint32_t thread;
};

struct blocks {
    struct memory_reader memory;
    VEC(struct within) all;
    uint64_t words[BLOCKS_BYTES / 8];
};

static bool read(struct blocks *b, uint64_t address, void *out, size_t len)
{
    return address >= 4096 && address % 8 == 0 && address < UINT64_C(1) << 47 &&
           b->memory.read(b->memory.context, address, out, len, NULL);
}

static bool is_exit(struct blocks *b, uint64_t definition)
{
    static const char exit[] = "__exit__";
    uint64_t name;
    char text[sizeof exit];
    return read(b, definition, &name, sizeof name) &&
           b->memory.read(b->memory.context, name, text, sizeof text, NULL) && memcmp(text, exit, sizeof exit) == 0;
}

/* 0: it is no such method. */
static uint64_t futex_of(struct blocks *b, uint64_t word)
{
    uint64_t method[4], lock[3];
    bool is = read(b, word, method, sizeof method) && method[0] >= 1 && method[0] < COUNT_MAX &&
              read(b, method[3], lock, sizeof lock) && is_exit(b, method[2]);
    return is ? lock[2] : 0;
}

static void look(struct blocks *b, const struct dump_thread *t, uint32_t place)
{
    uint64_t bytes = t->limit - t->start;
    uint64_t start = bytes > BLOCKS_BYTES ? t->limit - BLOCKS_BYTES : t->start;
    size_t count = (size_t)(t->limit - start) / 8;
    if (!read(b, start, b->words, 8 * count)) {
        return;
    }
    for (size_t i = 0; i < count && b->all.len < BLOCKS_LOCKS; i++) {
        uint64_t futex = futex_of(b, b->words[i]);
        struct within *within = futex != 0 ? vec_push(&b->all) : NULL;
        if (within != NULL) {
            *within = (struct within){futex, place};
        }
    }
}

/* 0: nobody, or several. */
static uint32_t holder_of(const struct blocks *b, const struct dump_thread *threads, uint64_t futex)
{
    uint32_t holder = 0;
    vec_each(&b->all, within)
    {
        bool waits = threads[within->thread].futex == futex;
        if (within->futex == futex && !waits && within->thread + 1 != holder) {
            if (holder != 0) {
                return 0;
            }
            holder = within->thread + 1;
        }
    }
    return holder;
}

void blocks_find_holders(const struct world *world, struct dump_thread *threads, size_t count)
{
    struct blocks *b = calloc(1, sizeof *b);
    size_t looked = 0;
    for (size_t i = 0; b != NULL && i < count && looked < BLOCKS_THREADS; i++) {
        if (threads[i].start < threads[i].limit && threads[i].node != 0) {
            b->memory = world->memory(world->context, threads[i].pid, clock_mono_ns());
            look(b, &threads[i], (uint32_t)i);
            looked++;
        }
    }
    for (size_t i = 0; b != NULL && b->all.len > 0 && i < count; i++) {
        if (threads[i].futex != 0 && threads[i].holder == 0) {
            threads[i].holder = holder_of(b, threads, threads[i].futex);
        }
    }
    if (b != NULL) {
        vec_release(&b->all);
    }
    free(b);
}
