/*
 * text: what is known about a range of code while analyse.h works on it.
 *
 * Marks say, per byte, what was found out: where branches and calls lead, where functions begin,
 * which calls never come back. Cells hold the result: the rule of the instruction that begins
 * there. Notes spare decoding: of an instruction that has nothing to do with the frame, its length
 * and the registers it changes.
 *
 * All offsets are from the start of the code. Memory: 8 bytes per byte of code, and what is in the
 * lists. When it ends, `failed` is set and the analysis stops.
 */
#ifndef UNWIND_TEXT_H
#define UNWIND_TEXT_H

#include "base/map.h"
#include "unwind/analyse.h"
#include "unwind/state.h"

enum {
    TEXT_JUMPS_MAX = 4096,      /* indirect jumps whose states are kept, 190 bytes each */
    TEXT_CALLEES_MAX = 1 << 16, /* calls out of the text that are evaluated; twice 24 bytes each */
    FUNCTION_REACH = 64 * 1024, /* bytes; further away is another function if nothing tells */
    FUNCTION_ALIGNMENT = 16,    /* bytes; what compilers for speed use */
};

enum mark {
    MARK_TARGET = 1 << 0,    /* of a branch */
    MARK_START = 1 << 1,     /* a symbol says that a function begins here */
    MARK_CALLED = 1 << 2,    /* a call says so */
    MARK_TAILED = 1 << 3,    /* a jump out of another function, whose frame is gone by then */
    MARK_NO_RETURN = 1 << 4, /* the function that begins here does not return */
    MARK_DEAD = 1 << 5,      /* the call before this address does not return */
    MARK_VOTED = 1 << 6,     /* and has been counted against its callee */
    MARK_REFERRED = 1 << 7,  /* some instruction computes this address */
    MARK_QUEUED = 1 << 8,
    MARK_EXPLORED = 1 << 9,  /* as a function's start */
    MARK_BEGUN = 1 << 10,    /* a walk has begun here, even if it led nowhere */
    MARK_INNER = 1 << 11,    /* a conditional branch leads here: the middle of a function */
};

enum { START_MARKS = MARK_START | MARK_CALLED | MARK_TAILED };

/* CELL_FREE, CELL_INSIDE an instruction, or the number of a rule + CELL_RULES. */
enum { CELL_FREE, CELL_INSIDE, CELL_RULES };

struct indirect_jump {
    uint32_t at;    /* after the jump */
    uint32_t state; /* number of the state there */
};

struct text {
    struct code code;
    uint16_t *marks;
    uint64_t *starts; /* a bit per byte that has one of START_MARKS */
    uint16_t *cells;
    uint32_t *notes;
    VEC(struct unwind_rule) rules; /* [0] is RULE_NONE */
    struct map rule_index;         /* hash of a rule → its number */
    uint16_t last_rule;
    VEC(uint32_t) queue;     /* starts of functions to explore */
    VEC(uint32_t) functions; /* starts of those explored */
    VEC(struct indirect_jump) jumps; /* by address */
    VEC(struct state) jump_states;
    struct map callee_at; /* of calls that leave the text: offset after it → callee */
    struct map callees;   /* address → how often it was called, and spoken against */
    uint64_t steps_left, given_up;
    bool discovering; /* marks are made, nothing is put into the cells */
    bool misled;      /* a symbol that begins no function was explored as if it did */
    bool by_sp;       /* rules are to need no frame pointer */
    bool failed;      /* memory has ended */
};

bool text_init(struct text *text, const struct code *code, uint64_t steps);
void text_release(struct text *text);

/* Forgets what was explored. A further discovery also forgets the marks that follow from taking a
 * symbol for a function. */
void text_clear(struct text *text, bool discovering);

static inline bool text_holds(const struct text *text, uint64_t address)
{
    return address - text->code.address < text->code.len;
}

void text_mark(struct text *text, uint32_t at, enum mark mark);
void text_unmark(struct text *text, uint32_t at, unsigned marks);
bool text_is_start(const struct text *text, uint32_t at);

/* The first start of a function in [at, limit); limit, or the text's length, without one. */
uint32_t text_next_start(const struct text *text, uint32_t at, uint64_t limit);

/* Queues the function at an offset unless it has been. */
void text_queue(struct text *text, uint32_t start);

/* Notes a plain instruction. Where a block can begin no such note is read: there stands the number
 * of the walk's block that does, if one does. */
void text_note_plain(struct text *text, uint32_t at, const struct survey *survey);

static inline bool text_has_note(const struct text *text, uint32_t at)
{
    return text->notes[at] != 0 && (text->marks[at] & (MARK_TARGET | MARK_BEGUN)) == 0;
}

/* Functions outside the text, say in the procedure linkage table, are evaluated by what stands after
 * the calls of them: text_note_callee counts a call, text_note_dead one that something else begins
 * after; text_callee_returns gives the verdict. */
void text_note_callee(struct text *text, uint64_t callee);
void text_note_dead(struct text *text, uint32_t after);
bool text_callee_returns(struct text *text, uint64_t callee, uint32_t after);

static inline struct unwind_rule text_rule(const struct text *text, const struct state *s)
{
    return text->by_sp ? state_rule_by_sp(s) : state_rule(s);
}

/* The number of a rule; 0, which is RULE_NONE, when there are too many. */
uint16_t text_rule_number(struct text *text, const struct unwind_rule *rule);

/* Puts the result for an instruction. Where two functions share code and do not agree it is
 * RULE_NONE. */
void text_put(struct text *text, uint32_t at, uint32_t len, uint16_t rule);

void text_add_jump(struct text *text, uint32_t after, const struct state *state);

/* The number of indirect jumps at or before `at`. */
size_t text_jumps_up_to(const struct text *text, uint32_t at);

#endif
