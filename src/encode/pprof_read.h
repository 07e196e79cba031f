/*
 * pprof_read: a pprof file, ours or any other tool's, into a profile.
 *
 * The bytes may be gzip'd or plain. Which value of a sample is its CPU time: the one of type
 * cpu/nanoseconds, else the first whose unit is a time, else a count times the period when the
 * period is a time or not given (then the profile's, else 99 samples per second). A file with none
 * of these, such as a heap profile, is ERR_UNSUPPORTED and the message names what it holds; so is
 * zstd compression, which pprof itself does not read either.
 *
 * Frames. A location is one frame; several lines of it are functions inlined into one another,
 * those beyond PROFILE_INLINES_MAX frames of their own. Its kind comes from its mapping
 * ("[kernel.kallsyms]", a kernel module, ours of profile/language.h) or the source file's name.
 * Addresses are kept relative to the file; a location without a name is "[file+0xoffset]". Labels
 * "process_id", "pid", "thread id", "tid", "thread name", "comm", "process_name", "container" … are
 * taken, others are not. Without a process label the main mapping's name is used.
 *
 * Refused as ERR_MALFORMED, as pprof does: an empty file, two files in one, a string table that
 * does not begin with "", references to strings, locations or functions that do not exist, ids that
 * are 0 or double, samples whose values are not as many as the sample types. Refused as
 * ERR_UNSUPPORTED: negative values (a difference of two profiles).
 *
 * Limits: PPROF_READ_MAX_BYTES unpacked and PPROF_READ_MAX_ROWS strings, mappings, functions,
 * locations and lines each, PPROF_READ_MAX_STEPS frames in all stacks together; beyond them
 * ERR_LIMIT. Nothing of the file is kept.
 */
#ifndef ENCODE_PPROF_READ_H
#define ENCODE_PPROF_READ_H

#include "encode/importer.h"
#include "encode/live.h"

enum {
    PPROF_READ_MAX_BYTES = 256 * 1024 * 1024,
    PPROF_READ_MAX_ROWS = 4 * 1024 * 1024,
    PPROF_READ_MAX_STEPS = 256 * 1024 * 1024,
};

/* `type` "" is CPU time, and so is "cpu" where the file has it; else the values of that sample type ("off_cpu") stand
 * in its place, whatever it counts (encode/value.h). ERR_USAGE when there is none of that name: the sentence lists
 * those there are. Stacks where it is 0 are left out. */
bool pprof_read(struct profile *p, struct str file, struct str type, struct err *err);

/* CPU time, and beside it every other value: "off_cpu" is time spent waiting, of which "wall" follows; each other one
 * is an event of that name, up to PROFILE_EVENTS_MAX of them. */
bool pprof_read_whole(struct profile *p, struct str file, struct err *err);

/* The same of what a runtime made of one process (profile/runtime_profile.h): samples without labels are `of` it.
 * Unpacked it is at most as large as the profile may be. */
bool pprof_read_runtime(struct profile *p, struct str file, const struct importer_origin *of, struct err *err);

/* CPU time that a process tells of itself (live.h), without a word which of its threads had it: for each stack
 * `live->sample`, tid 0. */
bool pprof_read_live(struct profile *p, struct str file, const struct live *live, struct err *err);

/* Of a unit's name, such as "ms", its nanoseconds; 0: it is none of time. */
uint64_t pprof_time_unit_ns(struct str unit);

#endif
