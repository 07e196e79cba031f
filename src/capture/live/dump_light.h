/* light: light threads of a runtime's own (goroutines), equal ones as one, out of the profile that was made of them. */
#ifndef CAPTURE_LIVE_DUMP_LIGHT_H
#define CAPTURE_LIVE_DUMP_LIGHT_H

#include "profile/profile.h"

struct dump_light {
    uint32_t node;       /* in `profile` */
    struct str state;    /* the runtime's word */
    uint64_t count;
    uint64_t waited_ns;  /* all of them together; 0: not known */
};

struct dump_lights {
    struct profile profile;
    VEC(struct dump_light) all; /* those that run first, then the more of them the earlier */
};

/* Those of a process; false: it has none, or there is no memory. dump_lights_release in every case. */
bool dump_lights_read(struct dump_lights *lights, const struct runtime_profiles *of, uint32_t pid);
void dump_lights_release(struct dump_lights *lights);

#endif
