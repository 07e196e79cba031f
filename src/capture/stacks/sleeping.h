/*
 * sleeping: the native stack of a thread that sleeps, for those who watch when it does (offcpu.h, waits.h).
 *
 * Concept. /proc/PID/task/TID/syscall tells where a sleeping thread stands: its stack pointer and instruction. From
 * these and its memory the unwinder finds the callers: nobody is stopped, no system call is interrupted. Above the
 * leaf stands what it waits for (reasons.h). Whether the thread ran meanwhile is the caller's to find out.
 *
 * Cost: a read of /proc and one of memory. A stack whose top is, byte for byte, what the thread had there before (the
 * registers alone would not tell two callers apart) is the node found then; others are unwound, some 50 µs each, as
 * many as sleeping_allow gave. What is found counts as found then once it is kept: by who knows that the thread did not
 * run while it was read.
 *
 * Limits. The frame pointer of a sleeping thread is not known, so code that needs it leads to a guess or ends the
 * stack.
 *
 * Used by the sampler alone. Call order: sleeping_init; sleeping_allow; sleeping_node, sleeping_keep;
 * sleeping_end_window, because nodes are of one profile; sleeping_release.
 */
#ifndef CAPTURE_STACKS_SLEEPING_H
#define CAPTURE_STACKS_SLEEPING_H

#include "capture/stacks/stacks.h"

struct sleeping {
    struct stacks *stacks;
    struct map nodes;      /* of the window: thread, place and what lies there -> node */
    unsigned reads;        /* stacks that may be unwound now */
    uint64_t key;          /* of the stack that was read last, … */
    uint32_t node;         /* … and its node, as long as it is not kept; 0: nothing is to be kept */
    unsigned char *stack;  /* scratch */
};

/* A thread, and what its syscall file says. */
struct sleeping_thread {
    struct target *target;
    uint32_t tid;
    struct str place;
    const char *reason;          /* null: as the place tells */
    const struct caught *caught; /* its runtime's stack of the same moment; null: there is none */
};

bool sleeping_init(struct sleeping *s, struct stacks *stacks, struct err *err);
void sleeping_release(struct sleeping *s);

/* So many more stacks may be unwound; what is not used stays, up to `most`. */
void sleeping_allow(struct sleeping *s, unsigned more, unsigned most);

/* The node of its stack; 0: it runs, no more stacks may be unwound, or the profile has no room. */
uint32_t sleeping_node(struct sleeping *s, struct profile *p, const struct sleeping_thread *thread);

/* The stack that was read last is the thread's. */
void sleeping_keep(struct sleeping *s);

void sleeping_end_window(struct sleeping *s);


#endif
