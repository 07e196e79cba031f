/*
 * inspector: node's own debugger's port, opened for a profile of JavaScript and closed again.
 *
 * Concept. Node opens it at SIGUSR1 on a port of the loopback interface. While it is open, whoever reaches that port
 * and is told, or guesses, a name there may run code in the process: so it is asked for by name only, stays open no
 * longer than a session, and is seen to be closed. A process tells on its standard error that it was opened, and
 * that somebody came. One port serves one process at a time.
 *
 * Call order. inspector_may; inspector_knock; inspector_opened until it is true; inspector_enter; inspector_attend
 * often; inspector_take; inspector_leave. Between, inspector_restart goes on with the profile that was just taken.
 *
 * Units. Ports are of the target's network namespace; hit_ns is what one tick of the profiler stands for.
 *
 * Sources: Node's documentation ("Debugging Node.js", Signal Events, --inspect-port), Chrome's DevTools protocol
 * (Profiler, Runtime), Node's own domains NodeRuntime and NodeWorker; node 10 to 26 themselves.
 */
#ifndef RUNTIME_V8_INSPECTOR_H
#define RUNTIME_V8_INSPECTOR_H

#include "base/iface.h"
#include "runtime/runtime.h"

struct inspector;

enum { INSPECTOR_BEFORE_MAX = 64 };

/* As the process was started. */
struct inspector_options {
    uint16_t port;     /* 0: any; where it has opened it once inspector_opened is true */
    uint64_t before[INSPECTOR_BEFORE_MAX]; /* sockets that it listened at when it was asked */
    size_t before_count;
    bool is_open;      /* it was open before, which is not ours to close */
    bool is_public;    /* others than this machine would reach it */
    const char *never; /* a flag with which it cannot be asked; null */
};

bool inspector_may(const struct process_port *port, struct err *why);

/* Has it opened. ERR_UNSUPPORTED with EAGAIN: not now. */
bool inspector_knock(const struct process_port *port, struct inspector_options *o, struct err *why);

/* Has it opened? `anywhere`: also by a new socket at another port than was thought, for a program may change that. */
bool inspector_opened(const struct process_port *port, struct inspector_options *o, bool anywhere, bool *is_v6);

/* Is it open? */
bool inspector_listens(const struct process_port *port, const struct inspector_options *o, bool *is_v6);

/* Begins a profile of its main thread and of its workers, every interval_us. Null: it could not, and it is closed again
 * as far as can be. */
struct inspector *inspector_enter(const struct process_port *port, const struct inspector_options *o, bool is_v6,
                                  uint64_t interval_us, struct err *why);

/* Takes note of what has come. False: the process ends and waits for us, or the connection is over. */
bool inspector_attend(struct inspector *i);

/* Ends the profile and appends it as moments (encode/moments_read.h). */
void inspector_take(struct inspector *i, uint64_t hit_ns, struct buf *out);
void inspector_restart(struct inspector *i);

/* Closes it, and frees. False: the port is still open. */
bool inspector_leave(struct inspector *i, struct err *why);

/* ---- cpuprofile.c: a profile as V8 tells it, as moments of a thread ---- */

void cpuprofile_write(struct str profile, uint32_t tid, uint64_t hit_ns, struct buf *out);

/* ---- collect.c: the verb ---- */

void *v8_collect(const struct runtime_target *target, struct err *why);
bool v8_collect_tick(void *collection, uint64_t since_ns);
bool v8_collect_poll(void *collection, bool whole, const struct runtime_sink *sink, struct err *why);
void v8_collect_stop(void *collection, const struct runtime_sink *sink);

#endif
