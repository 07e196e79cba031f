/*
 * gecko_read: a profile of the Firefox Profiler into a profile.
 *
 * Both forms of it: what Firefox and `perf script gecko` write (tables of rows, "schema" saying what stands where, the
 * profiles of other processes nested), and the processed form, which the site and samply save (tables of columns), of
 * all versions up to 70: tables per thread or shared, file names in functions or in a table of sources, times or
 * differences of times.
 *
 * A sample weighs what it says in ms ("tracing-ms"); else the CPU time that its thread used since the sample before,
 * where the file knows that in ns or us; else the interval of the profile. "bytes" are a sample type of their own.
 * Samples keep their time. A frame's kind comes from its category, when one of ours is called so, else from its file's
 * ending; code without a symbol is named by its place. Markers, counters and allocations are not read.
 *
 * Limits: GECKO_ROWS_MAX rows of a table, GECKO_THREADS_MAX threads, processes nested GECKO_NESTED_MAX deep, stacks of
 * IMPORTER_DEPTH_MAX frames. Errors: ERR_UNSUPPORTED, JSON that is no such profile; ERR_MALFORMED, with the table
 * that contradicts itself; ERR_LIMIT; ERR_USAGE as in collapsed_read.h. The file is read in place: each table's columns
 * are gone through once, and what is kept is 4 to 16 bytes per row.
 */
#ifndef ENCODE_GECKO_READ_H
#define ENCODE_GECKO_READ_H

#include "profile/profile.h"

enum { GECKO_ROWS_MAX = 8 * 1024 * 1024, GECKO_THREADS_MAX = 64 * 1024, GECKO_NESTED_MAX = 4 };

/* `type`: as in collapsed_read.h. */
bool gecko_read(struct profile *p, struct str file, struct str type, struct err *err);

#endif
