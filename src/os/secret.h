/*
 * secret: what keeps a token where it belongs.
 *
 * The arguments and the environment of a process can be read by others in /proc/PID/cmdline and
 * environ for as long as it runs, because they are its own memory: what is overwritten there is
 * gone from there.
 *
 * Cores: with a limit of one byte the kernel writes no core file, and feeds none to a program that
 * collects them either, which a limit of 0 does not prevent (core(5), "Piping core dumps"). It
 * holds for this process and what it starts; a command that is profiled is no child of the profiler
 * and keeps its own. PR_SET_DUMPABLE is left alone: it would make root the owner of our files in
 * /proc, which are read here.
 */
#ifndef OS_SECRET_H
#define OS_SECRET_H

#include "base/err.h"
#include "base/str.h"

enum { SECRET_MAX_BYTES = 16 * 1024 };

/* A copy of the text, whose place is overwritten; null when memory ends, and then it is
 * overwritten as well. The caller frees it with secret_forget. */
char *secret_take(char *text);

/* Overwrites and frees. Null is allowed. */
void secret_forget(char *secret);

/* From now on this process leaves no core. */
void secret_leave_no_core(void);

/* The first line of a file, without blanks around it. At most SECRET_MAX_BYTES - 1; an empty one
 * is an error. The result is freed by secret_forget. Null: err, which never repeats the content. */
char *secret_read_file(const char *path, struct err *err);

#endif
