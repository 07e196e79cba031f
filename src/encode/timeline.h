/*
 * timeline: the samples of a profile laid along time, thread by thread, for forms that draw time.
 *
 * A row is a thread, whatever its labels, the one with the most CPU time first. A part is what one stack of the row
 * used at one moment (profile/moments.h): it begins `at_ns` after the profile's beginning and stands for `ns`. Parts of
 * a row are in the order of time and do not overlap: those of one step follow each other, and one that reaches into the
 * next step moves what is there a little; `moment_ns` is within its step all the same.
 *
 * A profile without any moment (a .col, a .pprof) is laid out in the order of its call tree, each row from 0, as if it
 * had run without a pause: `is_timed` is false, and who writes it says so. Where there are moments, what has none (what
 * was not seen) stands behind `seen_ns`, the end of all that has.
 *
 *     timeline_init(&t, p, &err);   sorts the profile's moments
 *     timeline_release(&t);         also after a failure
 *
 * Memory: 32 bytes per part, 8 per node, 24 per thread.
 */
#ifndef ENCODE_TIMELINE_H
#define ENCODE_TIMELINE_H

#include "base/iface.h"
#include "profile/profile.h"

struct timeline_part {
    uint32_t row, sample;
    uint64_t at_ns, ns, moment_ns;
};

struct timeline_row {
    uint64_t cpu_ns;
    uint32_t thread;
    uint32_t first, count; /* its parts */
};

struct timeline {
    VEC(struct timeline_part) parts;
    struct timeline_row *rows;
    size_t row_count; /* rows with parts */
    uint64_t seen_ns, end_ns;
    bool is_timed;
};

bool timeline_init(struct timeline *t, struct profile *p, struct err *err);
void timeline_release(struct timeline *t);

/* The functions from a node to the root, leaf first, as frames. False: no memory. */
struct timeline_stack {
    VEC(uint32_t) frames;
};
bool timeline_climb(struct timeline_stack *stack, const struct profile *p, uint32_t node, struct err *err);

/* Writes what is in the text and empties it; one that grew beyond TIMELINE_TEXT_MAX is an error. */
enum { TIMELINE_TEXT_MAX = 16 * 1024 * 1024 };
bool timeline_flush(struct buf *text, struct sink *out, struct err *err);

/* What such a form says of a profile that is_timed does not hold for, and of one that it does. */
static inline const char *timeline_order(const struct timeline *t)
{
    return t->is_timed ? "time" : "call tree: the profile does not say when its samples were taken";
}

#endif
