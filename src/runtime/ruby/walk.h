/*
 * walk: what the files that walk a thread's frames share.
 *
 * Concept. One batch asks for all that the plan predicts: the thread and its execution context, the control frames
 * nearest to the leaf, the values they have on the stack ("values"), and those environments that lay on the heap last
 * time ("slots"). The walk then runs over these bytes, from the leaf to the stack's end. What was not predicted is
 * fetched by further batches: the next part of the frames with its values, other environments, fingerprints of
 * functions not met yet.
 *
 * Consistency. When nobody proves that the thread stands still, frames are read twice in the batch, values and slots
 * between the copies, and the pointer to the leaf before, between and behind. From the root on both copies agree up to
 * some frame, because frames only change at the leaf's end: that one may run on, those below it stand. If it is the
 * leaf all is consistent; else the part below is (RUNTIME_FRAME_PART), or the stack is torn. A further part of the
 * frames begins with the last frame before it, which is read again behind it; further environments stand between
 * copies of the frames that they are of.
 *
 * Memory. struct walk lies on a catcher's stack.
 *
 * Files: walk.c (one sample: attempts, marks), thread.c (tid to thread), walk_read.c (what is held), walk_frames.c (the
 * frames), walk_check.c (fingerprints).
 */
#ifndef RUNTIME_RUBY_WALK_H
#define RUNTIME_RUBY_WALK_H

#include "runtime/ruby/private.h"

enum {
    WALK_FRAMES = 192,       /* held at a time, */
    WALK_VALUES = 16384,     /* with so many bytes of values */
    WALK_SLOTS = 128,        /* environments elsewhere */
    WALK_PIECES = 144,
    WALK_CHECKS = 56,        /* fingerprints asked for at once */
    WALK_BATCHES_MAX = 96,   /* of one sample */
    WALK_RETRIES_MAX = 4,
    WALK_FAILED_MAX = 192,   /* pieces of one sample that cannot be read: each is a system call more */
    WALK_ENV = 24,           /* bytes: method, link, flags */

    WALK_UNCHECKED = 1 << 30, /* of a frame, while the walk has no fingerprint for it */

    PLAN_ESCAPED = 32,
    PLAN_SETS = 32,
    PLAN_WAYS = 4,
    PLAN_AGAIN = 3,          /* fingerprints read again in each sample: of two frames at the leaf, another in turn */
};

/* A function whose fingerprint was taken. */
struct plan_item {
    uint64_t address;        /* of an instruction sequence or a C function's method; 0: free */
    uint64_t body;           /* 0: of a C function */
    uint32_t check;
    uint16_t checked, used;  /* in which sample */
};

struct ruby_plan {
    uint64_t thread;         /* 0: to be found */
    uint64_t ractor, native, pthread; /* of it; 0: there is none */
    uint64_t ec, stack, limit; /* the stack that it runs on */
    uint64_t cfp, top;       /* of the last sample: the leaf, and where its values end */
    /* where the search for the thread goes on: a thread (0: its ractor's first), a ractor; both 0: at the start */
    uint64_t resume, resume_ractor;
    uint32_t sample;         /* a count */
    uint32_t missed;         /* samples for which the thread is still taken to be unknown */
    uint32_t short_lived;    /* samples for which functions are taken to be freed soon */
    uint32_t hurry;          /* samples for which code that runs once, of a file or a class, is new */
    uint32_t turn;
    uint32_t steps;          /* of the search for the thread, in all its samples */
    bool was_found;
    uint8_t escaped_count;
    uint8_t leaves[2];       /* items' numbers + 1 */
    uint64_t escaped[PLAN_ESCAPED]; /* environments that the last stack had elsewhere */
    struct plan_item item[PLAN_SETS * PLAN_WAYS];
};
_Static_assert(sizeof(struct ruby_plan) <= RUNTIME_PLAN_MAX, "a plan is larger than promised");

struct walk_slots {
    uint32_t count, fetched;
    uint32_t piece; /* of the first one in the batch in hand */
    uint64_t ep[WALK_SLOTS];
    bool is_there[WALK_SLOTS], is_met[WALK_SLOTS];
    unsigned char bytes[WALK_SLOTS][WALK_ENV];
};

/* A fingerprint that is read again. */
struct walk_again {
    uint32_t item, head, piece; /* pieces of the batch in hand */
    uint64_t body;
    unsigned char bytes[RUBY_BODY_HEAD];
};

/* A part of the stack: frames [low, limit), values [values_low, values_limit). */
struct walk_window {
    uint64_t low, limit;
    uint64_t values_low, values_limit;
    uint32_t copy;           /* the last one that is held */
    uint32_t piece, values_piece, again;
    _Alignas(8) unsigned char frames[2][WALK_FRAMES * RUBY_FRAME_BYTES];
    unsigned char values[WALK_VALUES];
};

struct walk {
    const struct ruby *ruby;
    const struct ruby_layout *layout;
    struct ruby_plan *plan;
    struct memory_batch *memory;
    struct runtime_stack *out;
    uint32_t tid;
    bool twice;
    bool takes_parts, is_part;
    bool unreadable;         /* the process cannot be read any more */
    bool has_searched;       /* for the thread: once a sample */
    uint32_t batches, pieces;
    uint32_t failed;         /* pieces */
    uint64_t cfp;            /* where the walk begins */
    uint64_t joint;          /* the last frame met, which is still held */
    unsigned char thread[RUBY_THREAD_BYTES], ec[RUBY_EC_BYTES];
    uint64_t cfp_between, cfp_last, running, pthread;
    uint32_t tid_there, gc_flags;
    uint32_t again_count;
    struct walk_again again[PLAN_AGAIN];
    struct walk_slots slots;
    struct walk_window window;
    struct memory_piece piece[WALK_PIECES];
};
_Static_assert(sizeof(struct walk) <= 49 * 1024, "a walk takes too much of a catcher's stack");

/* ---- walk_read.c ---- */

/* Adds a piece to the batch in hand; its number + 1, 0 when there is no room or no such address. */
uint32_t stack_ask(struct walk *w, uint64_t address, void *out, uint32_t len);
/* Reads the batch in hand; false when nothing can be read any more. */
bool stack_read(struct walk *w);
bool stack_got(const struct walk *w, uint32_t piece);

/* Asks for the frames [low, low + WALK_FRAMES) of the stack, and for values up to `top`; the same frames once more. */
void stack_ask_window(struct walk *w, uint64_t low, uint64_t top);
void stack_ask_window_again(struct walk *w);
/* What came of it. */
void stack_take_window(struct walk *w);
/* A control frame of the window, of the last copy. */
const unsigned char *stack_frame(const struct walk *w, uint64_t address);

/* The environment at `ep`: 1, it is held (`out`); 0, it is asked for when slots are read next; -1: it cannot be had. */
int stack_env(struct walk *w, uint64_t ep, const unsigned char **out);
void stack_add_slot(struct walk *w, uint64_t ep);
void stack_ask_slots(struct walk *w);
void stack_take_slots(struct walk *w);

/* ---- thread.c ---- */

/* Finds the thread: COMPLETE when it is in the plan. */
enum runtime_end stack_find_thread(struct walk *w);
/* The number of the system's thread whose structure these bytes are; 0: none. */
uint32_t ruby_tid_of(const struct ruby *ruby, struct memory_batch *memory, const unsigned char *thread,
                     uint64_t *native, uint64_t *pthread);

/* ---- the rest ---- */

/* walk_frames.c: where what both copies have in common begins; 0: nowhere. */
uint64_t stack_common(const struct walk *w);
enum runtime_end stack_frames(struct walk *w);

/* walk_check.c: once a sample; what is read again with the first batch; fingerprints for all frames of the stack. */
void stack_begin_checks(struct walk *w);
void stack_ask_checks(struct walk *w);
void stack_take_checks(struct walk *w);
enum runtime_end stack_check(struct walk *w);

#endif
