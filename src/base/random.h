/* random: moments drawn by lot, so that what is sampled in time is in step with nothing. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* A moment three to five quarters of a period after now_ns: never quite regular, or a program with a rhythm of its own
 * would always be met at the same point of it. The seed is any number but 0. */
uint64_t random_next_ns(uint64_t now_ns, uint64_t period_ns, uint64_t *seed);

#endif
