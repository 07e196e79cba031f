/*
 * concern: one thing that a run takes care of, as a row of the table that the loop walks (run/rooms.c).
 *
 * Concept. Each concern keeps its state in a struct that only its own files know. What it does at the moments of a
 * run stands in its row; what others ask it stands in its header. A moment that does not matter to it is null. The
 * order of the rows is the order in which they are walked, at every moment.
 *
 *     setup          once, when what is profiled is followed and the first window has begun
 *     round          after each drain of the rings, with the monotonic time
 *     window_begin   a new profile is being filled (shared.h)
 *     window_end     the profile is about to be handed over
 *     due_ns         when it wants its next round: monotonic; 0: whenever one comes
 *     release        the end of the run, in reverse order of the rows
 *
 * While sampling is suspended for --max-cpu, only rows with `while_suspended` have each round, others one per second.
 */
#ifndef CAPTURE_CONCERN_H
#define CAPTURE_CONCERN_H

#include <stdbool.h>
#include <stdint.h>

struct concern {
    const char *name;
    bool while_suspended;
    void (*setup)(void *state);
    void (*round)(void *state, uint64_t now_ns);
    void (*window_begin)(void *state);
    void (*window_end)(void *state);
    uint64_t (*due_ns)(const void *state);
    void (*release)(void *state);
};

#endif
