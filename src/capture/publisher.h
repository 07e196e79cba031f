/*
 * publisher: the thread that turns a finished window into files and a summary.
 *
 * The sampler hands a whole profile over and gets an empty one back; a slow disk or a large symbol
 * table delays the next hand-over, never a sample. At most one window waits.
 *
 *     publisher_start(...)
 *     if (publisher_ready(pub)) profile = publisher_submit(pub, profile);
 *     publisher_stop(pub);        waits for the window that is being published
 *
 * Ownership: the publisher owns a submitted profile until publisher_submit returns the other one,
 * cleared.
 */
#ifndef CAPTURE_PUBLISHER_H
#define CAPTURE_PUBLISHER_H

#include "capture/images.h"
#include "capture/log.h"
#include "capture/outputs.h"

struct publisher;

struct publisher *publisher_start(const struct settings *settings, struct images *images,
                                  struct log *log, size_t profile_max_bytes, struct err *err);

/* Has it finished with the window before? */
bool publisher_ready(struct publisher *pub);

/* Waits until ready, takes `full` and returns an empty profile. */
struct profile *publisher_submit(struct publisher *pub, struct profile *full);

/* Waits until what was submitted is published. */
void publisher_wait(struct publisher *pub);

/* Finishes what was submitted and ends the thread. The number of windows whose files could not all be
 * written. */
unsigned publisher_stop(struct publisher *pub);

#endif
