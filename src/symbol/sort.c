/*
 * Sorts a function table by address, in place: an "American flag" radix sort on the bytes of
 * `start` (P. McIlroy, K. Bostic, M. D. McIlroy, "Engineering Radix Sort", Computing Systems 6(1),
 * 1993). musl's qsort takes four times as long for the 185,000 symbols of a large program, and a
 * sort that copies would double the memory.
 */
#include "symbol/private.h"

#include <stdlib.h>

enum {
    FEW = 24, /* fewer are sorted by insertion */
    TOP_SHIFT = 24,
    DIGITS = 256,
};

static void sort_few(struct symbol *at, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        struct symbol moved = at[i];
        size_t to = i;
        for (; to > 0 && symbols_compare(&at[to - 1], &moved) > 0; to--) {
            at[to] = at[to - 1];
        }
        at[to] = moved;
    }
}

static unsigned digit_of(const struct symbol *symbol, int shift)
{
    return symbol->start >> shift & (DIGITS - 1);
}

/* Brings each symbol into the bucket of its digit; end[d] becomes where bucket d ends. */
static void distribute(struct symbol *at, size_t len, int shift, size_t end[static DIGITS])
{
    size_t next[DIGITS], count[DIGITS] = {0};
    for (size_t i = 0; i < len; i++) {
        count[digit_of(&at[i], shift)]++;
    }
    for (size_t d = 0, sum = 0; d < DIGITS; d++) {
        next[d] = sum;
        end[d] = sum += count[d];
    }
    for (size_t d = 0; d < DIGITS; d++) {
        while (next[d] < end[d]) {
            struct symbol symbol = at[next[d]];
            unsigned to = digit_of(&symbol, shift);
            at[next[d]] = at[next[to]];
            at[next[to]++] = symbol;
        }
    }
}

static void sort_from(struct symbol *at, size_t len, int shift)
{
    size_t end[DIGITS];
    if (len <= FEW) {
        sort_few(at, len);
        return;
    }
    if (shift < 0) { /* one address only */
        qsort(at, len, sizeof *at, symbols_compare);
        return;
    }
    distribute(at, len, shift, end);
    for (size_t d = 0, start = 0; d < DIGITS; start = end[d++]) {
        sort_from(at + start, end[d] - start, shift - 8);
    }
}

/* Where addresses rise already, as the kernel's do but for modules, only those of one address are
 * left to sort. False, with nothing lost, where they do not. */
static bool sort_risen(struct symbol *at, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        if (at[i].start < at[i - 1].start) {
            return false;
        }
    }
    for (size_t first = 0, i = 1; i <= len; i++) {
        if (i == len || at[i].start != at[first].start) {
            sort_from(at + first, i - first, -1);
            first = i;
        }
    }
    return true;
}

void symbols_sort(struct symbol *at, size_t len)
{
    if (!sort_risen(at, len)) {
        sort_from(at, len, TOP_SHIFT);
    }
}
