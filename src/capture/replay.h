/*
 * replay: a recording through the whole pipeline, printed as text.
 *
 * For tests: no rings, no /proc, no rights. What comes out is the collapsed stacks that a live run
 * would have made of the same inputs, without header, ordered, each with its number of samples; then a
 * line per kind of ending ("# complete 120"). The kernel's own symbols are not in a recording, so kernel
 * code is "[kernel]".
 */
#ifndef CAPTURE_REPLAY_H
#define CAPTURE_REPLAY_H

#include "base/iface.h"

bool replay_run(const char *path, struct sink *out, struct err *err);

#endif
