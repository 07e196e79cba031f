/*
 * applications: what each target runs (runtime/common/application.h), for its row in the profile.
 *
 * Its arguments are read once per program, when it gets its first row; a child has its parent's identifier until it
 * calls exec. At the ends of its first windows they are read again, because servers give their workers titles after
 * they have started them: who has ended before keeps what was known of it. Nothing is read per sample.
 */
#ifndef CAPTURE_FOLLOW_APPLICATIONS_H
#define CAPTURE_FOLLOW_APPLICATIONS_H

#include "capture/follow/follow.h"

struct applications;

extern const struct concern applications_concern;

/* Null when memory ends. Says which filters are none. */
struct applications *applications_new(struct follow *f);

/* Null: it is not known, or not wanted. */
const char *applications_of(struct targets *t, struct target *target);

void applications_inherit(struct target *child, const struct target *parent);

/* It ends, or another program begins in it. */
void applications_forget(struct target *target);

#endif
