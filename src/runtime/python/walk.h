/*
 * walk: what the files that walk a thread's frames share.
 *
 * Concept. One batch asks for everything that the plan predicts: the thread's state, the part of
 * the data stack in use ("window"), the frames that lie elsewhere ("slots": heap frames,
 * generators, shims on the C stack), and the heads of some code objects. The walk then runs over
 * these bytes. What was not predicted is fetched by a further batch, with as much of what probably
 * comes next as fits.
 *
 * Consistency. When nobody proves that the thread stands still, windows and the leaf-most slots are
 * read twice in the same batch, and each frame's code and link must agree; the top pointer is read
 * before, between and behind the copies, and each further batch reads the frame at its joint again.
 * What disagrees is torn, and read again.
 *
 * Parts. A sampler that may not read again, for the next stack would be another sample's, and more often one of a long
 * function, takes what there is (walk_common.c): both copies are followed, each from its own top. Where they are the
 * same, all of it is consistent; else the part from the root that is.
 *
 * Memory. struct walk lies on a catcher's stack: it and its callers' frames stay below 50 KiB, of which
 * a small stack touches little.
 *
 * Positions. A frame that has not begun shows as such up to 3.12; from 3.13 on its instruction is
 * the first one.
 *
 * Files: walk.c (one sample: attempts, marks), walk_thread.c (tid to thread state), walk_hold.c
 * (what is held: windows and slots), walk_common.c (what two copies have in common), walk_fetch.c
 * (what was not predicted), walk_frames.c (the chain), walk_code.c (code objects' fingerprints),
 * fingerprint.c, walk_task.c (asyncio's task).
 */
#ifndef RUNTIME_PYTHON_WALK_H
#define RUNTIME_PYTHON_WALK_H

#include "runtime/python/private.h"

enum {
    WALK_BATCHES_MAX = 128,  /* of one sample; 3000 frames in chunks read twice take 80 */
    WALK_RETRIES_MAX = 4,
    WALK_PIECES_MAX = 168,
    WALK_SLOTS_MAX = 144,    /* frames outside the window, held at a time */
    WALK_ARENA = 40960,
    WALK_NEAR_MAX = 2048,    /* bytes; what is nearer together is read in one piece: a piece costs
                              * as much as some kilobytes */
    WALK_THREAD_MAX = 512,   /* bytes read of a thread's state */
    WALK_FRAME_MAX = 160,    /* bytes read of a frame */
    WALK_CODE_MAX = 256,     /* bytes read of a code object */
    WALK_RECENT = 16,
    WALK_FOLLOWERS = 48,     /* of the last stack that are read with a frame they followed */
    WALK_LINKED = 12,        /* slots that a batch reads twice */
    WALK_SLOTS_LEAST = 3072, /* bytes for slots, beside a window */
    WALK_CHUNK_MAX = 1 << 30, /* bytes of a chunk of the data stack */
    WALK_TASK_NAME = 144,    /* bytes read of the object that names a task */
    WALK_CHUNK_START = 64,   /* a frame nearer than that to its chunk's start is the first there */

    PLAN_OUTSIDE = 144,      /* addresses of frames outside the window */
    PLAN_EXTRAS = 12,        /* of them, at most, that were not in the last stack */
    PLAN_WAYS = 5,
    PLAN_SETS = 16,
    PLAN_LEAVES = 2,         /* code objects nearest to the leaf: read again in every sample */
    PLAN_ROUND = 2,          /* others, in turn */
};

/* A code object that was read. */
struct plan_code {
    uint64_t code;           /* 0: free */
    uint64_t check;
    uint64_t copy;           /* this thread's copy of its bytecode; 0: not known */
    uint32_t units;          /* length of its bytecode; 0: not known */
    uint16_t used, checked;  /* in which sample it was met; read */
};

/* For a thread's state, where it took too long for one sample. */
struct plan_search {
    uint64_t interp, thread; /* where it goes on; 0: none is unfinished */
    uint64_t found;          /* the best until now */
    uint32_t count;          /* of structures checked */
};

struct python_plan {
    uint64_t thread;         /* its PyThreadState; 0: to be found */
    uint64_t interp;
    uint64_t pthread;        /* thread_id, up to 3.10 */
    uint64_t gil;            /* address of the GIL's state, 3.12 */
    uint64_t head;           /* first interpreter, when the thread was found or missed */
    uint64_t threads;        /* first thread of its interpreter when it was found, of the main one
                              * when it was missed */
    struct plan_search search;
    uint64_t cframe, chunk, top;
    uint64_t task, task_name; /* asyncio's, and the object that names it; 0: none */
    uint32_t number;         /* of its interpreter */
    uint64_t generation;     /* of code objects */
    uint32_t tlbc_generation;
    uint32_t sample;         /* a count */
    uint32_t missed;         /* samples for which the thread is still taken to be unknown */
    uint32_t calm;           /* samples since code objects were destroyed */
    uint32_t churn;          /* samples for which no fingerprint of another sample is trusted */
    uint32_t short_lived;    /* samples for which new code of a module, a class or exec is new */
    uint32_t settled;        /* samples until another interpreter's state is looked for */
    uint16_t outside_count;  /* in all */
    uint16_t chain_count;    /* of the last stack: they come first */
    uint8_t several;         /* there is more than one interpreter */
    uint8_t turn;            /* of code objects to be read again */
    uint8_t leaves[PLAN_LEAVES]; /* index + 1 */
    uint8_t order[PLAN_OUTSIDE]; /* of the following, by address */
    uint64_t outside[PLAN_OUTSIDE];
    struct plan_code codes[PLAN_SETS * PLAN_WAYS];
};
_Static_assert(sizeof(struct python_plan) <= RUNTIME_PLAN_MAX, "a plan is larger than promised");

enum walk_word {
    WORD_HEAD,               /* first interpreter */
    WORD_CURRENT,            /* the GIL's holder, up to 3.11 */
    WORD_FINALIZING,
    WORD_THREADS,            /* first thread of its interpreter */
    WORD_COLLECTING,
    WORD_GENERATION,
    WORD_TLBC_GENERATION,
    WORD_GIL,                /* 3.12 */
    WORD_GIL_HOLDER,
    WORD_GIL_LOCKED,
    WORD_TID,                /* in libc's thread structure */
    WORD_TOP,                /* the top frame, where a _PyCFrame has it … */
    WORD_TOP_BETWEEN,        /* … the top frame, read between the two copies … */
    WORD_TOP_LAST,           /* … like the first, behind them */
    WORD_CFRAME_LAST,        /* the thread's state's own pointer, read last */
    WORD_SIZE,               /* of a chunk */
    WORD_TASK,               /* asyncio's, that the thread runs */
    WORD_TASK_NAME,          /* in it */
    WORD_COUNT,
};

/* What is read of a frame: its fields, and of its second copy code and link. */
struct walk_view {
    uint32_t first, bytes, link_first, link_bytes;
};

/* Code objects asked for in the batch in hand. */
struct walk_heads {
    uint32_t count, bytes, piece;
    uint64_t code[PLAN_LEAVES + PLAN_ROUND];
};

/* How the arena is divided: heads, words that are read together, slots, window (of one copy). */
struct walk_room {
    uint32_t used, slots_at, slots_limit, window_at, window_room;
};

/* Frames outside the window. */
struct walk_slots {
    uint32_t count, hint;          /* how many; the one expected next */
    uint32_t first, asked;         /* of the batch in hand */
    const uint8_t *order;
    uint64_t address[WALK_SLOTS_MAX]; /* 0: nothing */
    uint16_t at[WALK_SLOTS_MAX], link[WALK_SLOTS_MAX]; /* in the arena; 0: no second copy */
    uint8_t piece[WALK_SLOTS_MAX];
};

/* The part of the data stack that is held. */
struct walk_window {
    uint64_t address;
    uint32_t bytes;        /* that are valid; 0: none */
    uint32_t piece, again; /* index + 1 in the batch in hand */
};

struct walk_chain {
    uint64_t leaf, base;           /* where it begins and, from 3.15 on, ends */
    uint64_t chunk, limit, older;  /* the chunk in which it runs */
    uint64_t lower;                /* the last frame met there */
    uint64_t joint, joint_code, joint_previous; /* the last frame met */
    uint32_t misses;
    uint64_t recent[WALK_RECENT];  /* frames met outside, round and round */
    uint32_t recents;
};

struct walk_outside {
    uint32_t count;
    uint64_t at[PLAN_OUTSIDE]; /* as met */
};

/* With `twice`: what both copies have in common is enough, and it was less than all. */
struct walk_part {
    bool wanted, is;
};

/* asyncio's. */
struct walk_tasks {
    uint32_t at, name_at; /* in a thread's state, in a task; 0: not known */
    uint32_t piece, got;  /* index + 1 in the batch in hand; bytes that came */
    unsigned char name[WALK_TASK_NAME];
};

struct walk {
    const struct python *python;
    const struct python_layout *layout;
    struct python_plan *plan;
    struct memory_batch *memory;
    struct runtime_stack *out;
    uint32_t tid;
    bool twice;
    struct walk_part part;
    bool unreadable;         /* the process cannot be read any more */
    uint32_t batches;
    uint32_t pieces;         /* of the batch in hand */
    struct walk_view view;
    struct walk_heads head;
    struct walk_room room;
    uint8_t fetch_order[WALK_FOLLOWERS]; /* of what a further batch asks for */
    bool deep;               /* a chain of heap objects is searched for in windows */
    struct walk_window window;
    struct walk_chain chain;
    uint32_t emitted;
    struct runtime_frame *last;
    uint32_t copy_missing;   /* the thread's copy of some bytecode is not known: its index */
    uint32_t near[3];        /* pieces of words that are read together; index + 1 */
    uint64_t word[WORD_COUNT];
    struct walk_outside outside;
    struct walk_slots slots;
    struct walk_tasks task;
    struct memory_piece piece[WALK_PIECES_MAX];
    unsigned char thread[WALK_THREAD_MAX];
    unsigned char arena[WALK_ARENA];
};
_Static_assert(sizeof(struct walk) <= 49 * 1024, "a walk takes too much of a catcher's stack");

static inline bool on_heap(const struct walk *w)
{
    return w->layout->frames == PYTHON_FRAMES_HEAP;
}

/* ---- what is held (walk_hold.c) ---- */

/* Adds a piece to the batch in hand; its index + 1, 0 when there is no room or no such address. */
uint32_t walk_ask(struct walk *w, uint64_t address, void *out, uint32_t len);
void walk_ask_word(struct walk *w, enum walk_word word, uint64_t address, uint32_t len);
/* Reads the batch in hand; false when there is no reading any more, or batches are used up. */
bool walk_read(struct walk *w);

/* Divides the arena, of which `used` is taken, for a new attempt. */
void walk_divide(struct walk *w);
/* Asks for the predicted window and slots; for their second copies; takes what came. */
void walk_ask_frames(struct walk *w);
void walk_ask_frames_again(struct walk *w);
void walk_take_frames(struct walk *w);

/* A frame's bytes from its first field on, and its second copy's link when there is one. */
struct walk_bytes {
    const unsigned char *at;
    const unsigned char *link;
    bool outside;
};
bool walk_held(struct walk *w, uint64_t address, struct walk_bytes *out);

/* The parts of these, for further batches. A new window gets what the slots do not need. */
void walk_drop_slots(struct walk *w);
void walk_grow_window(struct walk *w);
unsigned char *walk_window_copy(struct walk *w, uint32_t copy);
void walk_ask_window(struct walk *w, uint64_t start, uint64_t limit);
void walk_ask_stack(struct walk *w, uint64_t chunk, uint64_t limit);
void walk_ask_slots(struct walk *w, const uint64_t *addresses, const uint8_t *order,
                    uint32_t count);
void walk_sort(const uint64_t *addresses, uint32_t count, uint8_t *order);

/* Where the part of the chain begins that both copies of the frames have in common, from the root on; 0: nothing.
 * False: not all that it takes is held. */
bool walk_common(struct walk *w, uint64_t *out);

/* ---- the rest ---- */

/* Reads a frame and what probably comes next; false when the stack in hand is torn. */
bool walk_fetch(struct walk *w, uint64_t address);

/* Finds the thread and learns where its stack is: COMPLETE when found. */
enum runtime_end walk_find_thread(struct walk *w);
/* For a thread whose state runs nothing: has it a newer one? New ones are first in the list. */
void walk_find_newer(struct walk *w);
/* Is the state in `thread` still that of the plan's thread? WORD_TID belongs to it. */
bool walk_is_thread(const struct walk *w);
/* Of several states that one thread has, the one that runs. */
bool walk_is_active(const struct walk *w, uint64_t address, const unsigned char *state);

/* The chain of frames into `out`. */
enum runtime_end walk_frames(struct walk *w);
void walk_remember_outside(struct walk *w);

/* Code objects. Once a sample; how many heads the first batch should ask for; asking; what came. */
void walk_begin_codes(struct walk *w);
uint32_t walk_heads(const struct walk *w);
/* After the words came: drops what destroyed code objects have made doubtful. */
void walk_take_generation(struct walk *w);
void walk_ask_heads(struct walk *w);
void walk_take_heads(struct walk *w);
/* What is known of a code object, and can be relied upon; null when it is to be read. */
struct plan_code *walk_code(struct walk *w, uint64_t code);
/* Fingerprints of the frames that have none yet. False when one of them is of no code object. */
bool walk_check_codes(struct walk *w);

/* The task that the thread runs. Once a sample; asking, as the first batch's last; what came; then its
 * name into `out`, by two further batches when it was not the plan's. */
void walk_begin_task(struct walk *w);
void walk_ask_task(struct walk *w);
void walk_take_task(struct walk *w);
void walk_name_task(struct walk *w);

#endif
