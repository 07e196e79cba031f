#include "capture/stacks/waiting.h"

#include <stdlib.h>

struct waiting {
    struct shared *shared;
    bool on;
    struct waits waits;
};

struct waiting *waiting_new(struct shared *shared, struct stacks *stacks, struct readers *readers,
                            struct targets *targets)
{
    struct waiting *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->shared = shared;
        w->on = readers != NULL && waits_init(&w->waits, stacks, readers, targets, NULL);
    }
    return w;
}

bool waiting_is_on(const struct waiting *w)
{
    return w->on;
}

static void check(void *state, uint64_t now_ns)
{
    struct waiting *w = state;
    if (w->on && waits_due(&w->waits, now_ns)) {
        waits_look(&w->waits, w->shared->window.profile, now_ns);
    }
}

static void window_begin(void *state)
{
    struct waiting *w = state;
    w->shared->window.profile->watches_waits |= w->on;
}

static void release(void *state)
{
    struct waiting *w = state;
    if (w->on) {
        waits_release(&w->waits);
    }
    free(w);
}

const struct concern waiting_concern = {
    .name = "waiting",
    .round = check,
    .window_begin = window_begin,
    .release = release,
};
