/*
 * bursts: threads that end before they are sampled.
 *
 * A thread that ends before it has run for a period leaves no sample: of a program that starts a thread for each
 * request nearly everything would be "[lost]". Where that is seen (many threads start, and CPU accounting has much
 * more than the samples) the process is sampled in bursts instead: in slices of time all that it runs, much more
 * closely, and with a weight that makes up for the time between slices. On average that is as many samples as were
 * asked for. The usual ones go on being taken, and are only counted: by them is seen when bursts are needed no more.
 */
#ifndef CAPTURE_FOLLOW_BURSTS_H
#define CAPTURE_FOLLOW_BURSTS_H

#include "capture/follow/follow.h"

struct bursts;

extern const struct concern bursts_concern;

/* Null when memory ends. */
struct bursts *bursts_new(struct follow *f);

/* Notes the start of a thread. */
void bursts_note_birth(struct bursts *b, const struct record *fork);

/* A process's samples are of the usual kind, or in its bursts: of the other kind none is taken. Sets its weight. */
bool bursts_takes(struct bursts *b, struct record *sample);

/* Is a slice running? */
bool bursts_in_slice(const struct bursts *b);

#endif
