/* Java on HotSpot where samples have no registers: its recorder (recording.c); where it has none that could be used, or
 * when it is asked for so, the stacks of all its threads again and again (dumps.c). Recorders before 25 look at
 * five running threads each time, and do not see one that waits for a processor; where many run, dumps tell of those
 * that they have not met. */
#include "runtime/java/attach.h"
#include "runtime/java/dumps.h"
#include "runtime/java/private.h"

#include "base/time.h"

#include <errno.h>
#include <stdio.h>

enum { MET_EACH_TIME = 5, CROWD = 2, LOOK_MS = 10000 }; /* crowd: threads for each processor */

struct collection {
    struct recording *recording; /* null: … */
    struct dumps dumps;          /* … these are taken */
    unsigned processors;
    bool is_crowded;             /* so many threads run that both are */
    uint64_t unlooked_ns;        /* since it was last seen whether it is */
};

static bool begin_dumps(struct collection *c, struct err *why)
{
    bool good = dumps_take(&c->dumps, 0);
    *why = c->dumps.why;
    return good;
}

/* Nothing of it is kept, nor whether it failed. */
static unsigned running_now(const struct runtime_target *target)
{
    struct dumps once;
    dumps_init(&once, target->port);
    unsigned running = (target->wanted & RUNTIME_WANTS_CPU) != 0 && dumps_take(&once, 0) ? once.running : 0;
    dumps_release(&once);
    return running;
}

/* Without a recorder: what it would have told besides is not to be had. */
static bool is_without_recorder(const struct runtime_target *target, const struct err *why)
{
    return (target->wanted & RUNTIME_WANTS_CPU) != 0 && why->kind == ERR_UNSUPPORTED && why->number != EAGAIN;
}

void *java_collect(const struct runtime_target *target, struct err *why)
{
    struct collection *c = calloc(1, sizeof *c);
    struct err cause = {0}, refused = {0};
    if (c == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for a recording");
        return NULL;
    }
    dumps_init(&c->dumps, target->port);
    c->processors = target->processors;
    bool is_asked_for = target->by_moments, listens = attach_open(target->port, &cause);
    c->recording = listens && !is_asked_for ? java_record(target, running_now(target), &cause) : NULL;
    if (c->recording != NULL) {
        return c;
    }
    if (listens && (is_asked_for || is_without_recorder(target, &cause)) && begin_dumps(c, &refused)) {
        if (!is_asked_for) {
            err_set(why, ERR_UNSUPPORTED, 0,
                    "they are those of safepoints, asked for up to ten times a second, because %s", cause.text);
        }
        return c;
    }
    *why = listens && is_asked_for ? refused : cause;
    dumps_release(&c->dumps);
    free(c);
    return NULL;
}

bool java_collect_tick(void *collection, uint64_t since_ns)
{
    struct collection *c = collection;
    if (c->recording == NULL) {
        return dumps_take(&c->dumps, since_ns);
    }
    c->unlooked_ns += since_ns;
    if (!c->is_crowded && c->unlooked_ns < LOOK_MS * NS_PER_MS) {
        return true;
    }
    if (java_meets_all(c->recording) || !dumps_take(&c->dumps, since_ns)) {
        return false;
    }
    c->is_crowded = c->dumps.running > MET_EACH_TIME && c->dumps.running > CROWD * c->processors;
    c->unlooked_ns = 0;
    if (!c->is_crowded) {
        dumps_forget(&c->dumps);
    }
    return true;
}

static void hand_over(struct collection *c, const struct runtime_sink *sink)
{
    if (c->dumps.kept.len > 0) {
        sink->file(sink->context, NULL, &c->dumps.kept);
        buf_clear(&c->dumps.kept);
    }
}

bool java_collect_poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why)
{
    struct collection *c = collection;
    hand_over(c, sink);
    if (c->recording != NULL) {
        return java_read_recording(c->recording, whole, sink, why);
    }
    *why = c->dumps.why;
    return why->kind == ERR_NONE;
}

void java_collect_stop(void *collection, const struct runtime_sink *sink)
{
    struct collection *c = collection;
    hand_over(c, sink);
    if (c->recording != NULL) {
        java_stop_recording(c->recording, sink);
    }
    dumps_release(&c->dumps);
    free(c);
}
