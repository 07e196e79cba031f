#include "capture/follow/duplicates.h"

#include <stdlib.h>

struct duplicates {
    struct follow *follow;
    bool any; /* some thread has events of two followers */
};

struct duplicates *duplicates_new(struct follow *f)
{
    struct duplicates *d = calloc(1, sizeof *d);
    if (d != NULL) {
        d->follow = f;
    }
    return d;
}

/* A thread's samples come from one follower, and then from another that has taken its place, or because an
 * exec or another process gave the thread's id to another thread. They come from two at once (perf.h tells
 * how that comes about) when they come from the first again after the second: that sample is one too many,
 * and all further ones of the follower that came later are. */
static bool comes_twice(struct duplicates *d, struct target_thread *thread, uint64_t from)
{
    struct perf *perf = d->follow->shared->perf;
    bool again = thread->event_before == from, duplicate;
    uint64_t other = perf_follower_of(perf, thread->event, &duplicate);
    thread->event_before = thread->event;
    thread->event = from;
    if (!again || other == 0 || duplicate) {
        return false;
    }
    perf_set_duplicate(perf, from > other ? from : other);
    d->any = true;
    return true;
}

bool duplicates_has(struct duplicates *d, const struct record *sample)
{
    bool duplicate;
    uint64_t from = perf_follower_of(d->follow->shared->perf, sample->event, &duplicate);
    if (from == 0 || duplicate) {
        return from != 0;
    }
    struct target_thread *thread = targets_thread(&d->follow->targets, sample->pid, sample->tid);
    return thread != NULL && thread->event != from && comes_twice(d, thread, from);
}

static void end_them(void *state, uint64_t now_ns)
{
    struct duplicates *d = state;
    struct follow *f = d->follow;
    (void)now_ns;
    if (!d->any) {
        return;
    }
    d->any = false;
    log_say(&f->shared->log, LOG_DEBUG, "threads with two events each: the later ones end");
    perf_stop_duplicates(f->shared->perf);
    f->hooks.drain(f->hooks.context); /* they are still known, and dropped */
    perf_end_duplicates(f->shared->perf);
}

const struct concern duplicates_concern = {
    .name = "duplicates",
    .round = end_them,
    .release = free,
};
