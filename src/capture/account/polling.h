/*
 * polling: CPU accounting by /proc, of what has no events, and of what ended.
 *
 * Three rows. polling_concern reads, ten times a second, those on perf that are due, and finds and polls what is
 * counted from /proc alone. reaping_concern looks after followers that have ended: a program that lost the right to be
 * sampled goes on counted. closing_concern closes the window's accounting.
 */
#ifndef CAPTURE_ACCOUNT_POLLING_H
#define CAPTURE_ACCOUNT_POLLING_H

#include "capture/account/accounting.h"
#include "capture/follow/follow.h"

struct polling;

extern const struct concern polling_concern, reaping_concern, closing_concern;

/* Null when memory ends. Owns the accounting. */
struct polling *polling_new(struct follow *f);
struct accounting *polling_accounting(struct polling *p);

/* Between two polls at present; 0: none was yet. */
uint64_t polling_pause_ns(const struct polling *p);

/* Before the rings are read, when something has ended: the command's times can be read for a moment only, until its
 * parent has waited. */
void polling_note_end(struct polling *p);

/* Has all that is followed ended? Never with -a. */
bool polling_all_gone(struct polling *p);

#endif
