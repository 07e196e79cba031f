/*
 * walk: what the files that walk a thread's frames share.
 *
 * Concept. One batch asks for all that the plan predicts: the root (which frame runs, where its page is), the part of
 * the page that ends behind that frame ("window"), those frames that lay elsewhere last time ("lone": generators'), and
 * the functions of the last stack. The walk then follows the frames' list over these bytes. What was not predicted is
 * fetched by further batches: older parts of the stack, other lone frames, functions not met last time.
 *
 * Consistency. When nobody proves that the thread stands still, window and lone frames are read twice in the batch, and
 * the root before, between and behind. Frames come and go at the leaf's end of the list only, so from the root on the
 * lists of both copies agree up to some frame: those below it stood all the time. If it is the leaf all is consistent;
 * else the part below is (RUNTIME_FRAME_PART), or the stack is torn. An older part of the stack is read between two
 * more reads of the last frame before it: if that stands, so do those that it leads to.
 *
 * Memory. struct walk lies on a catcher's stack.
 *
 * Files: walk.c (one sample: attempts), walk_thread.c (whose globals), walk_read.c (what is held), walk_frames.c (the
 * list, what copies have in common), walk_request.c (which request is served), walk_generators.c (generators that
 * yield from others), walk_functions.c (which functions).
 */
#ifndef RUNTIME_PHP_WALK_H
#define RUNTIME_PHP_WALK_H

#include "runtime/php/private.h"

enum {
    WALK_WINDOW = 16384,     /* bytes */
    WALK_LONE = 8,           /* frames */
    WALK_HEADS = 40,         /* functions held at a time */
    WALK_LINES = 48,         /* of functions without names, at a time */
    WALK_PIECES = 2 * WALK_LINES,
    WALK_TEXT = 24 + PHP_TEXT_BYTES, /* bytes of a file's name */
    WALK_BATCHES_MAX = 120,  /* of one sample, */
    WALK_FRAME_BATCHES = 64, /* for frames: a MiB of them */
    WALK_RETRIES_MAX = 4,
    WALK_CHAIN = WALK_WINDOW / PHP_FRAME_BYTES + WALK_LONE, /* frames that are held at most */
    WALK_GENERATORS_MAX = 1024, /* met in windows: their frames are in no order */

    WALK_UNCHECKED = 1 << 30, /* of a frame, while the walk does not know its function */
    WALK_DROPPED = 1 << 29,   /* of one that is nobody's */

    /* texts of a request, and how much of each is read */
    REQUEST_TEXTS = 4, REQUEST_TEXT_BYTES = 128,

    PLAN_HEADS = 24,
    PLAN_OUTER = 32, /* generators that yield from others, of one chain */
    SHORT_LIVED = 64,        /* samples */
    PASSING = 4,             /* after a function of a request was met that is freed with it */
};

struct php_plan {
    uint64_t page, page_limit, current, top; /* of the last sample */
    uint64_t lone[WALK_LONE];
    uint64_t head[PLAN_HEADS];  /* functions */
    uint64_t outer[PLAN_OUTER]; /* generators */
    uint64_t request[REQUEST_TEXTS]; /* texts */
    uint64_t entry, pthread, root; /* of builds for threads: where this thread's are; entry 0: not known */
    uint32_t lone_count, head_count, outer_count;
    uint32_t resume, missed;    /* of a search for it: the slot to go on at; samples until the next one */
    uint32_t short_lived;       /* samples for which functions are taken to be freed soon */
};
_Static_assert(sizeof(struct php_plan) <= RUNTIME_PLAN_MAX, "a plan is larger than promised");

struct walk_lone {
    uint64_t address;
    uint32_t piece[2]; /* of the batch in hand */
    bool is_there[2], was_met;
    unsigned char bytes[2][PHP_FRAME_BYTES];
};

struct walk_head {
    uint64_t address;
    uint32_t piece;
    bool is_there;
    struct php_function function;
    unsigned char bytes[PHP_FUNCTION_BYTES];
};

/* Where the line of such a frame stands, and its file's name. */
struct walk_line {
    uint64_t address, text;
    uint32_t frame, piece, text_piece, line, slot;
};
_Static_assert(WALK_LINES * WALK_TEXT <= WALK_WINDOW, "no room for names of files");

/* A thread's entry, and what its pthread has for its number. */
struct walk_entry {
    unsigned char bytes[ENTRY_BYTES];
    uint32_t tid, piece, tid_piece;
};

/* What the thread serves. */
struct walk_request {
    uint64_t at;             /* 0: nothing is told */
    uint32_t piece, text_piece[REQUEST_TEXTS];
    uint32_t got[REQUEST_TEXTS]; /* bytes of texts */
    unsigned char bytes[PHP_REQUEST_BYTES];
    char text[REQUEST_TEXTS][REQUEST_TEXT_BYTES];
};

/* A part of the stack: [low, limit). */
struct walk_window {
    uint64_t low, limit;
    uint64_t above;     /* of the last frame met in it: those that are no generators' lie below */
    uint32_t copy;      /* the last one that is held */
    uint32_t piece[2];  /* of the batch in hand */
    bool is_there[2];
    _Alignas(8) unsigned char bytes[2][WALK_WINDOW];
};

/* The frame met last, read again before and behind a further part. */
struct walk_joint {
    uint64_t address;
    unsigned char kept[PHP_FRAME_BYTES], before[PHP_FRAME_BYTES], behind[PHP_FRAME_BYTES];
    uint32_t first, last;  /* pieces */
    bool is_leaf;
    bool was_held;         /* the frame that is being met */
    bool may_be_alone;     /* what it leads to, if that is not held */
};

struct walk {
    const struct php *php;
    struct php_plan *plan;
    struct memory_batch *memory;
    struct runtime_stack *out;
    bool twice, takes_parts, is_part;
    bool unreadable;         /* the process cannot be read any more */
    const struct runtime_registers *registers;
    uint64_t leaf;           /* the frame of the first one in `out` */
    uint32_t generators;     /* met in windows */
    uint32_t batches, pieces;
    uint32_t tid;
    struct walk_entry entry; /* of builds for threads */
    struct walk_request request;
    uint32_t lone_count, head_count, line_count;
    uint32_t met_count;      /* frames, also those that are left out */
    uint64_t root_at;        /* what is read to: */
    unsigned char root[PHP_ROOT_BYTES];
    uint64_t between, last;  /* the frame that runs, read again */
    struct walk_lone lone[WALK_LONE];
    struct walk_head head[WALK_HEADS];
    struct walk_line line[WALK_LINES];
    struct walk_window window;
    struct memory_piece piece[WALK_PIECES];
};
_Static_assert(sizeof(struct walk) <= 49 * 1024, "a walk takes too much of a catcher's stack");

/* ---- walk_thread.c: where the thread's globals are, by the plan or by a search. False: nowhere. */
bool php_stack_find_thread(struct walk *w);
/* With the first batch: is it still its entry? */
void php_stack_ask_thread(struct walk *w);
bool php_stack_is_thread(const struct walk *w);

/* ---- walk_request.c: asks with the first batch; false: its texts are elsewhere, and the plan is right now. Then tells
 * them in `out`. */
void php_stack_ask_request(struct walk *w);
bool php_stack_has_request(struct walk *w);
void php_stack_tell_request(struct walk *w);

/* ---- walk_read.c: adds a piece to the batch in hand; its number + 1, 0 when there is no room or no such address. */
uint32_t php_stack_ask(struct walk *w, uint64_t address, void *out, uint32_t len);
/* Reads the batch in hand; false when nothing can be read any more. */
bool php_stack_read(struct walk *w);
bool php_stack_got(const struct walk *w, uint32_t piece);

/* A frame that is held, of one copy; null: it is not. Of those that lie elsewhere; of all. */
struct walk_lone *php_stack_lone(struct walk *w, unsigned copy, uint64_t address);
const unsigned char *php_stack_frame(struct walk *w, unsigned copy, uint64_t address);

/* ---- walk_frames.c: where what stood all the time begins; 0: nowhere. `whole`: it is all. */
uint64_t php_stack_common(struct walk *w, bool *whole);
enum runtime_end php_stack_frames(struct walk *w, uint64_t from);
/* One frame further to the root. */
void php_stack_emit(struct walk *w, uint64_t address, const unsigned char *frame);
/* Behind the last one some are left out. */
void php_stack_cut(struct walk *w);
/* Asks for it again; then, with what was asked for: does it stand, and what it leads to? */
void php_stack_ask_joint(struct walk *w, struct walk_joint *j, bool behind);
bool php_stack_stands(struct walk *w, struct walk_joint *j);

/* ---- walk_generators.c: emits those that the one of the frame met last is asked by, the outermost last. False: torn,
 * or unreadable. */
bool php_stack_outer(struct walk *w, struct walk_joint *j, uint64_t outermost);

/* ---- walk_functions.c: with the first batch; then for all frames of the stack. */
void php_stack_ask_functions(struct walk *w);
void php_stack_take_functions(struct walk *w);
enum runtime_end php_stack_functions(struct walk *w);

#endif
