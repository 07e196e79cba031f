/*
 * catching: whose samples are caught, that is, read by a catcher at the moment of the sample (catch/catch.h).
 *
 * Concept. A process with a runtime that can be read, and a program whose stacks are larger than a sample can copy,
 * get events in rings of their own. Without perf, and where a runtime's threads are too short for perf's samples, a
 * timer takes their place. Catchers of either kind are started for the first process that needs them. This concern owns
 * the readers (readers.h) and the catchers; who needs either asks here.
 */
#ifndef CAPTURE_STACKS_CATCHING_H
#define CAPTURE_STACKS_CATCHING_H

#include "capture/account/accounting.h"
#include "capture/catch/catch.h"
#include "capture/follow/follow.h"
#include "capture/stacks/readers.h"

struct catching;

extern const struct concern catching_concern;

/* Null when memory ends. */
struct catching *catching_new(struct follow *f, struct accounting *accounting);

/* Before its release: nobody catches any more. False: the kernel holds a catcher up, and what it may use must stay. */
bool catching_end(struct catching *c);

/* Null: no catcher runs so: on perf's rings, or by a timer. */
struct catch *catching_rings(const struct catching *c);
struct catch *catching_timer(const struct catching *c);

/* Threads of a target on perf are too short for samples: has its runtime read by a timer, and ends its events, for some
 * minutes. False: it has no runtime that can be read so, and all stays as it was. */
bool catching_time(struct catching *c, struct target *target);

/* Null: runtimes are not read. */
struct readers *catching_readers(struct catching *c);

/* The search of a round, once before the first. */
void catching_search(struct catching *c, uint64_t now_ns);

/* After frequency or copies have changed: tells the catchers, and while sampling is suspended lets go of whoever has
 * a runtime. */
void catching_throttle(struct catching *c);

/* After shared.stops_hz has changed. */
void catching_set_pace(struct catching *c);

/* After images_sweep. */
void catching_forget_images(struct catching *c);

#endif
