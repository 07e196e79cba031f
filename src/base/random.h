/* random: moments drawn by lot, so that what is sampled in time is in step with nothing. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* A moment three to five quarters of a period after now_ns. The seed is any number but 0. */
uint64_t random_next_ns(uint64_t now_ns, uint64_t period_ns, uint64_t *seed);

#endif
