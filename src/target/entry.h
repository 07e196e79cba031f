/*
 * entry: what a process was begun as, by which people tell it from others: a script, a module or a program, and in
 * which folders.
 *
 * Of the arguments the name of the script or the module is taken alone: all others may be secrets, and so may be code
 * that stands there. Of a folder its own name is taken, not the way to it.
 *
 * Source: getopt(3), proc_pid_cmdline(5).
 */
#ifndef TARGET_ENTRY_H
#define TARGET_ENTRY_H

#include "base/str.h"

enum { ENTRY_MAX_BYTES = 512 };

struct entry_facts {
    struct str arguments;  /* of /proc/PID/cmdline: a NUL behind each */
    struct str exe, folder; /* where the links exe and cwd lead; empty: not known */
    const char *options;   /* of an interpreter: the letters of its options that have a value. The first one's is
                            * the code to run, the second one's the name of a module. Null: it is no interpreter */
};

/* Appends four lines, each without what is not known: the name of the folder that it lies in, its own name, "script",
 * "module" or "executable", the name of the working folder. At most ENTRY_MAX_BYTES. */
void entry_describe(const struct entry_facts *facts, struct buf *out);

/* Do the lines say "executable"? */
bool entry_is_program(struct str lines);

#endif
