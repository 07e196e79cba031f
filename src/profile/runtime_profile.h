/*
 * runtime_profile: profiles that a runtime makes of itself in pprof's form, and what else it tells in a file.
 *
 * Concept. Most of what is sampled becomes stacks of one profile (profile.h). What a runtime has counted since it began
 * (where memory was allocated, what threads waited for) has values and labels of its own, and tools that expect just
 * these; so it is kept as it is, and goes with the window to files and back ends.
 *
 * A type is "heap", which stands for a gzip'd pprof file, or the name of another file: "metrics.json",
 * "go.trace".
 *
 * Ownership: bytes are the list's. runtime_profiles_release in every case.
 */
#ifndef PROFILE_RUNTIME_PROFILE_H
#define PROFILE_RUNTIME_PROFILE_H

#include "base/str.h"
#include "base/vec.h"
#include "profile/language.h"

enum {
    RUNTIME_PROFILE_TYPE_MAX = 24,
    RUNTIME_PROFILES_MAX = 64,              /* of a window, … */
    RUNTIME_PROFILES_MAX_BYTES = 16 << 20,  /* … and in sum */
};

struct runtime_profile {
    char type[RUNTIME_PROFILE_TYPE_MAX];
    uint32_t pid;
    enum frame_kind language; /* of the runtime that made it */
    struct buf bytes;
};

struct runtime_profiles {
    VEC(struct runtime_profile) all;
};

/* Takes the bytes, and leaves an empty buffer; replaces what the same process has told of this type. False: there is no
 * room for it, and nothing has changed. */
bool runtime_profiles_put(struct runtime_profiles *list, uint32_t pid, enum frame_kind language,
                          const char *type, struct buf *bytes);

/* The process with the next greater pid; 0: there is no more. */
uint32_t runtime_profiles_next(const struct runtime_profiles *list, uint32_t pid);

void runtime_profiles_clear(struct runtime_profiles *list);
void runtime_profiles_release(struct runtime_profiles *list);

/* Is it a profile in pprof's form? */
bool runtime_profile_is_pprof(struct str type);

/* Is it a trace, event by event? */
bool runtime_profile_is_trace(struct str type);

/* Of a window's file (profile_<UTC end>.heap.pprof, or heap-17, which is of pid 17) the type; empty: it is none of a
 * runtime's. */
struct str runtime_profile_of_file(struct str path);

#endif
