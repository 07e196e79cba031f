#include "capture/run/run_private.h"

/* A thread's samples come from one follower, and then from another that has taken its place, or because an
 * exec or another process gave the thread's id to another thread. They come from two at once (perf.h tells
 * how that comes about) when they come from the first again after the second: that sample is one too many,
 * and all further ones of the follower that came later are. */
static bool comes_twice(struct session *s, struct target_thread *thread, struct perf_follower *from)
{
    bool again = thread->event_before == from->first_id;
    struct perf_follower *other = perf_follower_of(&s->perf, thread->event);
    thread->event_before = thread->event;
    thread->event = from->first_id;
    if (!again || other == NULL || other->doubles) {
        return false;
    }
    struct perf_follower *later = from->first_id > other->first_id ? from : other;
    later->doubles = s->any_double = true;
    return true;
}

bool session_is_double(struct session *s, const struct record *sample)
{
    struct perf_follower *from = perf_follower_of(&s->perf, sample->event);
    if (from == NULL || from->doubles) {
        return from != NULL;
    }
    struct target_thread *thread = targets_thread(&s->targets, sample->pid, sample->tid);
    return thread != NULL && thread->event != from->first_id && comes_twice(s, thread, from);
}

void session_end_doubles(struct session *s)
{
    if (!s->any_double) {
        return;
    }
    s->any_double = false;
    log_say(&s->log, LOG_DEBUG, "threads with two events each: the later ones end");
    perf_stop_doubles(&s->perf);
    session_drain(s); /* they are still known, and dropped */
    perf_end_doubles(&s->perf);
}
