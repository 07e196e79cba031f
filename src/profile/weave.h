/*
 * weave: one stack of the native and the runtime's frames of one moment.
 *
 * Concept. Each native frame of the interpreter's loop runs one or more of the runtime's frames: those up to
 * and including the next one marked as its entry. Walking both from the leaf, a frame of the loop is
 * replaced by them; what is native between two of the loop (C extensions, builtins, libc, the kernel) stays
 * where it is. A shim stands for a frame of the loop that is just being entered or left, and shows
 * nothing.
 *
 * If there is one more native frame of the loop than the runtime has entries, the leaf-most has no frame
 * yet, or no more: it is passed over. Any other difference means that the native stack is not whole, or
 * that the loop is not known there: then the runtime's stack stands whole, and of the native one only what
 * is nearer to the leaf than its first frame of the loop, and what led into its last (WEAVE_UNMERGED).
 * Both are of one moment either way. What is not proven to be of one moment is not woven at all: see weave_apart.
 */
#ifndef PROFILE_WEAVE_H
#define PROFILE_WEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weave_native {
    WEAVE_NATIVE,   /* is shown */
    WEAVE_LOOP,     /* the interpreter's loop */
    WEAVE_PLUMBING, /* how the interpreter calls itself: not shown between frames of the runtime */
};

enum weave_runtime { WEAVE_FRAME, WEAVE_ENTRY, WEAVE_SHIM };

enum weave_outcome {
    WEAVE_EXACT,
    WEAVE_ONE_MORE, /* exact, except for the leaf-most frame of the loop */
    WEAVE_UNMERGED,
    WEAVE_APART,
};

struct weave_frame {
    uint32_t index; /* in the native or the runtime's list, both leaf first */
    bool runtime;
};

/* `out` has room for both; leaf first. */
enum weave_outcome weave(const uint8_t *native, size_t native_count, const uint8_t *runtime,
                         size_t runtime_count, struct weave_frame *out, size_t *count);

/* For frames of two moments: the runtime's stack whole, below it what led into the last native frame of
 * the loop, and above it the native frames nearer to the leaf than the first one, unless they are plumbing.
 * Returns whether such native frames are there, which the caller marks. */
bool weave_apart(const uint8_t *native, size_t native_count, const uint8_t *runtime,
                 size_t runtime_count, struct weave_frame *out, size_t *count);

#endif
