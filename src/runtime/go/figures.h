/*
 * figures: what a Go program's address tells as text: how long goroutines wait, and the numbers of metrics.json; these
 * also by its memory.
 *
 * Texts stop the program for a moment (a goroutine's stack is printed while nothing runs), so waits are asked for only
 * where there are at most GO_FIGURES_WAITS_MOST goroutines, as Datadog's library did, and the runtime's numbers are
 * taken from /debug/vars (expvar), or else from the text of a heap profile, where that is small, or else, and where
 * there is no address, from memory, which stops nobody.
 */
#ifndef RUNTIME_GO_FIGURES_H
#define RUNTIME_GO_FIGURES_H

#include "runtime/go/endpoint.h"
#include "runtime/go/memory/memory.h"
#include "runtime/runtime.h"

enum { GO_FIGURES_WAITS_MOST = 1000 };

struct go_figures {
    struct go_memstats before;
    uint64_t before_ns; /* monotonic; 0: none yet */
    bool has_no_vars;   /* it has no /debug/vars */
};

/* What there is to be asked. */
struct go_figures_from {
    const struct process_port *port;
    const struct go_endpoint *at; /* null: no address */
    size_t heap_bytes;            /* of the last heap profile of that, packed */
    struct go_memory *memory;     /* null: it cannot be read */
    const uint64_t *goroutines;   /* how many there are by memory; null: not known */
};

/* What a first take compares with. */
void go_figures_begin(struct go_figures *f, const struct go_figures_from *from);

/* Hands over "goroutinewait", if that is wanted and there is an address, and "metrics.json", as far as there are; the
 * latter where something was seen before. */
void go_figures_take(struct go_figures *f, const struct go_figures_from *from, bool wants_waits,
                     const struct runtime_sink *sink);

#endif
