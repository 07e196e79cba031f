/*
 * Locks that a thread is within. threading.Lock notes no owner, but a thread within `with lock:` has the lock's bound
 * method __exit__ on its frames' stack until the block ends; so has one that waits to enter. What acquire() alone took
 * is not seen.
 *
 * Objects are those of CPython 3.11 to 3.13 (64 bits): Objects/methodobject.c, a method is {count, type, definition,
 * self}; Modules/_threadmodule.c, a lock and an RLock begin with {count, type, pointer to the semaphore}, whose address
 * is the futex's. Words may be anything, and what was left behind is told by a count of 0. Of the stack the newest
 * chunk is read, LOCKS_BYTES at most.
 */
#include "runtime/common/load.h"
#include "runtime/python/walk.h"

enum {
    LOCKS_BYTES = 8192,
    AT_ONCE = 64,
    METHOD_WORDS = 4,
    LOCK_WORDS = 3,
    COUNT_MAX = 1 << 20,
};

static bool fetch(struct memory_batch *memory, uint64_t address, void *out, uint32_t len)
{
    struct memory_piece piece = {.address = address, .out = out, .len = len};
    return memory_batch_read(memory, &piece, 1, NULL) && piece.got == len;
}

static bool is_exit(struct memory_batch *memory, uint64_t definition)
{
    static const char exit[] = "__exit__";
    uint64_t name;
    char text[sizeof exit];
    return fetch(memory, definition, &name, sizeof name) && fetch(memory, name, text, sizeof text) &&
           memcmp(text, exit, sizeof exit) == 0;
}

/* 0: the method is another. */
static uint64_t futex_of(struct memory_batch *memory, const uint64_t *method)
{
    uint64_t lock[LOCK_WORDS];
    bool may_be = method[0] >= 1 && method[0] < COUNT_MAX && plausible(method[2]) && plausible(method[3]);
    return may_be && is_exit(memory, method[2]) && fetch(memory, method[3], lock, sizeof lock) ? lock[2] : 0;
}

static size_t take(struct memory_batch *memory, const uint64_t *words, size_t count, uint64_t *futexes, size_t most)
{
    struct memory_piece pieces[AT_ONCE];
    uint64_t methods[AT_ONCE][METHOD_WORDS];
    size_t asked = 0, found = 0;
    for (size_t i = 0; i < count; i++) {
        if (plausible(words[i]) && words[i] % 8 == 0) {
            pieces[asked] = (struct memory_piece){.address = words[i], .out = methods[asked], .len = sizeof methods[0]};
            asked++;
        }
    }
    if (asked == 0 || !memory_batch_read(memory, pieces, asked, NULL)) {
        return 0;
    }
    for (size_t i = 0; i < asked && found < most; i++) {
        futexes[found] = pieces[i].got == sizeof methods[0] ? futex_of(memory, methods[i]) : 0;
        found += futexes[found] != 0;
    }
    return found;
}

size_t python_locks(const void *plan, struct memory_batch *memory, uint64_t *futexes, size_t most)
{
    const struct python_plan *known = plan;
    uint64_t words[LOCKS_BYTES / 8];
    uint64_t start = known->chunk, limit = known->top;
    if (!plausible(start) || limit <= start) {
        return 0;
    }
    start = limit - start > LOCKS_BYTES ? limit - LOCKS_BYTES : start;
    size_t count = (size_t)(limit - start) / 8, found = 0;
    if (!fetch(memory, start, words, (uint32_t)(8 * count))) {
        return 0;
    }
    for (size_t i = 0; i < count; i += AT_ONCE) {
        found += take(memory, words + i, count - i < AT_ONCE ? count - i : AT_ONCE, futexes + found, most - found);
    }
    return found;
}
