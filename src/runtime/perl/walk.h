/*
 * walk: what the files that walk a thread's contexts share.
 *
 * Concept. One batch asks for all that the plan predicts: the interpreter's words, each array of contexts with its
 * stackinfo. The walk then runs over the contexts from the leaf to the root, and asks for the CVs and cops that they
 * point to in further batches. If the prediction was wrong the stackinfos are followed one by one, and the batch is
 * read again.
 *
 * Consistency. When nobody proves that the thread stands still all is read twice in the batch, the words before,
 * between and behind. From the root on both copies agree up to some context, because contexts only change at the leaf's
 * end: what is below stands. If all agree the stack is whole; else that part is kept (RUNTIME_FRAME_PART), or the stack
 * is torn. Contexts that had no room in the batch are read between two copies of the last one met.
 *
 * The place of the leaf is read beside the interpreter's pad, the variables of the sub that runs: only where the pad is
 * the same before, between and behind is the place one of that sub, and not of one that came and went meanwhile.
 *
 * The index of the newest context is raised before the context is filled in. Of a thread that stands in the function
 * that does it, the newest one counts only if the interpreter's pad is its function's (walk_push.c).
 *
 * Memory. struct walk lies on a catcher's stack.
 *
 * Files: walk.c (one sample: attempts), walk_read.c (what is held), walk_frames.c (frames), walk_push.c (the newest
 * context), walk_places.c (functions and places).
 */
#ifndef RUNTIME_PERL_WALK_H
#define RUNTIME_PERL_WALK_H

#include "runtime/perl/private.h"

enum {
    WALK_CONTEXTS = 160,   /* held at a time */
    WALK_INFOS = 64,       /* arrays of contexts */
    WALK_PIECES = 272,
    WALK_GROUP = 40,       /* frames whose CVs and cops are read at once */
    WALK_BATCHES_MAX = 160, /* of one sample */
    WALK_RETRIES_MAX = 4,
    WALK_FAILED_MAX = 192, /* pieces of one sample that cannot be read: each is a system call more */
    WALK_FUNCTIONS = 64,

    /* Of frames, until their functions and places are read: `check` is the cop where it stands (0: not known), `code`
     * a CV; the cop that called an eval; enum perl_kind. */
    WALK_SUB = 1 << 30, WALK_EVAL = 1 << 29, WALK_FILE = 1 << 28,
    WALK_TEXT = 1 << 27,   /* of an eval: of a text, whose lines are not its file's */
    WALK_NAMED = 1 << 26,  /* `code` is where a file's name stands, which has no fingerprint yet */
};

struct plan_info {
    uint64_t at, contexts, prev;
    int32_t index, max, type;
};

struct perl_plan {
    struct perl_thread thread; /* of the module threads */
    uint32_t count;        /* 0: nothing is known */
    bool cut;              /* there are more towards the root */
    struct plan_info info[WALK_INFOS]; /* of the last sample, the leaf's first */
    struct {
        uint64_t cv, body;
    } function[WALK_FUNCTIONS]; /* where CVs have their bodies */
};
_Static_assert(sizeof(struct perl_plan) <= RUNTIME_PLAN_MAX, "a plan is larger than promised");

/* Contexts [first, limit) of one array, in the pool at `offset` contexts. */
struct walk_array {
    uint32_t piece[2], info_piece[2];
    int32_t first, limit;
    uint32_t offset;
    unsigned char info[2][PERL_INFO_BYTES];
};

struct walk_words {
    uint64_t cop, info, pad;
    uint32_t cop_piece, info_piece;
};

struct walk {
    const struct perl *perl;
    const struct perl_layout *layout;
    struct perl_interpreter interpreter; /* the thread's */
    struct perl_plan *plan;
    struct memory_batch *memory;
    struct runtime_stack *out;
    const struct runtime_registers *registers;
    bool twice, takes_parts, is_part, unreadable;
    bool short_lived;      /* code was met that is freed once it has run */
    uint32_t batches, pieces, failed;
    struct walk_words words[3];
    uint64_t own_interpreter, own_tid; /* of a thread of the module threads, as they stand */
    uint32_t top;          /* the array with the context that the walk begins with, */
    int32_t index;         /* and its number */
    uint64_t cop;          /* where the next frame towards the root stands; 0: not known */
    uint32_t met;          /* the context that was met last: its array, */
    int32_t met_index;     /* and number */
    uint32_t emitted;      /* frames */
    struct runtime_frame *last; /* of them; null: there is none yet */
    struct walk_array array[WALK_INFOS];
    _Alignas(8) unsigned char pool[2][WALK_CONTEXTS * PERL_CONTEXT_BYTES];
    struct memory_piece piece[WALK_PIECES];
};
_Static_assert(sizeof(struct walk) <= 49 * 1024, "a walk takes too much of a catcher's stack");

/* ---- walk_read.c ---- */

/* Adds a piece to the batch in hand; its number + 1, 0 when there is no room or no such address. */
uint32_t calls_ask(struct walk *w, uint64_t address, void *out, uint32_t len);
/* Reads the batch in hand; false when nothing can be read any more. */
bool calls_read(struct walk *w);
bool calls_got(const struct walk *w, uint32_t piece);

/* The first batch; false: nothing can be read. */
bool calls_read_first(struct walk *w);
/* The plan's stackinfos as they were read; those that are none any more get the address 0. */
void calls_remember(struct walk *w);
/* Is this stackinfo, as one copy has it, where and what the plan says? */
bool calls_is_as_planned(const struct walk *w, uint32_t number, int copy);
/* Is it the interpreter of this thread, still? */
bool calls_is_own(const struct walk *w);
/* Follows the stackinfos from `at` on, but for those that the plan remembers: it is right then. */
enum runtime_end calls_learn(struct walk *w, uint64_t at);
/* Do two copies of a context tell the same frame? */
bool calls_is_same(const struct walk *w, const unsigned char *a, const unsigned char *b);
/* A context of the first copy; null: it is not held, and cannot be had, or did not stand. */
const unsigned char *calls_context(struct walk *w, uint32_t array, int32_t index);

/* ---- walk_frames.c ---- */

/* What both copies have in common: sets where the walk begins, and whether that is a part. False: nothing. */
bool calls_begin(struct walk *w);
enum runtime_end calls_frames(struct walk *w);

/* ---- walk_places.c: reads the functions and places of the frames that were met. ---- */

enum runtime_end calls_places(struct walk *w);
/* Where the plan has the body of a CV; 0: not known. */
uint64_t *calls_body(struct walk *w, uint64_t cv);

/* ---- walk_push.c ---- */

/* Is the newest context, of the first array, one that is only just being filled in? */
bool calls_is_unfilled(struct walk *w, const unsigned char *context);

#endif
