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
 * Several runtimes in one process (a server with two interpreters) are woven at once, each by its own frames of the
 * loop; if one of them is unmerged all stand whole, in the order of their leaf-most frames of the loop.
 * Both are of one moment either way. What is not proven to be of one moment is not woven at all: see weave_apart.
 */
#ifndef PROFILE_WEAVE_H
#define PROFILE_WEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weave_native {
    WEAVE_NATIVE,   /* is shown */
    WEAVE_PLUMBING, /* how an interpreter calls itself: not shown between frames of the runtime */
    WEAVE_LOOP,     /* the loop of the first runtime; of the others WEAVE_LOOP + 1, + 2 … */
};

enum { WEAVE_RUNTIMES_MAX = 4 };

enum weave_runtime { WEAVE_FRAME, WEAVE_ENTRY, WEAVE_SHIM };

enum weave_outcome {
    WEAVE_EXACT,
    WEAVE_ONE_MORE, /* exact, except for the leaf-most frame of the loop */
    WEAVE_UNMERGED,
    WEAVE_APART,
};

/* The frames that one runtime has of the stack (enum weave_runtime), leaf first. */
struct weave_stack {
    const uint8_t *kinds;
    size_t count;
};

struct weave_frame {
    uint32_t index;  /* in the native or the runtime's list, both leaf first */
    uint8_t runtime; /* 0: native; else the runtime's number + 1 */
};

/* `out` has room for all; leaf first. At most WEAVE_RUNTIMES_MAX runtimes. The outcome is that of the worst. */
enum weave_outcome weave(const uint8_t *native, size_t native_count, const struct weave_stack *runtimes,
                         size_t runtime_count, struct weave_frame *out, size_t *count);

/* For frames of two moments: the runtime's stack whole, below it what led into the last native frame of
 * the loop, and above it the native frames nearer to the leaf than the first one, unless they are plumbing.
 * Returns whether such native frames are there, which the caller marks. */
bool weave_apart(const uint8_t *native, size_t native_count, const struct weave_stack *runtimes,
                 size_t runtime_count, struct weave_frame *out, size_t *count);

#endif
