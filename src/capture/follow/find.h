/*
 * find: with -a and perf, the processes that begin, and with filters, who of all targets is excluded.
 *
 * Whose records change what a process is (fork, exec, a first mapping) has it evaluated again; a sample of one that is
 * excluded is counted as such and dropped. At a window's end the number of excluded ones goes into the profile, and
 * when nothing is selected a warning shows what there is.
 */
#ifndef CAPTURE_FOLLOW_FIND_H
#define CAPTURE_FOLLOW_FIND_H

#include "capture/follow/follow.h"

enum { FIND_MS = 500 }; /* between two searches: each process is found within one second */

struct find;

extern const struct concern find_concern;

/* Null when memory ends. */
struct find *find_new(struct follow *f);

/* The first search, of all that runs now; and a warning when none of it is selected, or nobody else is visible. */
void find_first(struct find *find, uint64_t now_ns);
void find_report_none(struct find *find);

/* Was any process selected so far, or was none to be? */
bool find_any_selected(const struct find *find);

/* A record of a target may change who it is. After targets_take. */
void find_evaluate(struct find *find, const struct record *record);

/* Is the process of a sample excluded? Then the sample was counted, and is to be dropped. */
bool find_excludes(struct find *find, const struct record *sample);

/* The same of a sample of an extra event, which counts nowhere. */
bool find_is_excluded(struct find *find, const struct record *record);

#endif
