/* version: `pillion --version`. The first line is name and number only, for scripts; what follows
 * is what a report of a problem needs, in one paste. */
#ifndef CLI_VERSION_H
#define CLI_VERSION_H

#include "base/str.h"

void version_text(struct buf *out);

/* Prints it to standard output. Returns the exit status. */
int version_run(void);

#endif
