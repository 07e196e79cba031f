/*
 * walk: what the files of the walker share. unwind.c steps from frame to frame, lookup.c finds the
 * rule of a frame, stack.c reads the stack above the copy, chain.c follows what the kernel found.
 */
#ifndef UNWIND_WALK_H
#define UNWIND_WALK_H

#include "unwind/arch.h"
#include "unwind/unwind.h"

enum {
    SLOT_BITS = 12,
    SLOTS = 1 << SLOT_BITS,
    CHUNK_BYTES = 4096,   /* of memory beyond the copy: a page is there as a whole or not */
    WORD = 8,
    BELOW_SP = 2 * WORD,  /* where Go on AArch64 keeps the caller's frame pointer */
};

/* How to step from a frame. */
struct method {
    struct unwind_rule rule;
    uint8_t flags; /* of the frame that it leads to */
    bool keeps_fp; /* the code keeps frame pointers: no table, or unwind_place.frame_pointers */
    bool is_go;    /* and links them across stacks */
};

enum call_state { CALL_UNKNOWN, CALL_YES, CALL_NO };

/* A line of the processor's cache. */
struct unwind_slot {
    uint64_t space, address; /* the key; space 0: empty */
    uint64_t bias, image;
    struct method method;
    uint8_t call; /* enum call_state: is the address within a call? */
};

_Static_assert(sizeof(struct unwind_slot) <= 64, "a slot is a line of the cache");

/* One stack's walk: the frame's registers and how to read memory. */
struct walk {
    struct unwinder *u;
    const struct unwind_space *space;
    const struct unwind_stack *stack;
    uint64_t address;        /* for look-up */
    uint64_t sp, fp;
    bool sp_known, fp_known; /* sp is a lower bound when it is not known */
    bool exact;              /* the sample's or a signal's frame: address is the instruction's */
    bool continued;          /* this step read beyond the copy */
    bool borrowed;           /* this step used a register that no rule has followed, */
    uint8_t borrowed_reg;    /* this one, */
    bool recovered;          /* whose value has since been found: */
    uint64_t recovered_value;
    bool switched;           /* the memory may be another stack's than the copy */
    bool at_start;           /* a rule said that nobody called this frame */
    bool verified, differs;  /* the copy was compared with the memory; it is not the same */
    unsigned scans;
    uint32_t questions, asked; /* so far; about this frame, 0: none */
    enum stack_end why;      /* after a step that failed: how the stack ends */
    size_t chained;          /* in the kernel's chain: of the next caller; 0: the chain is not followed */
    uint64_t last_ra;        /* where the last return address of the copy stands; 0: none yet */
    const struct unwind_registers *full; /* of the last exact frame */
    struct unwind_registers interrupted; /* which is this one outside a signal frame */
    uint64_t chunk_address;              /* of chunk; 1: empty */
    unsigned char chunk[CHUNK_BYTES];
};

/* OpenSSL keeps the CFA of some loops below SP, where the kernel copies nothing and what is read later
 * is of another iteration of the loop; or at a place that a register counts. */
static inline bool rule_is_somewhere(const struct unwind_rule *rule)
{
    return rule->kind == RULE_DEREF && rule->cfa_reg == arch_cfi.sp && rule->cfa < 0;
}

/* stack.c: a word that is not in the copy. When it fails, w->why says what that means. */
bool stack_load_beyond(struct walk *w, uint64_t address, uint64_t *out);

static inline bool stack_is_copied(const struct walk *w, uint64_t address)
{
    return w->stack->len >= WORD && address - w->stack->base <= w->stack->len - WORD;
}

static inline bool stack_load(struct walk *w, uint64_t address, uint64_t *out)
{
    if (stack_is_copied(w, address)) {
        memcpy(out, w->stack->copy + (address - w->stack->base), WORD);
        return true;
    }
    return stack_load_beyond(w, address, out);
}

/* chain.c: finds the frame in the kernel's chain; false: it is not there, or its caller is not. Then each step is the
 * next of the chain; when it fails, w->why says why. */
bool chain_begin(struct walk *w);
bool chain_step(struct walk *w, const struct method *m);

/* unwind.c: moves to the caller's frame; when it fails, nothing has moved and w->why says why. */
bool walk_step(struct walk *w, const struct method *m);

/* recover.c: follows w->borrowed_reg from the last exact frame to this one. */
bool walk_recover(struct walk *w);

/* lookup.c: the method of the frame by SP alone, where its own wants the frame pointer; false: there is none. */
bool slot_by_sp(const struct walk *w, struct method *m);
/* lookup.c: nobody called the frame's function, as Go's own table has it. */
bool slot_is_outermost(const struct walk *w, const struct method *m);

/* lookup.c: fills the slot for the walk's address; null when nothing executable is mapped there. */
struct unwind_slot *slot_fill(const struct walk *w, struct unwind_slot *slot);

static inline struct unwind_slot *slot_at(const struct walk *w, uint64_t address)
{
    uint64_t hash = (address ^ w->space->id << 40) * 0x9e3779b97f4a7c15;
    return &w->u->cache[hash >> (64 - SLOT_BITS)];
}

static inline struct unwind_slot *slot_of(struct walk *w)
{
    struct unwind_slot *slot = slot_at(w, w->address);
    if (slot->address == w->address && slot->space == w->space->id) {
        w->u->counters.hits++;
        return slot;
    }
    return slot_fill(w, slot);
}

/* lookup.c: whether the slot's address looks like one within a call; true when its code is unavailable. */
bool slot_is_in_call(const struct walk *w, struct unwind_slot *slot);

#endif
