/*
 * metrics: what a Go program's memory and collector did between two moments, as dd-trace-go's metrics.json.
 *
 * Call order: go_memstats_of_text, go_memstats_of_json or go_memory_counts for each of two moments of the same program
 * (in the first the goroutines need not be known), go_memstats_goroutines for the second; go_metrics. The
 * state of one period's end is that of the next one's beginning.
 *
 * Where the numbers come from:
 *   text   the end of /debug/pprof/heap?debug=1, behind "# runtime.MemStats". It lacks the sum of pauses: the pauses of
 *          the cycles since the first state are added up. Of more than GO_PAUSES cycles only the last are known, and
 *          stand for all
 *   json   /debug/vars, its member "memstats"
 *   goroutines   the first line of /debug/pprof/goroutine?debug=1, "goroutine profile: total 7"; neither of the other
 *          two has their number
 *   memory of the process: memory/memory.h (go_memory_counts)
 *
 * The names, values as numbers a second unless said otherwise:
 *   go_alloc_bytes_per_sec, go_allocs_per_sec, go_frees_per_sec
 *   go_heap_growth_bytes_per_sec   below 0 where the heap shrank
 *   go_gcs_per_sec
 *   go_gc_pause_time               the world was stopped: share of the time
 *   go_max_gc_pause_time           ns: the longest pause of the cycles between the two states
 *   go_num_goroutine               at the second; left out where it is not known
 *
 * Errors. Answers without these numbers, or that are no such text, are ERR_MALFORMED.
 *
 * Format: Go source src/runtime/mstats.go, src/runtime/pprof/pprof.go (writeHeapInternal), src/expvar.
 */
#ifndef RUNTIME_GO_METRICS_H
#define RUNTIME_GO_METRICS_H

#include "base/err.h"
#include "base/str.h"

enum { GO_PAUSES = 256 };

struct go_memstats {
    uint64_t total_alloc, mallocs, frees, heap_alloc; /* bytes and numbers since the program's start; bytes now */
    uint64_t num_gc;                                  /* cycles since the start */
    uint64_t pause_total_ns;
    bool has_pause_total;
    uint64_t pause_ns[GO_PAUSES]; /* of cycle c, counted from 1, at (c - 1) % GO_PAUSES */
    uint64_t num_goroutine;
    bool has_num_goroutine;
};

bool go_memstats_of_text(struct str text, struct go_memstats *out, struct err *err);
bool go_memstats_of_json(struct str text, struct go_memstats *out, struct err *err);

/* Adds the number of goroutines. */
bool go_memstats_goroutines(struct str text, struct go_memstats *stats, struct err *err);

/* Appends the list of [name, number]. elapsed_ns: between the two states; 0 is ERR_USAGE. ERR_GONE where a counter
 * fell: it is another program, or the same started again; nothing is appended then. */
bool go_metrics(const struct go_memstats *before, const struct go_memstats *now, uint64_t elapsed_ns, struct buf *json,
                struct err *err);

#endif
