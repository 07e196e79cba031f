/*
 * functions: the frames of a profile as functions.
 *
 * Two addresses of one function are two frames; formats that keep a table of functions want them
 * once. A function is (name, system name, source file, kind); `of_frame` gives each frame's place in
 * `list`. Memory: 4 bytes per frame, about 22 per function.
 */
#ifndef ENCODE_FUNCTIONS_H
#define ENCODE_FUNCTIONS_H

#include "profile/profile.h"

struct function {
    uint32_t name, system_name, file; /* string ids of the profile */
    uint32_t first_line;              /* of the first frame met; 0 unknown */
    uint8_t kind;                     /* enum frame_kind */
};

struct functions {
    VEC(struct function) list; /* element 0 is unused */
    uint32_t *of_frame;        /* by frame id */
    struct intern ids;
};

/* Of the frames that `used` holds for (frames_used); null: of all. The others' places are 0. */
bool functions_init(struct functions *f, const struct profile *p, const uint8_t *used, struct err *err);
void functions_release(struct functions *f);

/* By frame id, what the samples, waits and events of the profile need it for; 0: nothing does. Allocated; null when
 * memory ends. */
enum { FRAME_OF_NODE = 1, FRAME_OF_CALLER };
uint8_t *frames_used(const struct profile *p);

#endif
