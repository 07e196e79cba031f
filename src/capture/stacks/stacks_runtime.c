/* stacks_runtime: the runtime's half of a stack, as a catcher read it, and its joining with the native half: woven where
 * it is proven to be of the same moment, else standing whole with the native leaf above it. What could not be read is
 * one frame that says so. */
#include "capture/stacks/stacks_private.h"
#include "profile/weave.h"

#include <stdio.h>

static const enum runtime_share share_of[CATCH_VERDICT_COUNT] = {
    [CATCH_PROVEN] = SHARE_PROVEN,       [CATCH_LATE] = SHARE_LATE,
    [CATCH_OTHER_CPU] = SHARE_ELSEWHERE, [CATCH_LONG] = SHARE_RAN_ON,
    [CATCH_MOVED] = SHARE_ELSEWHERE,     [CATCH_ASLEEP] = SHARE_RAN_ON,
    [CATCH_NOT_PREEMPTED] = SHARE_RAN_ON, [CATCH_UNREAD] = SHARE_UNREAD,
};

static enum weave_runtime kind_of(const struct runtime_frame *frame)
{
    return (frame->flags & RUNTIME_FRAME_SHIM) != 0    ? WEAVE_SHIM
           : (frame->flags & RUNTIME_FRAME_ENTRY) != 0 ? WEAVE_ENTRY
                                                       : WEAVE_FRAME;
}

/* The frames of the profile that were caught; false: the profile is full. */
static bool take_runtime(struct stacks *s, struct profile *p, struct reader *reader,
                         const struct caught *caught)
{
    struct stacks_scratch *to = s->scratch;
    readers_frames(s->readers, reader, p, caught->frame, caught->frame_count, to->runtime);
    for (size_t i = 0; i < caught->frame_count; i++) {
        to->runtime_kind[i] = (uint8_t)kind_of(&caught->frame[i]);
        if (to->runtime[i] == 0) {
            return false;
        }
    }
    return true;
}

/* What stands above a frame of the runtime on the way to the leaf, and has no frame of its own. */
static bool add_behind(struct profile *p, const struct reader *reader,
                       const struct runtime_frame *frame, uint32_t *node)
{
    enum frame_kind kind = reader->runtime->kind;
    bool fits = (frame->flags & RUNTIME_FRAME_CUT) == 0 ||
                stacks_mark(p, kind, "[frames left out]", node);
    return fits && ((frame->flags & RUNTIME_FRAME_COLLECTS) == 0 || stacks_mark(p, kind, "[gc]", node));
}

/* `frames` are the runtime's; null: they have no flags. `mark`: the native leaf is of another moment. */
static bool add_woven(struct stacks *s, struct profile *p, const struct reader *reader,
                      const struct runtime_frame *frames, size_t count, bool mark, uint32_t *node)
{
    const struct stacks_scratch *from = s->scratch;
    bool fits = true, inside = false;
    for (size_t i = count; fits && i > 0; i--) {
        const struct weave_frame *at = &from->woven[i - 1];
        if (!at->runtime) {
            if (mark && inside) {
                mark = false;
                fits = stacks_mark(p, FRAME_NATIVE, "[~]", node);
            }
            fits = fits && descend(p, node, &from->native[at->index]);
            continue;
        }
        inside = true;
        fits = descend_to(p, node, from->runtime[at->index]) &&
               (frames == NULL || add_behind(p, reader, &frames[at->index], node));
    }
    return fits;
}

static void set_kinds(struct stacks *s, const struct reader *reader)
{
    struct stacks_scratch *to = s->scratch;
    static const uint8_t kinds[] = {
        [RUNTIME_NATIVE_PLAIN] = WEAVE_NATIVE,
        [RUNTIME_NATIVE_LOOP] = WEAVE_LOOP,
        [RUNTIME_NATIVE_PLUMBING] = WEAVE_PLUMBING,
    };
    for (size_t i = 0; i < to->native_count; i++) {
        to->native_kind[i] = kinds[readers_native(reader, to->image[i], to->native[i].address)];
    }
}

/* One frame in the place of all: the thread ran on while it was read, or its memory could not be. */
static void take_failure(struct stacks *s, struct profile *p, const struct reader *reader,
                         const struct caught *caught)
{
    char name[64];
    snprintf(name, sizeof name, "[%s: %s]", reader->runtime->name,
             caught->end == RUNTIME_TORN ? "torn" : "unreadable");
    struct frame frame = {.kind = (uint8_t)reader->runtime->kind, .name = profile_cstring(p, name)};
    s->scratch->runtime[0] = profile_frame(p, &frame);
    s->scratch->runtime_kind[0] = WEAVE_ENTRY;
}

bool stacks_add_both(struct stacks *s, struct profile *p, struct reader *reader,
                     const struct caught *caught, uint32_t *node)
{
    struct stacks_scratch *to = s->scratch;
    bool whole = caught->end == RUNTIME_COMPLETE;
    size_t runtime_count = whole ? caught->frame_count : 1, count;
    if (!whole) {
        take_failure(s, p, reader, caught);
    } else if (!take_runtime(s, p, reader, caught)) {
        return false;
    }
    to->native_count = s->runtime_alone ? 0 : to->native_count;
    set_kinds(s, reader);
    if (whole && caught->verdict == CATCH_PROVEN && to->native_count > 0) {
        s->woven[weave(to->native_kind, to->native_count, to->runtime_kind, runtime_count,
                       to->woven, &count)]++;
        return add_woven(s, p, reader, caught->frame, count, false, node);
    }
    bool mark = weave_apart(to->native_kind, to->native_count, to->runtime_kind, runtime_count,
                            to->woven, &count);
    s->woven[WOVEN_APART] += to->native_count > 0;
    return add_woven(s, p, reader, whole ? caught->frame : NULL, count, mark, node);
}

/* Whether the thread runs the runtime at all; counts what became of the reading. */
struct reader *stacks_reader_of(struct stacks *s, const struct target *target,
                                const struct caught *caught)
{
    struct reader *reader = caught == NULL || s->readers == NULL
                                ? NULL
                                : readers_of(s->readers, target, caught->serial);
    if (reader == NULL || reader->runtime == NULL) {
        s->shares[SHARE_UNREAD] += caught != NULL && target->runtime.reader != NULL &&
                                   target->runtime.reader->runtime != NULL && caught->serial == 0;
        return NULL;
    }
    readers_walked(s->readers, reader, caught->end);
    if (caught->end == RUNTIME_EMPTY || caught->end == RUNTIME_NO_THREAD) {
        return NULL;
    }
    s->shares[caught->end == RUNTIME_COMPLETE ? share_of[caught->verdict] : SHARE_TORN]++;
    return reader;
}
