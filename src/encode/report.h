/*
 * report: the heaviest functions and paths of a profile, for the end of a run and for `pillion report`.
 *
 * A function's own share is the time in which it ran itself, its total share that and what it called, once however
 * often it stands in a stack. Functions are one row per name and kind, of all processes and threads, as in fold.h; the
 * largest own share comes first. What was not seen ("[lost]") is no function, but counts in what shares are of.
 *
 * A path begins with a thread's first function and goes on into callees that have a twentieth of everything or more,
 * into each of them on a path of its own. It ends where there is none, or where the function itself has as much as the
 * heaviest of them. Its share is its last function's, so shares of paths never count anything twice, and no path is the
 * beginning of another. Threads whose first function has less than a hundredth have no path, unless it is the heaviest.
 *
 * Memory: the fold's, 32 bytes per function, and while it is built some 40 more of each and 4 per node. Time: one visit
 * per node of the fold, and sorting the functions.
 */
#ifndef ENCODE_REPORT_H
#define ENCODE_REPORT_H

#include "profile/fold.h"

#define REPORT_ANY SIZE_MAX /* columns: as many as it takes */

struct report_function {
    uint64_t own, total; /* of the profile's weight */
    uint32_t name;       /* string id of the profile */
    uint32_t place;      /* in the order in which the stacks have them, the heaviest first: who comes first of equals */
    uint8_t kind;        /* enum frame_kind */
};

struct report_path {
    uint64_t total;
    uint32_t node;  /* its last one in the fold */
    uint32_t place; /* of equals the last comes first: they are found from the lightest on */
};

struct report {
    struct fold fold;
    uint64_t all;                           /* the profile's weight */
    VEC(struct report_function) functions;  /* all of them, the heaviest first */
    VEC(struct report_path) paths;          /* likewise */
};

/* Frames must be named; the profile is not const as in fold.h. */
bool report_build(struct report *r, struct profile *p, struct err *err);
void report_release(struct report *r);

/* Appends a function's name for people (utf8_visible), without the folders of its file, in at most `columns`: of a
 * longer one "..." stands for the middle. Characters beyond U+10FF count as two columns. */
void report_name(struct str name, uint8_t kind, size_t columns, struct buf *out);

/* Appends "main > serve > parse" in at most `columns`: of a longer path "..." stands for the beginning. */
void report_path(const struct report *r, const struct profile *p, uint32_t node, size_t columns, struct buf *out);

/* Appends lines for a terminal, each begun by a line end. Nothing when the profile has no stack. `columns`: 32 at
 * least. */
void report_lines(const struct report *r, const struct profile *p, size_t functions, size_t paths, size_t columns,
                  struct buf *out);

#endif
