/*
 * speedscope: a profile in the JSON format of https://www.speedscope.app, which also opens from a
 * local page without a network.
 *
 * One profile of type "sampled" per thread, the one with the most CPU time first, in nanoseconds. Its stacks are in the
 * order of time where the profile has moments, what was not seen last, else in that of the call tree ("order" says
 * which). The axis is CPU time: a wait has no width. Frames are shared and are functions (name, file), not
 * addresses; accounting frames such as "[lost]" are frames too.
 *
 * Memory beside the profile: 4 bytes per frame, and timeline.h.
 *
 * Format: https://www.speedscope.app/file-format-schema.json
 */
#ifndef ENCODE_SPEEDSCOPE_H
#define ENCODE_SPEEDSCOPE_H

#include "base/iface.h"
#include "profile/profile.h"

bool speedscope_write(struct profile *p, struct sink *out, struct err *err);

#endif
