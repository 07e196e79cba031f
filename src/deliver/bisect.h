/*
 * bisect: the most of something that still fits, where only what was made of it tells.
 *
 * `fits` makes it with `count` of the things, over what it made before, and says whether that is
 * small enough. More things make it larger. All are tried first, which is the usual
 * case; the last call is the one whose result stands, with as many as fit, or with none: then its
 * answer, which is returned, may be no.
 *
 * Cost: at most BISECT_TRIES + 2 calls. Of more than 4096 things (2 to the 12th) up to a
 * 4096th part may be left out though it would have fit.
 */
#ifndef DELIVER_BISECT_H
#define DELIVER_BISECT_H

#include <stdbool.h>
#include <stddef.h>

enum { BISECT_TRIES = 12 };

bool bisect(size_t all, bool (*fits)(void *context, size_t count), void *context);

#endif
