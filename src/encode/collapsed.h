/*
 * collapsed: a profile as collapsed stacks (".col"), one line per stack.
 *
 * The file is what gProfiler writes as version 2 and Performance Studio reads:
 *
 *     # {"containers": [], …}                        one JSON object: what the file is
 *     0;;python3;appid: web;main_[p];read_[k] 12     index;container;comm[;appid];frames count
 *
 * Root first; the count stands behind the last blank; no line end behind the last line. `index`
 * points into the header's "application_metadata" (0 is null). Our own keys are below "pillion" in
 * the header, which other readers ignore.
 *
 * Frames. Inlined functions are frames like others. Names are UTF-8 (malformed bytes become
 * U+FFFD); ';' becomes ':', control characters and line separators become blanks, blanks at the
 * ends are dropped, and what is then empty is "[unknown]". The kind of code is a suffix:
 * struct language. With rules->lines a function that is called "f (a.py:12)" is followed by the line being
 * executed, where that is known: "f (a.py:12):15_[p]". A name of a kind without suffix that happens to
 * end in one gets round brackets: "f_[k]" of a C library is written "f_(k)".
 *
 * Counts. The count is the line's CPU time divided by the profile's period. Lines are sorted
 * field by field, and each gets what is still owed of the running total, rounded to nearest: the
 * counts sum up to the rounded total of the profile, and a line whose share rounds to nothing is
 * left out.
 *
 * Limits: a line has at most COLLAPSED_LINE_MAX bytes, the studio's own limit less some room; the
 * rest of a longer stack is one frame "[truncated]". At most COLLAPSED_PROCESSES_MAX processes are
 * described in the header, further ones have index 0. Memory beside the profile: about 20 bytes per
 * node, 24 per sample, and the distinct spellings once.
 */
#ifndef ENCODE_COLLAPSED_H
#define ENCODE_COLLAPSED_H

#include "base/encode_rules.h"
#include "base/iface.h"
#include "profile/profile.h"

enum {
    COLLAPSED_LINE_MAX = 24 * 1024 * 1024,
    COLLAPSED_PROCESSES_MAX = 1000,
};

/* What one count stands for when the file does not say it: 99 samples per second. */
#define COLLAPSED_PERIOD_NS UINT64_C(10101010)

/* Rules may be null: none. Applied here are `lines` and `header`; others are by fit.h. */
bool collapsed_write(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err);

/* Appends a field of a line by the rules above, without a suffix. */
void collapsed_field(struct buf *out, struct str text);

/* Appends a frame: its field and what tells its kind. */
void collapsed_frame(struct buf *out, struct str name, enum frame_kind kind);

/* Takes the line being executed off "f (a.py:12):15"; 0: there is none. */
uint32_t collapsed_line(struct str *frame, enum frame_kind kind);

/* The kind of a frame in a file; the suffix is taken off `frame` unless it says more than the kind
 * (gProfiler's "_[i]" is inlined Java). Frames without one are FRAME_NATIVE. */
enum frame_kind collapsed_kind(struct str *frame);

/* The header line, without its line end. index_of_process[id] is filled with each process's index. What `told`, the
 * header of the file that the profile was read from, says of the machine and the whole window stays as it is. */
void collapsed_header(struct buf *out, const struct profile *p, struct str told, uint32_t *index_of_process);

/* meta.period_ns, or what stands for it when it is not known. */
uint64_t collapsed_period(const struct profile *p);

#endif
