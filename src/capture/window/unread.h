/*
 * unread: processes of a window whose functions cannot be read, in words.
 *
 * An interpreter that cannot be read is native code by its time, and would pass for seen. process.remedy says why, or
 * what would name its functions. Told are those that used more than a twentieth of the window's CPU time.
 */
#ifndef CAPTURE_UNREAD_H
#define CAPTURE_UNREAD_H

#include "capture/log.h"
#include "profile/profile.h"

bool unread_any(const struct profile *p, const struct profile_totals *sum);

/* Appends the first three, each with `separator` before it. */
void unread_add(struct buf *out, const struct profile *p, const struct profile_totals *sum, const char *separator);

/* Into a log whose window is one line: a hint for each sentence, once in a run. */
void unread_say(struct log *log, const struct profile *p, const struct profile_totals *sum);

#endif
