/* stacks_runtime: the runtime's half of a stack, as a catcher read it, and its joining with the native half: woven
 * where it is proven to be of the same moment, else standing whole with the native leaf above it. What could not be
 * read is one frame that says so. */
#include "capture/stacks/stacks_private.h"
#include "profile/weave.h"

#include <stdio.h>

static const enum runtime_share share_of[CATCH_VERDICT_COUNT] = {
    [CATCH_PROVEN] = SHARE_PROVEN,       [CATCH_LATE] = SHARE_LATE,
    [CATCH_OTHER_CPU] = SHARE_ELSEWHERE, [CATCH_LONG] = SHARE_RAN_ON,
    [CATCH_MOVED] = SHARE_ELSEWHERE,     [CATCH_ASLEEP] = SHARE_RAN_ON,
    [CATCH_NOT_PREEMPTED] = SHARE_RAN_ON, [CATCH_UNPROVABLE] = SHARE_UNPROVABLE,
    [CATCH_UNREAD] = SHARE_UNREAD,
};

static enum weave_runtime kind_of(const struct runtime_frame *frame)
{
    return (frame->flags & RUNTIME_FRAME_SHIM) != 0    ? WEAVE_SHIM
           : (frame->flags & RUNTIME_FRAME_ENTRY) != 0 ? WEAVE_ENTRY
                                                       : WEAVE_FRAME;
}

/* The frames of the profile that were caught; false: the profile is full. */
static bool take_runtime(struct stacks *s, struct profile *p, const struct walked *walked)
{
    uint32_t *frames = &s->scratch->runtime[walked->from];
    uint8_t *kinds = &s->scratch->runtime_kind[walked->from];
    const struct caught *caught = walked->caught;
    readers_frames(s->readers, walked->reader, p, caught->frame, caught->frame_count, frames);
    for (size_t i = 0; i < caught->frame_count; i++) {
        kinds[i] = (uint8_t)kind_of(&caught->frame[i]);
        if (frames[i] == 0) {
            return false;
        }
    }
    return true;
}

/* One frame in the place of all: the thread ran on while it was read, or its memory could not be. */
static void take_failure(struct stacks *s, struct profile *p, const struct walked *walked)
{
    const struct runtime *runtime = walked->reader->runtime;
    char name[64];
    snprintf(name, sizeof name, "[%s: %s]", runtime->name,
             walked->caught->end == RUNTIME_TORN ? "torn" : "unreadable");
    struct frame frame = {.kind = (uint8_t)runtime->kind, .name = profile_cstring(p, name)};
    s->scratch->runtime[walked->from] = profile_frame(p, &frame);
    s->scratch->runtime_kind[walked->from] = WEAVE_ENTRY;
}

static bool is_whole(const struct walked *walked)
{
    return walked->caught->end == RUNTIME_COMPLETE;
}

/* The frames of all runtimes that the thread runs, one behind the other. */
static bool take_runtimes(struct stacks *s, struct profile *p)
{
    struct stacks_scratch *to = s->scratch;
    size_t from = 0;
    for (size_t i = 0; i < to->walked_count; i++) {
        struct walked *walked = &to->walked[i];
        walked->from = from;
        if (!is_whole(walked)) {
            take_failure(s, p, walked);
        } else if (!take_runtime(s, p, walked)) {
            return false;
        }
        size_t count = is_whole(walked) ? walked->caught->frame_count : 1;
        to->stack[i] = (struct weave_stack){&to->runtime_kind[from], count};
        from += count;
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
    fits = fits && ((frame->flags & RUNTIME_FRAME_PART) == 0 || stacks_mark(p, kind, "[partial]", node));
    return fits && ((frame->flags & RUNTIME_FRAME_COLLECTS) == 0 || stacks_mark(p, kind, "[gc]", node));
}

static bool add_runtime_frame(struct stacks *s, struct profile *p, const struct weave_frame *at, uint32_t *node)
{
    const struct walked *walked = &s->scratch->walked[at->runtime - 1];
    return descend_to(p, node, s->scratch->runtime[walked->from + at->index]) &&
           (!is_whole(walked) || add_behind(p, walked->reader, &walked->caught->frame[at->index], node));
}

/* `mark`: the native leaf is of another moment. */
static bool add_woven(struct stacks *s, struct profile *p, size_t count, bool mark, uint32_t *node)
{
    const struct stacks_scratch *from = s->scratch;
    bool fits = true, inside = false;
    for (size_t i = count; fits && i > 0; i--) {
        const struct weave_frame *at = &from->woven[i - 1];
        if (at->runtime != 0) {
            inside = true;
            fits = add_runtime_frame(s, p, at, node);
            continue;
        }
        if (mark && inside) {
            mark = false;
            fits = stacks_mark(p, FRAME_NATIVE, "[~]", node);
        }
        fits = fits && descend(p, node, &from->native[at->index]);
    }
    return fits;
}

/* What a native frame is to the runtimes that the thread runs; those nearer to the leaf are told before. */
static uint8_t native_kind_of(struct stacks_scratch *from, size_t native)
{
    for (size_t i = 0; i < from->walked_count; i++) {
        enum runtime_native kind =
            readers_native(from->walked[i].reader, from->image[native], from->native[native].address);
        uint8_t loop = (uint8_t)(WEAVE_LOOP + i);
        if (kind == RUNTIME_NATIVE_ENTERS) {
            return native > 0 && from->native_kind[native - 1] == loop ? WEAVE_PLUMBING : loop;
        }
        if (kind == RUNTIME_NATIVE_GOES_ON && native > 0 && from->native_kind[native - 1] == loop) {
            from->native_kind[native - 1] = WEAVE_PLUMBING;
        }
        if (kind != RUNTIME_NATIVE_PLAIN) {
            return kind == RUNTIME_NATIVE_LOOP ? loop : WEAVE_PLUMBING;
        }
    }
    return WEAVE_NATIVE;
}

/* An interpreter may run each function by a piece of generated code, so that a perf map names it: the interpreter calls
 * it, and it calls the loop. The runtime's own stack has the function already. */
static void tell_trampolines(struct stacks *s)
{
    struct stacks_scratch *to = s->scratch;
    for (size_t i = 1; i < to->native_count; i++) {
        if (to->native_kind[i - 1] < WEAVE_LOOP || to->native_kind[i] != WEAVE_NATIVE ||
            !images_is_generated(s->targets->images, to->image[i])) {
            continue;
        }
        to->native_kind[i] = WEAVE_PLUMBING;
        bool by_interpreter = i + 1 < to->native_count && to->image[i + 1] == to->image[i - 1];
        if (by_interpreter && to->native_kind[i + 1] == WEAVE_NATIVE) {
            to->native_kind[i + 1] = WEAVE_PLUMBING; /* its evaluator, which no exported name tells */
        }
    }
}

bool stacks_add_both(struct stacks *s, struct profile *p, uint32_t *node)
{
    struct stacks_scratch *to = s->scratch;
    bool proven = to->verdict == CATCH_PROVEN;
    size_t count;
    if (!take_runtimes(s, p)) {
        return false;
    }
    to->native_count = s->runtime_alone ? 0 : to->native_count;
    for (size_t i = 0; i < to->native_count; i++) {
        to->native_kind[i] = native_kind_of(to, i);
    }
    tell_trampolines(s);
    for (size_t i = 0; i < to->walked_count; i++) {
        proven = proven && is_whole(&to->walked[i]);
    }
    if (proven && to->native_count > 0) {
        s->woven[weave(to->native_kind, to->native_count, to->stack, to->walked_count, to->woven, &count)]++;
        return add_woven(s, p, count, false, node);
    }
    bool mark = weave_apart(to->native_kind, to->native_count, to->stack, to->walked_count, to->woven, &count);
    s->woven[WOVEN_APART] += to->native_count > 0;
    return add_woven(s, p, count, mark, node);
}

static bool runs(enum runtime_end end)
{
    return end != RUNTIME_EMPTY && end != RUNTIME_NO_THREAD;
}

/* The runtimes that the thread runs; counts what became of the reading. `first` tells of the sample. */
void stacks_take_walked(struct stacks *s, const struct target *target, const struct caught *first)
{
    struct stacks_scratch *to = s->scratch;
    to->walked_count = 0;
    if (first == NULL || s->readers == NULL) {
        return;
    }
    const struct reader *any = target->runtime.reader;
    bool has_stacks = any != NULL && any->runtime != NULL && any->runtime->walk != NULL && !any->runtime->only_labels;
    s->shares[SHARE_UNREAD] += first->serial == 0 && has_stacks;
    bool good = true, part = false;
    to->verdict = first->verdict;
    for (const struct caught *caught = first; caught != NULL; caught = caught_next(caught)) {
        struct reader *reader = caught->serial == 0 ? NULL : readers_of(s->readers, target, caught->serial);
        if (reader == NULL || reader->runtime == NULL) {
            continue;
        }
        readers_walked(s->readers, reader, caught->end);
        if (runs(caught->end) && to->walked_count < WEAVE_RUNTIMES_MAX) {
            to->walked[to->walked_count++] = (struct walked){reader, caught, 0};
            good = good && caught->end == RUNTIME_COMPLETE;
            part = part || (caught->frame_count > 0 && (caught->frame[0].flags & RUNTIME_FRAME_PART) != 0);
        }
    }
    if (to->walked_count > 0) {
        s->shares[good ? share_of[first->verdict] : SHARE_TORN]++;
        bool twice = first->verdict != CATCH_PROVEN && first->verdict != CATCH_UNREAD;
        s->consistent[part ? CONSISTENT_PART : CONSISTENT_WHOLE] += good && twice;
    }
}
