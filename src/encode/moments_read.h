/*
 * moments_read: the stacks of a process that told at some moments which of its threads ran, and where. A runtime's row
 * writes them as its process tells them (runtime.h, collect); nobody keeps such a text.
 *
 * Lines, each ended by a newline:
 *
 *     moment NS             begins one, which stands for so long; then of each thread that ran
 *     thread TID WAITS NAME   as the process numbers it; WAITS is 1 in native code, where waiting looks like running;
 *                             without a name: as the system calls it
 *     LINE FUNCTION           its frames, leaf first; LINE 0: not known
 *     runtime NAME            anywhere: what the process runs on
 *
 * Frames are of the kind given. Limits: MOMENTS_DEPTH frames of a stack, below "[truncated]". What is no such line is
 * passed over: the text is made by a process that may mean it ill.
 */
#ifndef ENCODE_MOMENTS_READ_H
#define ENCODE_MOMENTS_READ_H

#include "encode/live.h"

enum { MOMENTS_DEPTH = 1024 };

bool moments_are(struct str text);

/* Hands all of them to `live->sample`. */
void moments_read(struct profile *p, struct str text, enum frame_kind kind, const struct live *live);

#endif
