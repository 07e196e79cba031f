#include "deliver/bisect.h"

bool bisect(size_t all, bool (*fits)(void *context, size_t count), void *context)
{
    size_t low = 0, high = all;
    if (fits(context, high)) {
        return true;
    }
    for (unsigned i = 0; i < BISECT_TRIES && low + 1 < high; i++) {
        size_t middle = low + (high - low) / 2;
        if (fits(context, middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return fits(context, low);
}
