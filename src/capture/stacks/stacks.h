/*
 * stacks: one decoded sample becomes a path in the profile's call tree.
 *
 * The user half comes from one of two places. Where the sample carries registers and a copy of the
 * stack, it is unwound here (unwind.h), with the kernel's chain of frame pointers for where Go changes stacks; else
 * that chain is believed as long as it stays in mapped code: what it found beyond is dropped and counted in `cut`.
 * The kernel half always is the kernel's chain.
 *
 * A user address is looked up in the process's mappings and stored relative to its file; a caller's
 * address is stored minus one, so that it lies within the call instruction.
 *
 * A sample whose thread runs an interpreter comes with the stack that a catcher read (catch.h). Proven to be
 * of the same moment it is woven into the native one (profile/weave.h); else it stands whole, and a
 * native leaf above it is marked "[~]". One that contradicts itself is "[NAME: torn]", with the native
 * stack above it: the time is never lost.
 *
 * A stack for which the profile has no room is its leaf alone, below "[budget]".
 *
 * A stack that did not reach its thread's first function says so in its first frame, "[truncated]";
 * callers that were found by scanning the stack stand above a frame "[guessed]". Never is such a frame
 * shown as if it were certain.
 */
#ifndef CAPTURE_STACKS_STACKS_H
#define CAPTURE_STACKS_STACKS_H

#include "capture/stacks/readers.h"
#include "capture/follow/targets.h"
#include "sample/record.h"
#include "unwind/unwind.h"

struct stacks_module { /* what an image is called in the profile of window `window` */
    uint64_t image;
    uint32_t module, window;
};

struct stacks_scratch;

struct stacks {
    struct targets *targets;
    struct readers *readers;       /* null: no runtime is read */
    struct stacks_scratch *scratch;
    struct unwinder *unwinder;     /* null: samples carry no stacks */
    struct unwinder *of_sleepers;  /* null: nobody looks at threads that sleep. The maker's to set */
    uint64_t registers;            /* mask that was sampled with */
    VEC(struct stacks_module) modules; /* by images_place */
    uint64_t samples;
    uint64_t cut; /* samples whose chain left mapped code */
    bool coarse; /* what lies beyond a sample's copy of the stack is not read */
    bool runtime_alone; /* native frames are omitted where a runtime's stack is known */
    uint64_t ends[STACK_END_COUNT]; /* of this window's unwound stacks */
    uint64_t shares[SHARE_COUNT], woven[WOVEN_COUNT]; /* of this window */
    uint64_t consistent[CONSISTENT_COUNT];            /* of it, too */
};

/* Everything is borrowed. `unwinder` is null when samples carry chains only. */
bool stacks_init(struct stacks *s, struct targets *targets, struct readers *readers,
                 struct unwinder *unwinder, uint64_t registers);
void stacks_release(struct stacks *s);

/* Adds the sample to the profile with its period as weight. `caught` is null when no catcher saw it. */
void stacks_add(struct stacks *s, struct profile *p, const struct record *sample,
                const struct caught *caught);

/* The node and thread of a sample of another event than CPU time, which accounting and counts of stacks leave
 * out. Its stack is native, of interpreters as well. 0: no room. */
uint32_t stacks_node_of_event(struct stacks *s, struct profile *p, const struct record *sample,
                              uint32_t *thread);

/* Where a thread sleeps: the stack found from nothing but these two registers and the memory above SP, below a
 * leaf of this name and counting for nothing; a runtime's stack of the same moment is woven into it. Without an
 * unwinder it is the leaf alone. 0: no room. */
struct stacks_sleeper {
    uint64_t ip, sp;
    const unsigned char *stack; /* from sp upwards */
    size_t len;
    uint64_t time_ns;
    const char *leaf;
    const struct caught *caught; /* null: it runs nothing of a runtime */
};
uint32_t stacks_node_of_sleeper(struct stacks *s, struct profile *p, struct target *target,
                                const struct stacks_sleeper *at);

/* The same without perf: what a catcher read, with the weight that it tells. Of a stack that contradicts itself
 * only the time is known, "[partial]", and of one whose memory was refused, "[unreadable]". Of a thread that
 * runs nothing of a runtime, too: "[native, no perf]"; false for such a one. */
bool stacks_add_perfless(struct stacks *s, struct profile *p, const struct caught *caught);

/* The node of a runtime's stack alone, that counts for nothing: where a thread waits. 0 when there is none, or no
 * room. */
uint32_t stacks_node(struct stacks *s, struct profile *p, struct target *target,
                     const struct caught *caught);

/* CPU time of a thread that no sample stands for. Where threads are held, that is what it used since its last one, and
 * its samples of the window stand for it; of one without any it is left to the accounting. */
void stacks_settle(struct stacks *s, struct profile *p, uint32_t pid, uint32_t tid, uint64_t cpu_ns);

/* CPU time of a thread whose stack cannot be read. */
void stacks_add_settled(struct stacks *s, struct profile *p, uint32_t pid, uint32_t tid,
                        uint64_t cpu_ns);

/* Notes how the window's stacks ended in the profile, and begins a new count. */
void stacks_end_window(struct stacks *s, struct profile *p);

#endif
