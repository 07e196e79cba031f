/*
 * blocks: who holds a lock of Python's, which notes no owner.
 *
 * Concept. A thread within `with lock:` has the lock's bound method __exit__ on its frames' stack, until the block ends.
 * So who waits for a futex that belongs to such an object waits for the other thread that is within the block: told when
 * there is exactly one, of those that do not wait for it themselves. What a thread took by acquire() alone is not known.
 *
 * Objects are those of CPython 3.11 to 3.13 (64 bits): a method is {count, type, definition, self}, a lock {count, type,
 * pointer to the semaphore}. Of each thread the newest chunk of its data stack is read, BLOCKS_BYTES at most.
 */
#ifndef CAPTURE_LIVE_DUMP_BLOCKS_H
#define CAPTURE_LIVE_DUMP_BLOCKS_H

#include "capture/live/dump.h"

enum { BLOCKS_BYTES = 16384, BLOCKS_THREADS = 512, BLOCKS_LOCKS = 4096 };

/* Fills in `holder` where nobody is known yet. */
void blocks_find_holders(const struct world *world, struct dump_thread *threads, size_t count);

#endif
