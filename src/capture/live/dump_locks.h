/*
 * locks: what a thread waits for, by its system call, and who holds that.
 *
 * A mutex's memory is read twice; only where both are equal, say that somebody waits, and name a thread of the process
 * it is believed. It is glibc's (the owner stands eight bytes behind the word), or musl's and one with priority
 * inheritance (the word is the owner). A runtime's own lock that notes none is held by who has it on its stack, when
 * that is one thread, and it does not wait for it. Other futexes (conditions, semaphores) name nobody.
 */
#ifndef CAPTURE_LIVE_DUMP_LOCKS_H
#define CAPTURE_LIVE_DUMP_LOCKS_H

#include "capture/live/dump.h"

/* Fills in `wait` and `futex`, by the text of its syscall file. */
void locks_note(struct dump_thread *t, const char *place);

/* Fills in `holder` of a process's threads: of mutexes, and of the interpreter's lock. */
void locks_find_holders(const struct world *world, const struct profile *p, struct dump_thread *threads, size_t count);

#endif
