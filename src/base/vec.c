#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 8 }; /* a smaller one would not grow by half */

bool vec_grow(void **at, size_t len, size_t *cap, size_t size)
{
    if (len == *cap) {
        size_t wanted = *cap == 0 ? FIRST_CAP : *cap + *cap / 2;
        if (wanted > SIZE_MAX / size) {
            return false;
        }
        void *grown = realloc(*at, wanted * size);
        if (grown == NULL) {
            return false;
        }
        *at = grown;
        *cap = wanted;
    }
    memset((char *)*at + len * size, 0, size);
    return true;
}

void vec_fit(void **at, size_t len, size_t *cap, size_t size)
{
    size_t kept = len > FIRST_CAP ? len : FIRST_CAP;
    void *fitted = kept < *cap ? realloc(*at, kept * size) : NULL;
    if (fitted != NULL) {
        *at = fitted;
        *cap = kept;
    }
}
