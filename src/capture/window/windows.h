/*
 * windows: where one window ends and the next begins.
 *
 * windows_begin starts the clock of a window. The row does the last two steps of its end: the profile gets its facts
 * (times, mode, why stacks are missing), and is handed to the publisher, which returns an empty one; limits.h has its
 * own row between the two, so there are two rows here.
 */
#ifndef CAPTURE_WINDOW_WINDOWS_H
#define CAPTURE_WINDOW_WINDOWS_H

#include "capture/follow/unsampled.h"
#include "capture/stacks/catching.h"
#include "capture/window/publisher.h"

/* Over the whole run. */
struct windows_sums {
    uint64_t windows, cpu_ns, unseen_ns;
    bool any_cpu; /* that is worth a word, without a stack */
};

struct windows;

extern const struct concern window_facts_concern, window_submit_concern;

/* Null when memory ends. */
struct windows *windows_new(struct follow *f, struct catching *catching, struct publisher *publisher);

void windows_begin(struct windows *w);

/* When the window is to end: monotonic. 0 while the publisher is at work: nobody could take it. */
uint64_t windows_due_ns(const struct window *window, uint64_t window_ns, bool publisher_is_ready);

const struct windows_sums *windows_sums(const struct windows *w);

enum { WINDOWS_MODE_MAX = 160 };

/* How this run captures, in words. */
void windows_mode(const struct windows *w, char out[static WINDOWS_MODE_MAX]);

#endif
