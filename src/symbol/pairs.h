/*
 * pairs: many names in little memory.
 *
 * Pairs of letters that are frequent in the names of functions take one byte: the 64,000 function
 * names of a kernel take 14 bytes each, with the byte that ends them, instead of 23. It costs a
 * look-up per letter. (A dictionary of words would be no smaller and take three times as long.)
 *
 * Bytes 0x80 to 0xff stand for a pair, 0 ends a name, 1 stands before a byte that is none of this.
 * So any name can be kept.
 *
 * pairs_begin; pairs_add …; pairs_finish. A name is found again by the place that pairs_add gave it.
 */
#ifndef SYMBOL_PAIRS_H
#define SYMBOL_PAIRS_H

#include "base/str.h"

enum { PAIRS_LETTERS = 128 };

struct pairs {
    struct buf bytes;
};

/* What stands for two letters; needed only while names are added. */
struct pairs_code {
    unsigned char of[PAIRS_LETTERS][PAIRS_LETTERS]; /* 0: nothing does */
};

void pairs_init(struct pairs *p, size_t max_bytes);
void pairs_release(struct pairs *p);
size_t pairs_bytes(const struct pairs *p);

void pairs_begin(struct pairs_code *code);

/* Keeps a name. False beyond max_bytes, or when memory ends. */
bool pairs_add(struct pairs *p, const struct pairs_code *code, struct str name, uint32_t *place);

/* Gives back what was not used. */
void pairs_finish(struct pairs *p);

/* Appends the name at `place`. */
void pairs_get(const struct pairs *p, uint32_t place, struct buf *out);

#endif
