/*
 * render: `pillion render FILE... -o OUT [--diff BASE]`, from saved profiles to other forms.
 *
 * Inputs are collapsed stacks (also those of other tools), pprof files and flight recordings of Java, recognised by
 * their content, not by their names; several are added up. The output's form follows from its extension
 * (encode/encoders.c) or from --format; "-" writes to standard output and
 * needs --format. With --type another value of pprof files and recordings takes the place of CPU time: off-CPU time, an
 * event. With --diff a flame graph is coloured by the difference to BASE. A file is
 * written whole or not at all; a device or a pipe is written into. "-" as an input is standard input.
 */
#ifndef CLI_RENDER_H
#define CLI_RENDER_H

#include "cli/request.h"
#include "profile/profile.h"

enum { RENDER_INPUT_MAX_BYTES = 1 << 30 };
#define RENDER_PROFILE_MAX_BYTES (UINT64_C(4) << 30)

/* Adds the files to the profile, and says what of them was skipped. `type`: a sample type's name; null: CPU time. */
bool render_load(struct profile *p, char *const *paths, size_t count, const char *type, struct err *err);

/* Returns the exit status: 0, 1 when a file could not be read or written, 2 for a wrong call. */
int render_run(const struct request *request);

#endif
