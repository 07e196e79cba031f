/*
 * unused: the one table of options that are accepted without effect.
 *
 * They are of other profilers or of earlier releases, and mean nothing here. Using one is a warning
 * with the reason; a few are refused with it. `pillion help compatibility` and the end of
 * docs/options.md list them; no other help does.
 */
#ifndef CLI_UNUSED_H
#define CLI_UNUSED_H

#include "base/str.h"

#include <stdbool.h>

struct unused_option {
    const char *name;  /* without dashes; null ends the table */
    const char *why;
    bool valued;       /* it has a value; else it is a flag */
    bool gprofiler;    /* GPROFILER_<NAME> is read too */
    char letter;       /* 0 = none */
    bool refused;      /* an error after all: without it the command would be another */
};

extern const struct unused_option unused_options[];

/* By long name with '-'; null: there is none. Of a flag also its negation. */
const struct unused_option *unused_find(struct str name);

#endif
