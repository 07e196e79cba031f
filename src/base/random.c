#include "base/random.h"

uint64_t random_next_ns(uint64_t now_ns, uint64_t period_ns, uint64_t *seed)
{
    *seed ^= *seed << 13; /* Marsaglia's xorshift64; the seed is not 0 */
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return now_ns + period_ns - period_ns / 2 + *seed % (period_ns + 1);
}
