/*
 * delta: what happened between two snapshots of one profile of one Go process.
 *
 * Concept. A Go program counts allocations, contentions and delays since it began. What a minute did is the difference
 * of two snapshots, made here and not in the program ("seconds=60" would have it hold both and would subtract what is
 * no sum, as the living objects). A snapshot is what net/http/pprof answers: pprof, packed with gzip or plain; so is
 * the difference. It is the one that Datadog's profiler for Go makes of its own program ("fastdelta").
 *
 * The rules.
 * - A sample is identified by the addresses of its locations in their order and by its labels, in any order: key,
 *   text, number, unit. Function names, mappings and the ids of this file are no part of it.
 * - Samples of one identity are added up, and stand where the first one stood.
 * - Of a column that grows since the process began, the difference to the last snapshot is written; a stack that was
 *   not there before began with 0. A sum that fell gives a negative value. Other columns are written as they are.
 * - Samples whose values are all 0 are left out; so are locations and functions that no sample leads to. All mappings
 *   stay. Texts that nothing names are written empty: an index means the same in both files.
 * - duration_nanos is the difference of both times. Fields of a profile behind number 14 are not passed on.
 * - A stack that is gone is not reported, and not forgotten.
 *
 * Call order. go_delta_new per profile and process; go_delta_take per snapshot, in their order; go_delta_free. Another
 * process, one that was restarted, too, gets a new one: the caller knows its processes.
 *
 * The first snapshot goes out with its values as they are: what was counted since the process began, and with its own
 * duration. With `baseline` (the caller came late to the process) columns that grow are 0 in it. For later snapshots
 * `baseline` says nothing.
 *
 * Errors. A snapshot that cannot be read, or a difference that does not fit `out`, poisons: what was known is dropped,
 * the next sound snapshot only says where to count from (true, with an empty `out`), the one after it is good again.
 *
 * Limits. GO_DELTA_COLUMNS_MAX sample types; ids of locations and functions and the number of texts up to 262,144 (Go
 * counts them from 1); those of delta_scan.h. More than GO_DELTA_STACKS_MAX stacks are not told apart: those beyond are
 * one sample, of one location without an address in the function "[other]". Sums are modulo 2⁶⁴, as Go's are.
 *
 * Memory. 30 to 40 bytes per stack are kept (delta_stacks.h). While a snapshot is read: 8 bytes per location, some bits
 * per stack, location, function and text, 8 bytes per text as far as labels and sample types name them, 60 to 100 bytes
 * per stack that stands there twice, and 350 KB. The snapshot is unpacked piece by piece, five times or six: for a heap
 * profile of 50,000 stacks (1.5 MB packed) all of it, with the snapshot and the result, stays below 5 MB.
 *
 * Format: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#ifndef RUNTIME_GO_DELTA_H
#define RUNTIME_GO_DELTA_H

#include "base/err.h"
#include "base/str.h"

enum { GO_DELTA_COLUMNS_MAX = 4 };

struct go_delta;

/* `growing`: names of the sample types that are counted since the process began, {"alloc_objects", "alloc_space"} or
 * {"contentions", "delay"}; at most GO_DELTA_GROWING_MAX, static texts. Null: no memory. */
struct go_delta *go_delta_new(const char *const *growing, size_t count);
void go_delta_free(struct go_delta *delta);

/* What it keeps between snapshots. */
size_t go_delta_bytes(const struct go_delta *delta);

/* In the last difference: 0, nothing has grown, and nothing is in use. */
size_t go_delta_samples(const struct go_delta *delta);

/* Replaces `out` by the packed difference; empty when there is none to be had yet, or after a failure. */
bool go_delta_take(struct go_delta *delta, struct str snapshot, bool baseline, struct buf *out, struct err *err);

#endif
