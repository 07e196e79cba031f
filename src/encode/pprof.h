/*
 * pprof: a profile as gzip'd Protocol Buffers, for `go tool pprof` and every tool that reads it.
 *
 * What is where:
 *   sample types   samples/count and cpu/nanoseconds, which is the default; the period is
 *                  cpu/nanoseconds
 *   mappings       one per module that a frame lies in, the main program first: the module named as
 *                  the processes with the most CPU time are. "[kernel]" is called
 *                  "[kernel.kallsyms]". Frames that lie in no module, such as a script's functions,
 *                  get a mapping "[python]", "[java]" …, so that the kind of code is not lost:
 *                  profile/language.h; so does code that their runtimes generated. A mapping is
 *                  widened where a frame lies outside the range it was seen with
 *   locations      one per frame of a stack; its address is the one at run time. Callers hold the
 *                  return address - 1, as pprof expects. One line per function inlined there,
 *                  innermost first, the function that really exists last
 *   functions      (name, system name, file); the system name only where it is another one;
 *                  accounting frames such as "[lost]" are functions too
 *   labels         process_id, thread id, thread name, comm, container, appid, what a runtime tells
 *                  (enum profile_label) and the program's own, all texts; unknown ones are left out
 *   comments       program, service, mode, what was not seen and why
 *
 * The file is deterministic and is written field by field through the compressor: beside the
 * profile it takes about 5 bytes per frame, 4 per node and string, and the compressor's 270 KB.
 *
 * Format: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#ifndef ENCODE_PPROF_H
#define ENCODE_PPROF_H

#include "base/encode_rules.h"
#include "base/iface.h"
#include "profile/profile.h"

/* Field numbers of the messages, shared with the reader. */
enum {
    PPROF_SAMPLE_TYPE = 1, PPROF_SAMPLE, PPROF_MAPPING, PPROF_LOCATION, PPROF_FUNCTION,
    PPROF_STRING, PPROF_DROP_FRAMES, PPROF_KEEP_FRAMES, PPROF_TIME, PPROF_DURATION,
    PPROF_PERIOD_TYPE, PPROF_PERIOD, PPROF_COMMENT, PPROF_DEFAULT_TYPE,

    PPROF_TYPE_NAME = 1, PPROF_TYPE_UNIT,
    PPROF_SAMPLE_LOCATION = 1, PPROF_SAMPLE_VALUE, PPROF_SAMPLE_LABEL,
    PPROF_LABEL_KEY = 1, PPROF_LABEL_TEXT, PPROF_LABEL_NUMBER,
    PPROF_MAPPING_ID = 1, PPROF_MAPPING_START, PPROF_MAPPING_LIMIT, PPROF_MAPPING_OFFSET,
    PPROF_MAPPING_FILE, PPROF_MAPPING_BUILD_ID, PPROF_MAPPING_HAS_FUNCTIONS,
    PPROF_MAPPING_HAS_FILES, PPROF_MAPPING_HAS_LINES, PPROF_MAPPING_HAS_INLINES,
    PPROF_LOCATION_ID = 1, PPROF_LOCATION_MAPPING, PPROF_LOCATION_ADDRESS, PPROF_LOCATION_LINE,
    PPROF_LINE_FUNCTION = 1, PPROF_LINE_NUMBER,
    PPROF_FUNCTION_ID = 1, PPROF_FUNCTION_NAME, PPROF_FUNCTION_SYSTEM_NAME, PPROF_FUNCTION_FILE,
    PPROF_FUNCTION_START_LINE,
};

#define PPROF_KERNEL_MAPPING "[kernel.kallsyms]"

/* Rules may be null: none. Applied here are those about names; the others are applied by fit.h. */
bool pprof_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err);

/* The same without compression. */
bool pprof_write_plain(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err);

#endif
