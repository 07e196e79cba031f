/* Which threads of the main interpreter may be running: whoever holds its lock, and those that began last, which come
 * first in its list of threads. Runs in catchers, so it allocates nothing; a dozen reads of a few hundred bytes at
 * most. What contradicts itself, because threads come and go, is left out. */
#include "runtime/python/walk.h"

enum { STATES_MAX = 6 }; /* followed in the list */

struct look {
    const struct python *python;
    struct memory_batch *memory;
    uint32_t *tids;
    size_t count, most;
};

static bool read_exactly(struct memory_batch *memory, uint64_t address, void *out, uint32_t len)
{
    struct memory_piece piece = {address, out, len, 0};
    return plausible(address) && memory_batch_read(memory, &piece, 1, NULL) && piece.got == len;
}

static bool fetch(const struct look *l, uint64_t address, void *out, uint32_t len)
{
    return read_exactly(l->memory, address, out, len);
}

uint32_t python_tid_of(const struct python *python, struct memory_batch *memory, const unsigned char *state)
{
    const struct python_layout *at = &python->layout;
    uint32_t tid = 0;
    if (has(at->thread.native_thread_id)) {
        return load_u32(state + at->thread.native_thread_id);
    }
    uint64_t pthread = load_u64(state + at->thread.thread_id);
    return read_exactly(memory, pthread + python->tid_in_pthread, &tid, sizeof tid) ? tid : 0;
}

static void add(struct look *l, uint32_t tid)
{
    bool is_new = tid != 0 && l->count < l->most;
    for (size_t i = 0; i < l->count; i++) {
        is_new = is_new && l->tids[i] != tid;
    }
    if (is_new) {
        l->tids[l->count++] = tid;
    }
}

/* Adds the thread with this state; returns the next state's address, 0 when there is none. */
static uint64_t add_state(struct look *l, uint64_t address)
{
    unsigned char state[WALK_THREAD_MAX];
    const struct python_layout *at = &l->python->layout;
    if (at->thread.bytes > sizeof state || !fetch(l, address, state, at->thread.bytes) ||
        load_u64(state + at->thread.interp) != l->python->interp) {
        return 0;
    }
    add(l, python_tid_of(l->python, l->memory, state));
    return load_u64(state + at->thread.next);
}

/* The state of the thread that holds the lock; 0: nobody does. */
static uint64_t holder_of(const struct look *l)
{
    const struct python_layout *at = &l->python->layout;
    uint64_t gil = 0, holder = 0;
    uint32_t locked = 0;
    if (l->python->current != 0) {
        return fetch(l, l->python->current, &holder, sizeof holder) ? holder : 0;
    }
    bool known = has(at->interp.gil) && fetch(l, l->python->interp + at->interp.gil, &gil, sizeof gil) &&
                 fetch(l, gil + at->interp.gil_holder, &holder, sizeof holder) &&
                 fetch(l, gil + at->interp.gil_locked, &locked, sizeof locked);
    return known && locked == 1 ? holder : 0;
}

size_t python_running(const void *state, struct memory_batch *memory, uint32_t *tids, size_t most)
{
    const struct python *python = state;
    struct look l = {python, memory, tids, 0, most};
    uint64_t holder = holder_of(&l), first = 0;
    if (holder != 0) {
        (void)add_state(&l, holder);
    }
    (void)fetch(&l, python->interp + python->layout.interp.threads, &first, sizeof first);
    for (size_t i = 0; i < STATES_MAX && first != 0 && l.count < most; i++) {
        first = add_state(&l, first);
    }
    return l.count;
}
