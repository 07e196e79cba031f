/*
 * python_read: the collapsed stacks that Python's profilers write, into a profile.
 *
 * py-spy (`--format raw`): "f (a.py:12);g (b.py:3) COUNT", in front of it "process 12:"command"" and
 * "thread (34): name" where these were asked for. A count is a sample at 100 Hz, which is what py-spy takes unless told
 * otherwise.
 *
 * austin, of versions that write text: lines "P12;T0:34;a.py:f:12;b.py:g:3 METRIC" below "# name: value". The metric is
 * microseconds; in mode cpu they are CPU time, else the sample type "wall", in mode memory bytes ("memory"). In mode
 * full it is "time,idle,bytes": time that was not idle is CPU time, idle time is waiting, bytes are not read.
 *
 * All fields behind these are frames: named "f (a.py)", Python's unless the file's ending says otherwise, at their
 * line. What is no such line is skipped and counted. Errors: as in collapsed_read.h.
 */
#ifndef ENCODE_PYTHON_READ_H
#define ENCODE_PYTHON_READ_H

#include "encode/collapsed_read.h"

bool python_stacks_are(struct str file);

/* `type`: as in collapsed_read.h. */
bool python_stacks_read(struct profile *p, struct str file, struct str type, struct collapsed_damage *damage,
                        struct err *err);

#endif
