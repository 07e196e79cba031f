#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool vec_grow(void **at, size_t len, size_t *cap, size_t size)
{
    if (len == *cap) {
        size_t wanted = *cap == 0 ? 8 : *cap + *cap / 2;
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
