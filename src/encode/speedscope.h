/*
 * speedscope: a profile in the JSON format of https://www.speedscope.app, which also opens from a
 * local page without a network.
 *
 * One profile of type "sampled" per thread, the one with the most CPU time first, in nanoseconds.
 * Stacks have no moments, so their order within a thread is that of the call tree: the tool's "left
 * heavy" view is the one to look at. Frames are shared and are functions (name, file), not
 * addresses; accounting frames such as "[lost]" are frames too.
 *
 * Memory beside the profile: 4 bytes per frame, 16 per sample and thread.
 *
 * Format: https://www.speedscope.app/file-format-schema.json
 */
#ifndef ENCODE_SPEEDSCOPE_H
#define ENCODE_SPEEDSCOPE_H

#include "base/iface.h"
#include "profile/profile.h"

bool speedscope_write(struct profile *p, struct sink *out, struct err *err);

#endif
