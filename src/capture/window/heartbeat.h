/*
 * heartbeat: the file by which others see that the profiler works (--heartbeat-file).
 *
 * It is touched when a run has begun and its output can be written, and after each window that was: what is older than
 * a window or two is of a profiler that hangs, or whose disk is full. Nothing is written into it. Used by the
 * publisher's thread.
 */
#ifndef CAPTURE_WINDOW_HEARTBEAT_H
#define CAPTURE_WINDOW_HEARTBEAT_H

#include "capture/log.h"

/* `path`: null for none. */
void heartbeat_beat(struct log *log, const char *path);

#endif
