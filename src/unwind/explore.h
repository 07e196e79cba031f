/*
 * explore: follows one function through all its branches until nothing changes any more, then puts
 * its rules into the text.
 *
 * What shows on the way is marked on the text when the walk ends: which functions are called,
 * jumped to at the end or do not return, which symbols are labels within a function. A
 * contradiction that a mark explains (a call whose next instruction is reached otherwise with
 * another stack depth does not return) sets the mark at once and starts the function again.
 *
 * Call order: explorer_new; explorer_run as often as wanted; explorer_free.
 */
#ifndef UNWIND_EXPLORE_H
#define UNWIND_EXPLORE_H

#include "unwind/text.h"

enum { FUNCTION_STEPS_MAX = 1 << 18 }; /* instructions, with repetitions */

/* Why a function is thought to begin at an address. */
enum evidence {
    EVIDENCE_START, /* a symbol or a call: whatever is found is kept */
    EVIDENCE_HINT,  /* its address is taken: kept if nothing contradicts */
    EVIDENCE_JUMP,  /* none does; an indirect jump may lead here: kept if something confirms it */
    EVIDENCE_NONE,  /* only that nothing else leads here: the same */
};

struct explorer;

/* Null when memory ends. */
struct explorer *explorer_new(struct text *text);
void explorer_free(struct explorer *w);

/* Explores from offset `start`, before which `state` holds. False when nothing is kept, or memory
 * has ended. */
bool explorer_run(struct explorer *w, uint32_t start, const struct state *state,
                  enum evidence evidence);

#endif
