/*
 * outputs: the files a window leaves.
 *
 * Per window and format one file DIR/profile_<UTC end>.<extension>, written atomically, and links to
 * the newest: last_profile.col, last_flamegraph.html, last_profile.pprof, but not to a window cut short
 * in which hardly anything ran, as a run's last one may be. The time is 2026-11-20T103104Z, or with
 * colons and without a zone, as gProfiler has it. Two windows that end in the same second get "-2",
 * "-3" … behind it instead of overwriting each other.
 *
 * What runtimes made in pprof's form (profile/runtime_profile.h) has its type in front of the extension,
 * profile_<UTC end>.heap.pprof, and is written where pprof is wanted; of several processes each has its pid there,
 * too: profile_<UTC end>.heap-17.pprof. No link names them.
 *
 * Rotation: `rotating` keeps only the newest set, `max_sets` that many (0: all). What is removed are
 * files of this naming in DIR, the oldest names first, those of earlier runs included, and temporary
 * files that killed runs left of sets that are gone. The set just written always stays. Where nobody asked
 * for rotation a run may be `bounded`: only sets that it wrote itself are removed then.
 *
 * The whole run has files of its own, or links where it is one window: run_flamegraph.html, run_profile.col …
 *
 * A format that cannot be written is an error of that format alone; the others are still written.
 */
#ifndef CAPTURE_OUTPUTS_H
#define CAPTURE_OUTPUTS_H

#include "base/encode_rules.h"
#include "base/err.h"
#include "base/vec.h"
#include "capture/settings.h"
#include "profile/profile.h"

enum {
    OUTPUTS_DIR_MAX = 4096,
    OUTPUTS_STEM_MAX = 64,
    OUTPUTS_RUN_SETS = 60,
    OUTPUTS_RUN_BYTES = 256 * 1000 * 1000,
};

/* The files of one window, as this run wrote them. */
struct outputs_set {
    char stem[OUTPUTS_STEM_MAX];
    uint64_t bytes;
};

struct outputs {
    const char *dir; /* "." by default */
    unsigned formats;
    unsigned max_sets; /* 0: all */
    bool bounded;
    enum file_names names;
    struct encode_rules rules;
    uint64_t window_ns; /* how long windows are meant to be */
    bool linked;        /* a window of this run is named by the links */
    VEC(struct outputs_set) own; /* while it is bounded: the oldest first */
    uint64_t own_bytes;
    char here[OUTPUTS_DIR_MAX]; /* after outputs_name_here */
};

struct outputs_written {
    char stem[OUTPUTS_STEM_MAX]; /* "profile_2026-11-20T103104Z" */
    unsigned formats;   /* bits of those that were written */
    uint64_t bytes;     /* of all of them */
    bool removed;       /* an older set of this run, because it is bounded */
};

void outputs_init(struct outputs *o, const struct settings *settings);
void outputs_release(struct outputs *o);

/* Calls the default folder by its whole name: a log is read elsewhere. Afterwards the struct stays where it is. */
void outputs_name_here(struct outputs *o);

/* What stands between the folder and a name in it: "/", or nothing behind a folder that ends in one. */
const char *outputs_slash(const struct outputs *o);

/* Can they be written? Makes the folder. */
bool outputs_try(const struct outputs *o, struct err *err);

/* True when everything wanted was written; otherwise err holds the first failure, and `written` tells
 * what was. */
bool outputs_write(struct outputs *o, struct profile *p, struct outputs_written *written,
                   struct err *err);

/* At the end of a run: files of `whole`, which has what all windows have, or links to the only window's (`whole` is
 * null). `name` is that of the page, or of the last one without a page. */
bool outputs_write_run(struct outputs *o, struct profile *whole, const struct outputs_written *only,
                       char name[static OUTPUTS_STEM_MAX], struct err *err);

#endif
