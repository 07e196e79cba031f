/*
 * catching: whose samples are caught, that is, read by a catcher at the moment of the sample (catch/catch.h).
 *
 * Concept. A process with a runtime that can be read, and a program whose stacks are larger than a sample can copy,
 * get events in rings of their own, or, without perf, a timer. Catchers are started for the first of them. This concern
 * owns the readers (readers.h) and the catchers; who needs either asks here.
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

/* Null: no catcher runs. */
struct catch *catching_catchers(const struct catching *c);

/* Null: runtimes are not read. */
struct readers *catching_readers(struct catching *c);

/* The search of a round, once before the first. */
void catching_search(struct catching *c, uint64_t now_ns);

/* After frequency or copies have changed: tells the catchers, and while sampling is suspended lets go of whoever has
 * a runtime. */
void catching_throttle(struct catching *c);

/* After images_sweep. */
void catching_forget_images(struct catching *c);

#endif
