/*
 * trace: an execution trace by a Go program's address, of limited size, now and then.
 *
 * Concept. What the scheduler and the collector did, event by event: for `go tool trace`, and Datadog's time lines. A
 * program has one such recorder, and it costs some percent of its speed, so it is asked only where somebody says so,
 * and once in GO_TRACE_PERIOD_S, as Datadog's library does. A trace is over at the end of the window, after a minute,
 * and when it is to have 5 MB in the end.
 *
 * Its end. A trace that is cut off is none: before Go 1.22 its stacks stand at the end, since then at the end of each
 * second. So the connection is half closed: the program's server sees that as its client's end, which ends the
 * recording in order, and what is left of it is still written, and read. What does not end so within END_MS is given
 * up; what has more than BODY_MAX bytes then is asked for anew, for half as long as it took, which its server ends
 * by itself; a server of before Go 1.22 whose WriteTimeout forbids a minute, for some seconds.
 *
 * The program keeps in its memory what is not read. So for the first second it is read all the time; who fills it
 * as fast as that is known then.
 *
 * Call order: go_trace_tick again and again, of a struct that is zero at first; go_trace_end when the window is over;
 * go_trace_release.
 *
 * Sources: Go, src/net/http/pprof/pprof.go (Trace), src/net/http/server.go (backgroundRead), src/internal/trace; the
 * numbers are those of DD_PROFILING_EXECUTION_TRACE_PERIOD and _LIMIT_BYTES.
 */
#ifndef RUNTIME_GO_TRACE_H
#define RUNTIME_GO_TRACE_H

#include "runtime/go/endpoint.h"

enum { GO_TRACE_PERIOD_S = 900 };

struct go_trace {
    struct stream stream;
    struct buf body;              /* the answer so far; the trace, once it is true that there is one */
    bool runs;
    unsigned ms;                  /* asked for; 0: as long as may be */
    uint64_t began_ns, next_ns;   /* monotonic: the present one, or the last; the next */
};

/* True: `body` has a whole trace, which is the caller's. False with a reason: there is none until the next period;
 * without: not yet. */
bool go_trace_tick(struct go_trace *t, const struct process_port *port, const struct go_endpoint *at, struct err *why);

/* The same of what runs, which ends now. */
bool go_trace_end(struct go_trace *t, const struct process_port *port, struct err *why);

void go_trace_release(struct go_trace *t);

#endif
