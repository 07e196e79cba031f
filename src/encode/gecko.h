/*
 * gecko: a profile in the processed format of the Firefox Profiler, for https://profiler.firefox.com.
 *
 * Version 60 of the format: the first that has one table of stacks for all threads, as a profile has; the site brings
 * what is older than itself up to date. What it holds:
 *   - stacks, frames, functions, sources, libraries (with build ids): once; inlined functions as frames of their own
 *     with a depth; no address of the kernel; categories are the languages;
 *   - a thread per row of the timeline (timeline.h): time in ms, the weight in ms of CPU time ("tracing-ms", to the
 *     nanosecond), and the same as the CPU time since the sample before (threadCPUDelta), of which the site draws how
 *     busy a thread was;
 *   - what was not seen: stacks of the category "not seen", behind the end of all that has a time;
 *   - "pillion" in the meta object: which order the samples are in, and what weighs when it is no CPU time. Then
 *     weights are of type "bytes", or "samples" for all else that is counted.
 *
 * Memory beside the profile: 4 bytes per node, string, function; functions.h; timeline.h.
 *
 * Format: src/types/profile.ts and docs-developer/CHANGELOG-formats.md of https://github.com/firefox-devtools/profiler
 */
#ifndef ENCODE_GECKO_H
#define ENCODE_GECKO_H

#include "base/iface.h"
#include "profile/profile.h"

enum { GECKO_VERSION = 60 };

bool gecko_write(struct profile *p, struct sink *out, struct err *err);

#endif
