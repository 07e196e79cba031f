/* taker: who takes a window's profile, once its frames have names, in the place of files and back ends (live/). It is
 * called by the publisher's thread; the profile is the publisher's, and emptied afterwards. */
#ifndef CAPTURE_TAKER_H
#define CAPTURE_TAKER_H

#include "profile/profile.h"

struct taker {
    void (*take)(void *context, const struct profile *p);
    void *context;
};

#endif
