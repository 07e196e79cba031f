/*
 * nearest: which of the known words was meant.
 *
 * Feed every known word to nearest_offer, then ask for the proposals. A word qualifies when its
 * edit distance (insert, delete, replace, swap of neighbours: 1 each) is at most a third of the
 * length of what was typed, and at least one edit is forgiven; or, when none does, when the typed
 * word of three letters or more is how it begins. Only the best distance is kept, at most two words
 * of it.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

enum { NEAREST_MAX = 2, NEAREST_WORD_MAX = 63 };

struct nearest {
    const char *typed;
    size_t typed_len;
    size_t distance; /* of the proposals */
    size_t count;
    char word[NEAREST_MAX][NEAREST_WORD_MAX + 1];
};

/* `typed` is borrowed, `len` bytes of it count. */
struct nearest nearest_to(const char *typed, size_t len);

void nearest_offer(struct nearest *n, const char *word);

/* Number of single edits that turn a into b; words are cut at NEAREST_WORD_MAX bytes. */
size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
