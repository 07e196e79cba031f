/*
 * Locks that a thread is within. threading.Lock notes no owner, but a thread within `with lock:` has the lock's bound
 * method __exit__ on its frames' stack until the block ends; so has one that waits to enter. What acquire() alone took
 * is not seen.
 *
 * Objects are those of CPython 3.11 to 3.13 (64 bits): Objects/methodobject.c, a method is {count, type, definition,
 * self}; Modules/_threadmodule.c, a lock and an RLock begin with {count, type, pointer to the semaphore}, whose address
 * is the futex's. Words may be anything, and what was left behind is told by a count of 0. Of the stack the newest
 * chunk is read, LOCKS_BYTES at most.
 *
 * From 3.14 on the stack has two words: the method's descriptor, {count, type, its class, name, qualified name,
 * definition}, and the lock, {count, type, mutex of a byte}. Nobody takes them off when the block has ended, so only
 * what is below its frame's stack pointer counts. Who waits has a semaphore of its
 * own, before which the mutex's address stands. Source: Objects/descrobject.c, LOAD_SPECIAL in Python/bytecodes.c,
 * struct wait_entry in Python/parking_lot.c.
 */
#include "runtime/common/load.h"
#include "runtime/python/walk.h"

enum {
    TAGS = 3, /* low bits of a reference on the stack */
    LOCKS_BYTES = 8192,
    AT_ONCE = 64,
    METHOD_WORDS = 4,
    LOCK_WORDS = 3,
    COUNT_MAX = 1 << 20,
    FRAMES_MOST = 256,
    VALUES_MOST = 64, /* of a frame */
    DESCRIPTOR_WORDS = 6,
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

/* The mutex; 0: these two are something else, or it is free. */
static uint64_t mutex_of(struct memory_batch *memory, uint64_t method, uint64_t lock)
{
    uint64_t descriptor[DESCRIPTOR_WORDS], object[LOCK_WORDS];
    method &= ~(uint64_t)TAGS;
    lock &= ~(uint64_t)TAGS;
    bool is = plausible(method) && plausible(lock) && fetch(memory, lock, object, sizeof object) &&
              fetch(memory, method, descriptor, sizeof descriptor) && descriptor[2] == object[1] &&
              is_exit(memory, descriptor[5]);
    return is && (object[2] & 1) != 0 ? lock + 2 * sizeof object[0] : 0;
}

static size_t locks_by_frames(const struct python *python, uint64_t state, struct memory_batch *memory,
                              uint64_t *mutexes, size_t most)
{
    const struct python_layout *l = &python->layout;
    unsigned char frame[LAYOUT_FRAME_MAX];
    uint32_t bytes = l->frame.bytes > l->frame.top + 8 ? l->frame.bytes : l->frame.top + 8;
    uint64_t at = 0, values[VALUES_MOST];
    size_t found = 0;
    (void)fetch(memory, state + l->thread.frame, &at, sizeof at);
    for (int i = 0; i < FRAMES_MOST && plausible(at) && fetch(memory, at, frame, bytes); i++) {
        uint64_t top = load_u64(frame + l->frame.top), start = at + l->frame.locals;
        start = top > start && top - start > sizeof values ? top - sizeof values : start;
        size_t count = top > start ? (size_t)(top - start) / 8 : 0;
        count = fetch(memory, start, values, (uint32_t)(8 * count)) ? count : 0;
        for (size_t v = 0; v + 1 < count && found < most; v++) {
            mutexes[found] = mutex_of(memory, values[v], values[v + 1]);
            found += mutexes[found] != 0;
        }
        at = load_u64(frame + l->frame.previous);
    }
    return found;
}

size_t python_locks(const void *state, const void *plan, struct memory_batch *memory, uint64_t *futexes, size_t most)
{
    const struct python_plan *known = plan;
    const struct python *python = state;
    if (has(python->layout.frame.top)) {
        return python->layout.free_threaded ? 0 : locks_by_frames(python, known->thread, memory, futexes, most);
    }
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
