/*
 * pprof: a profile written as Go's runtime/pprof writes it: samples of addresses with their functions, lines and
 * inlined calls, gzip'd, streamed.
 *
 * Concept. Whatever reads, merges or compares profiles of Go programs knows the files of their own runtime: one
 * location for each address, with one line for each call that was inlined there. Samples and locations go into the
 * compressor as they come; kept is what later ones must be told apart from: addresses, functions and texts.
 *
 * Call order: go_pprof_new; go_pprof_map for what addresses lie in; then, in any order, go_pprof_location and
 * go_pprof_sample, which names locations; go_pprof_finish; go_pprof_free, in every case. A mapping comes before the
 * first location that lies in it; go_pprof_times may be called at any time before go_pprof_finish.
 *
 * Ownership. What is given is copied before the call returns; the result is the caller's. One thread per writer.
 *
 * Units. Addresses are those of the running process; a caller's is the return address - 1. Wall time and duration are
 * nanoseconds; values are in the units their types name, and may be below zero.
 *
 * Limits. Of more than GO_PPROF_MAPS_MAX mappings the last are not written, what lies in them has none. A text is cut
 * at GO_PPROF_TEXT_MAX bytes, malformed UTF-8 in it is replaced; all different ones together may take 16 MB. A sample
 * has at most 1 MB. Memory: 270 KB for the compressor; some 20 bytes for a location, 20 for a function, 35 for a text
 * besides its characters; and the result, in a buffer that grows to at most max_bytes.
 *
 * Errors. What fails (a limit, memory) is remembered, everything after it does nothing, and go_pprof_finish tells it.
 *
 * Format: https://github.com/google/pprof/blob/main/proto/profile.proto; the use of its fields as in Go's
 * src/runtime/pprof/proto.go: a function's name is its system name, too, and its first line is not told.
 */
#ifndef RUNTIME_GO_PPROF_H
#define RUNTIME_GO_PPROF_H

#include "base/err.h"
#include "base/str.h"
#include "runtime/go/table/table.h"

struct go_pprof;

struct go_value_type {
    const char *type, *unit;
};

enum { GO_PPROF_VALUES_MAX = 4, GO_PPROF_MAPS_MAX = 256, GO_PPROF_TEXT_MAX = 4096 };

struct go_pprof_kind { /* of a profile */
    struct go_value_type values[GO_PPROF_VALUES_MAX];
    size_t value_count;
    struct go_value_type period_type; /* type null: none */
    int64_t period;
    const char *default_type; /* default_sample_type; null: none */
    const char *comment;      /* null: none */
};

struct go_pprof_label { /* a text, or, where it is null, a number */
    const char *key;
    const struct str *text;
    int64_t number;
    const char *unit; /* of the number; null: none */
};

/* Null: no memory. max_bytes bounds the gzip'd result. */
struct go_pprof *go_pprof_new(const struct go_pprof_kind *kind, size_t max_bytes);
void go_pprof_free(struct go_pprof *p);

/* When the profile was taken (since 1970) and what time it covers; 0: not said. */
void go_pprof_times(struct go_pprof *p, uint64_t wall_ns, uint64_t duration_ns);

/* An executable mapping, from start to before limit; the program's own comes first. It is written as one whose
 * functions are named, so that tools do not look for its file. */
void go_pprof_map(struct go_pprof *p, uint64_t start, uint64_t limit, uint64_t file_offset, struct str path,
                  struct str build_id);

/* The id of the location that this address has already, or 0. */
uint64_t go_pprof_known(const struct go_pprof *p, uint64_t address);

/* The location of an address; ids count from 1. Its functions come innermost first, as go_table_lookup gives them
 * (count 0: no name is known); what is told of an address that is known already is not looked at. Address 0: what is
 * known by name alone; equal single frames have one location. 0: the profile has failed. */
uint64_t go_pprof_location(struct go_pprof *p, uint64_t address, const struct go_frame *frames, size_t count);

/* Leaf first; locations that were not given out, as 0, are left out. Of values there are as many as the kind says. */
void go_pprof_sample(struct go_pprof *p, const uint64_t *locations, size_t count, const int64_t *values,
                     const struct go_pprof_label *labels, size_t label_count);

/* Replaces out by the gzip'd profile; out is the caller's to release. Called once. */
bool go_pprof_finish(struct go_pprof *p, struct buf *out, struct err *err);

/* Bytes it holds beside the compressor's and the result's. */
size_t go_pprof_bytes(const struct go_pprof *p);

#endif
