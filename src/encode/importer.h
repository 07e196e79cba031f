/*
 * importer: how the readers of profile files put what they read into a profile.
 *
 * Call order: importer_init; importer_value; per thread importer_thread; per stack importer_frame for each frame and
 * importer_add. There is nothing to release. The profile may hold samples already: what is read is added to it.
 *
 * A file that knows no process ids gets one process per (container, name, application id), with pid
 * 0; the same names in a second file are then the same process.
 *
 * Limits: a stack keeps its IMPORTER_DEPTH_MAX innermost frames below a frame "[truncated]"; the
 * weights of one profile sum up to at most IMPORTER_TOTAL_MAX_NS (146 years of CPU time), which leaves
 * no room for overflow anywhere behind. Beyond the profile's own budget weight goes to "[lost]".
 */
#ifndef ENCODE_IMPORTER_H
#define ENCODE_IMPORTER_H

#include "profile/profile.h"

enum { IMPORTER_DEPTH_MAX = 16384 };
#define IMPORTER_TOTAL_MAX_NS (UINT64_C(1) << 62)

/* Where a stack was sampled; unknown numbers are 0, unknown texts empty. */
struct importer_origin {
    uint32_t pid, tid;
    uint64_t start_ticks;
    struct str comm; /* of the process; empty: the thread's */
    struct str thread_name;
    struct str container;
    struct str appid;
    struct str runtime;
    struct str labels[PROFILE_LABELS];
};

struct importer {
    struct profile *profile;
    uint64_t total_ns, count;
    uint64_t later_ns; /* this file's profile begins than the profile's */
};

void importer_init(struct importer *in, struct profile *p);

/* Says what the weights are that will be added: "" and "" CPU time, else a sample type's name and unit. Fails when the
 * profile holds others already: nanoseconds and page faults have no sum. */
bool importer_value(struct importer *in, struct str name, struct str unit, struct err *err);

/* The same of a file that holds one sample type, of which `wanted` is another's name or "". ERR_USAGE when it is. */
bool importer_type(struct importer *in, struct str wanted, struct str name, struct str unit, struct err *err);

/* The thread's id in the profile; 0 when it does not fit. */
uint32_t importer_thread(struct importer *in, const struct importer_origin *origin);

/* The text's id; *fits becomes false when the profile has no room for it. */
uint32_t importer_text(struct importer *in, struct str text, bool *fits);

/* A frame of this kind with this name and no address, at this line (0: unknown). 0 when it does not fit. */
uint32_t importer_frame(struct importer *in, struct str name, uint32_t line, enum frame_kind kind);

/* The same of a known file; kinds that only the accounts have are theirs by name alone. */
uint32_t importer_frame_in(struct importer *in, struct str name, struct str file, uint32_t line, enum frame_kind kind);

/* The node of a stack, root first; a frame 0 did not fit. 0 when the stack does not. */
uint32_t importer_stack(struct importer *in, const uint32_t *frames, size_t depth);

/* Adds `cpu_ns` (and the same to the process's own CPU time) for a stack. Fails only when the total would pass its
 * limit. */
bool importer_add(struct importer *in, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count,
                  struct err *err);

/* The same, taken so long after the beginning of the file's profile, which importer_begin has told; a time of
 * IMPORTER_NO_TIME: nobody knows. */
#define IMPORTER_NO_TIME UINT64_MAX
bool importer_add_at(struct importer *in, uint32_t thread, uint32_t node, uint64_t cpu_ns, uint64_t count,
                     uint64_t time_ns, struct err *err);

/* When the file's profile begins (0: unknown): moments are kept from here on, and those of several files lie on one
 * line of time. Before the file's meta data is merged into the profile's. */
void importer_begin(struct importer *in, uint64_t start_wall_ns);

/* Which account a frame's name stands for: its ordinary code is FRAME_NATIVE. */
enum frame_kind importer_plain_kind(struct str name);

#endif
