/* frames: a stack of a named profile as its functions, innermost first, for those who show it. */
#ifndef CAPTURE_LIVE_DUMP_FRAMES_H
#define CAPTURE_LIVE_DUMP_FRAMES_H

#include "profile/profile.h"

struct dump_frame {
    struct str function, file, module; /* empty: not known */
    uint32_t line;
    uint8_t kind; /* enum frame_kind */
};

struct dump_frames {
    VEC(struct dump_frame) all;
};

/* The words for a thread's state, by the letter of stat; 0: it has ended. */
const char *dump_state(char state);

/* Replaces `out` by the stack that ends at `node`, without the leaf that tells what is waited for. */
void dump_frames(const struct profile *p, uint32_t node, struct dump_frames *out);

#endif
