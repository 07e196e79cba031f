/*
 * explore: the work list of analyse.h. Follows one function through all its branches until nothing
 * changes, then puts its rules into the text's map.
 *
 * What is found out on the way is kept as marks on the text: where calls lead, which calls never come
 * back, which addresses branches lead to. A contradiction on the way that a mark explains (a call
 * whose next instruction is reached otherwise with another stack depth does not return) sets the mark
 * and starts the function again.
 */
#ifndef UNWIND_EXPLORE_H
#define UNWIND_EXPLORE_H

#include "base/map.h"
#include "unwind/analyse.h"
#include "unwind/state.h"

enum {
    FUNCTION_STEPS_MAX = 1 << 18, /* instructions looked at for one function, with repetitions */
    GUESS_STEPS_MAX = 1 << 12,     /* of what is only assumed to be one */
    FUNCTION_RESTARTS_MAX = 64,
    TEXT_JUMPS_MAX = 4096, /* indirect jumps whose states are kept, 190 bytes each */
    RULES_MAX = 0xffff,
    FUNCTION_ALIGNMENT = 16, /* bytes; what compilers for speed use */
};

enum mark {
    MARK_TARGET = 1,     /* of a branch */
    MARK_START = 2,      /* a symbol says that a function begins here */
    MARK_CALLED = 4,     /* a call does */
    MARK_TAILED = 256,   /* a jump out of another function does, whose frame is gone by then */
    MARK_NO_RETURN = 8,  /* the function that begins here does not return */
    MARK_RELIED = 16,    /* and somebody has taken it for one that does */
    MARK_DEAD = 32,      /* the call before this address does not return */
    MARK_REFERRED = 64,  /* its address is computed somewhere */
    MARK_TRIED = 128,    /* already in the queue of functions */
    MARK_WAS_TAILED = 2048, /* the same, found by the discovery before */
    MARK_EXPLORED = 1024, /* as the start of a function */
    MARK_VOTED = 512,    /* the call before this address spoke against its callee */
};

/* A cell per byte of code: CELL_FREE, CELL_INSIDE an instruction, or the number of a rule + 2. */
enum { CELL_FREE, CELL_INSIDE, CELL_RULES };

struct indirect_jump {
    uint32_t at;    /* behind the jump */
    uint32_t state; /* number of the state there */
};

struct text {
    struct code code;
    uint16_t *marks;
    uint64_t *starts;              /* a bit per byte: MARK_START, MARK_CALLED or MARK_TAILED */
    uint16_t *cells;
    VEC(struct unwind_rule) rules; /* [0] is RULE_NONE */
    struct map rule_index;         /* hash of a rule → its number */
    uint16_t last_rule;
    VEC(uint32_t) queue;           /* starts of functions to explore */
    VEC(uint32_t) functions;       /* starts of those explored */
    VEC(struct indirect_jump) jumps; /* sorted */
    VEC(struct state) jump_states;
    uint32_t *notes;               /* per byte: see text_note_plain */
    struct walk *walk;             /* workspace of the function being explored */
    struct map callee_at;          /* of calls out of the text: offset behind it → callee */
    struct map callees;            /* outside → struct callee */
    uint64_t steps_left;
    uint64_t given_up;
    bool discovering;              /* only marks are made, nothing is put into the cells */
    bool again;                    /* a mark has changed what was explored before */
    bool failed;                   /* memory has ended */
};

/* What calls of a function outside the text, say in the procedure linkage table, have shown. */
struct callee {
    uint32_t sites; /* calls of it */
    uint32_t dead;  /* of those, behind which something else begins */
};

enum evidence {
    EVIDENCE_START, /* a symbol or a call: the rules are kept whatever is found */
    EVIDENCE_HINT,  /* its address is taken: they are kept if nothing contradicts */
    EVIDENCE_JUMP,  /* an indirect jump of this function may lead here, ... */
    EVIDENCE_NONE,  /* an assumption: the last two are kept if what follows confirms them */
};

bool text_init(struct text *text, const struct code *code, uint64_t steps);
void text_release(struct text *text);

/* Forgets what was explored. What is discovered once more loses the marks that only followed from
 * taking something for a function. */
void text_clear(struct text *text, bool discovering);

/* Explores from offset `start` with `state` and puts the rules found into the cells. False when an
 * assumption was not confirmed (nothing is put then), or memory has ended. */
bool text_explore(struct text *text, uint32_t start, const struct state *state,
                  enum evidence evidence);

/* Notes a plain instruction, so that it is not decoded again and again. Where MARK_TARGET is set the
 * note is the number of the walk's block that begins there instead, if one does. */
void text_note_plain(struct text *text, uint32_t at, const struct glance *glance);

/* The number of indirect jumps at or before `at`. */
size_t text_jumps_up_to(const struct text *text, uint32_t at);

/* Counts a call of something outside the text. */
void text_note_callee(struct text *text, uint64_t callee);

/* The first start of a function from `at` on; the text's length without one. */
uint32_t text_next_start(const struct text *text, uint32_t at);

/* Adds marks. */
void text_mark(struct text *text, uint32_t at, uint16_t marks);

/* Queues the function at an offset unless it has been. */
void text_queue(struct text *text, uint32_t start);

#endif
