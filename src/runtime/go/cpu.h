/*
 * cpu: CPU profiles by a Go program's address, one after the other, where it may be asked for them.
 *
 * A program has one recorder of CPU time: while we have it, the program's own tools are told that it is in use, and the
 * other way round. So it is asked only where somebody says so. A profile takes GO_CPU_SECONDS; the connection waits for
 * it, nobody else does. It tells no threads: the process's CPU time is shared out among its stacks.
 *
 * Call order: go_cpu_tick again and again, of a struct that is zero at first; go_cpu_stop, which ends what runs.
 */
#ifndef RUNTIME_GO_CPU_H
#define RUNTIME_GO_CPU_H

#include "runtime/go/endpoint.h"

enum { GO_CPU_SECONDS = 5 };

struct go_cpu {
    struct stream stream;
    bool runs;           /* a profile is being made */
    uint64_t next_ns;    /* monotonic: it is looked after, or begun, then */
};

/* True: `profile` has one, gzip'd pprof. False with a reason: it cannot be had now, and is asked for again after a
 * pause; without: not yet. */
bool go_cpu_tick(struct go_cpu *cpu, const struct process_port *port, const struct go_endpoint *at, struct buf *profile,
                 struct err *why);

/* The program stops recording when the connection is closed. */
void go_cpu_stop(struct go_cpu *cpu);

#endif
