#include "capture/window/image_sweep.h"
#include "base/time.h"

#include <stdlib.h>

enum { SWEEP_MS = 1000 }; /* between two sweeps: a mapping of a living process costs each 30 ns */

struct image_sweep {
    struct follow *follow;
    struct catching *catching;
    struct publisher *publisher;
    uint64_t next_ns;
    uint64_t unmapped;  /* targets.unmapped at the last sweep … */
    uint32_t since;     /* … and the first window that was not published yet */
};

struct image_sweep *image_sweep_new(struct follow *f, struct catching *catching, struct publisher *publisher)
{
    struct image_sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep != NULL) {
        *sweep = (struct image_sweep){.follow = f, .catching = catching, .publisher = publisher};
    }
    return sweep;
}

/* The window that is being filled and the one that is being published name images; nobody else holds a key
 * between two rounds but what targets_mark_images marks. */
static void sweep(void *state, uint64_t now_ns)
{
    struct image_sweep *w = state;
    struct targets *targets = &w->follow->targets;
    if (w->follow->shared->observer != NULL || now_ns < w->next_ns) {
        return; /* what is opened again would be observed again */
    }
    uint32_t since = targets->window - !publisher_ready(w->publisher);
    if (since == w->since && targets->unmapped == w->unmapped) {
        return;
    }
    w->next_ns = now_ns + SWEEP_MS * NS_PER_MS;
    w->since = since;
    w->unmapped = targets->unmapped;
    targets_mark_images(targets);
    if (images_sweep(&w->follow->images, since) > 0) {
        catching_forget_images(w->catching);
    }
}

const struct concern image_sweep_concern = {
    .name = "image sweep",
    .while_suspended = true,
    .round = sweep,
    .release = free,
};
