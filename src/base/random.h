/* random: moments drawn by lot, so that what is sampled in time is in step with nothing. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* A moment half to one and a half periods after now_ns. Were it more regular, a program with a rhythm of its own, as a
 * server under load has, would be met at the same points of it for a while. The seed is any number but 0. */
uint64_t random_next_ns(uint64_t now_ns, uint64_t period_ns, uint64_t *seed);

#endif
