/*
 * stacks_private: what the files of stacks share.
 *
 *     stacks.c          samples, from the first frame to their weight in the profile
 *     stacks_native.c   the native half
 *     stacks_runtime.c  the runtime's half, and how the two are joined
 */
#ifndef CAPTURE_STACKS_STACKS_PRIVATE_H
#define CAPTURE_STACKS_STACKS_PRIVATE_H

#include "capture/stacks/resolve.h"
#include "capture/stacks/stacks.h"
#include "profile/weave.h"

enum {
    NATIVE_MAX = UNWIND_FRAMES_MAX + 4, /* with marks */
    RUNTIME_SHOWN_MAX = WEAVE_RUNTIMES_MAX * RUNTIME_FRAMES_MAX,
    WOVEN_MAX = NATIVE_MAX + RUNTIME_SHOWN_MAX,
};

/* The frames of one of the runtimes that the thread runs. */
struct walked {
    struct reader *reader;
    const struct caught *caught;
    size_t from; /* in scratch.runtime */
};

/* One stack in the making; lists are leaf first. */
struct stacks_scratch {
    struct unwind_result unwound;
    struct frame native[NATIVE_MAX];
    uint64_t image[NATIVE_MAX];
    uint8_t native_kind[NATIVE_MAX];      /* enum weave_native */
    size_t native_count;
    struct resolve resolve;
    struct walked walked[WEAVE_RUNTIMES_MAX];
    struct weave_stack stack[WEAVE_RUNTIMES_MAX]; /* of these */
    size_t walked_count;
    uint8_t verdict; /* on the sample that they were read at */
    uint32_t runtime[RUNTIME_SHOWN_MAX];  /* frames of the profile */
    uint8_t runtime_kind[RUNTIME_SHOWN_MAX]; /* enum weave_runtime */
    struct weave_frame woven[WOVEN_MAX];
};

/* The two halves of a call chain, leaf first. */
struct halves {
    const uint64_t *kernel, *user;
    size_t kernel_len, user_len;
};

/* One frame deeper. False when the profile is full: the path must not go on from the root then. */
static inline bool descend(struct profile *p, uint32_t *node, const struct frame *frame)
{
    *node = profile_child(p, *node, profile_frame(p, frame));
    return *node != 0;
}

static inline bool descend_to(struct profile *p, uint32_t *node, uint32_t frame)
{
    *node = profile_child(p, *node, frame);
    return *node != 0;
}

static inline bool stacks_mark(struct profile *p, enum frame_kind kind, const char *name, uint32_t *node)
{
    struct frame frame = {.name = profile_cstring(p, name), .kind = (uint8_t)kind};
    return descend(p, node, &frame);
}

/* Fill the scratch's native half, by the chain or by unwinding. */
void stacks_take_chain(struct stacks *s, struct profile *p, struct target *target, const struct halves *halves,
                       uint64_t now_ns);
void stacks_take_unwound(struct stacks *s, struct profile *p, struct target *target, const struct record *sample,
                         const struct halves *halves, const struct caught *caught);
void stacks_take_sleeper(struct stacks *s, struct profile *p, struct target *target, const struct stacks_sleeper *at);

/* What the size of copies is decided by: of one stack, whose copy has so many bytes from `sp` on. */
void stacks_note_size(struct target *target, size_t copied, uint64_t sp, const struct unwind_result *result);

/* Notes in the scratch the runtimes that the thread runs, and counts what became of the readings. `first` tells of the
 * sample; null: nothing was caught. */
void stacks_take_walked(struct stacks *s, const struct target *target, const struct caught *first);

/* Adds the native half in the scratch and the runtimes'. False: the profile is full. */
bool stacks_add_both(struct stacks *s, struct profile *p, uint32_t *node);

#endif
