#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Optimal string alignment: three rows of the matrix are enough for swaps. */
size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned char rows[3][NEAREST_WORD_MAX + 1];
    unsigned char *before = rows[0], *last = rows[1], *row = rows[2];
    a_len = a_len < NEAREST_WORD_MAX ? a_len : NEAREST_WORD_MAX;
    b_len = b_len < NEAREST_WORD_MAX ? b_len : NEAREST_WORD_MAX;
    for (size_t j = 0; j <= b_len; j++)
        last[j] = (unsigned char)j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t d = min3(last[j] + 1u, row[j - 1] + 1u, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1u < d)
                d = before[j - 2] + 1u;
            row[j] = (unsigned char)d;
        }
        unsigned char *reuse = before;
        before = last;
        last = row;
        row = reuse;
    }
    return last[b_len];
}

struct nearest nearest_to(const char *typed, size_t len)
{
    return (struct nearest){.typed = typed, .typed_len = len, .distance = (size_t)-1};
}

/* What begins with the typed word ranks after every true edit. */
static size_t rank(const struct nearest *n, const char *word, size_t len)
{
    size_t allowed = n->typed_len / 3 > 1 ? n->typed_len / 3 : 1;
    size_t distance = edit_distance(n->typed, n->typed_len, word, len);
    if (distance <= allowed && distance < n->typed_len)
        return distance;
    bool begins = n->typed_len >= 3 && n->typed_len < len &&
                  memcmp(n->typed, word, n->typed_len) == 0;
    return begins ? NEAREST_WORD_MAX + 1 : (size_t)-1;
}

void nearest_offer(struct nearest *n, const char *word)
{
    size_t distance = rank(n, word, strlen(word));
    if (distance == (size_t)-1 || distance > n->distance)
        return;
    if (distance < n->distance)
        n->count = 0;
    n->distance = distance;
    if (n->count < NEAREST_MAX)
        snprintf(n->word[n->count++], sizeof n->word[0], "%s", word);
}
