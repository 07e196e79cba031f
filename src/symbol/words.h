/*
 * words: many names in little memory, when they are made of words that recur.
 *
 * Each name is kept as the numbers of its words: "__x64_sys_read" is "__x64" "_sys" "_read". The
 * 64,000 function names of a kernel take 11 bytes each that way instead of 23: they have 14,000
 * words in all.
 *
 * words_add …; words_finish frees what only adding needs; words_get. A name is found again by the
 * place that words_add gave it.
 */
#ifndef SYMBOL_WORDS_H
#define SYMBOL_WORDS_H

#include "base/intern.h"
#include "base/str.h"
#include "base/vec.h"

struct words {
    struct buf text;          /* of all words, one behind the other */
    VEC(uint32_t) starts;     /* of word 0 (empty), 1, 2 … in the text; last the end */
    struct intern ids;
    struct buf names;         /* each: how many words, then their numbers as LEB128 */
    size_t max_bytes;
};

void words_init(struct words *w, size_t max_bytes);
void words_release(struct words *w);
size_t words_bytes(const struct words *w);

/* Keeps a name. False beyond max_bytes, or when memory ends. */
bool words_add(struct words *w, struct str name, uint32_t *place);
void words_finish(struct words *w);

/* Appends the name at `place`. */
void words_get(const struct words *w, uint32_t place, struct buf *out);

#endif
