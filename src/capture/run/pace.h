/*
 * rounds: how long the sampler waits for records before it looks around by itself.
 *
 * A moment that something is due at ends the wait early, unless nobody would then do it: the window's end while
 * the publisher is not ready to take one, or a look at runtimes while sampling is suspended. Such a moment stays
 * due, and a wait that it shortened would be none, round after round: a whole core.
 */
#ifndef CAPTURE_ROUNDS_H
#define CAPTURE_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct rounds_due {
    uint64_t now_ns;        /* monotonic, as the next two */
    uint64_t window_end_ns;
    uint64_t look_ns;       /* at runtimes */
    uint64_t slice_ns;      /* of bursts: begins or ends; 0: there are none */
    bool takes_window;      /* the publisher is ready */
    bool looks;             /* somebody looks at runtimes */
};

/* usual_ns, or less when something is due before. */
uint64_t rounds_wait_ns(uint64_t usual_ns, const struct rounds_due *due);

#endif
