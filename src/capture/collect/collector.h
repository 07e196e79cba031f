/*
 * collector: the thread that speaks with runtimes which make a profile of themselves (runtime.h, verb collect).
 *
 * Concept. Each process is a job: begun, read from now and then, ended. A conversation takes from milliseconds to
 * seconds, so all of them are held on one thread, one after the other; what they bring, files, waits with the job until
 * it is taken. The thread has sockets of few kinds only and no perf events (os/confine.h).
 *
 * Call order. collector_new; collector_run before confine_reader; collector_begin of a process; collector_read, and
 * collector_wait if it matters; collector_take until there is nothing; collector_end; collector_free. Everything but
 * the conversations is the sampler's.
 *
 * Ownership. A job is the collector's, and is valid until collector_end. A process that is still being spoken with then
 * is let alone when that is done.
 *
 * Errors. A job that could not begin, or whose profile has ended, is COLLECT_OVER with the reason.
 */
#ifndef CAPTURE_COLLECT_COLLECTOR_H
#define CAPTURE_COLLECT_COLLECTOR_H

#include "profile/runtime_profile.h"
#include "runtime/runtime.h"

struct collector;
struct collect_job;

enum collect_state { COLLECT_BEGINS, COLLECT_RUNS, COLLECT_OVER };

/* Null when memory ends. */
struct collector *collector_new(void);

/* Starts the thread; `confined`: it gives up what it does not need, which is TCP but where some runtime is dialed.
 * False: there is none, and nothing is collected. */
bool collector_run(struct collector *c, bool confined, bool dials, struct err *err);

bool collector_runs(const struct collector *c);

/* Null: no memory, or no thread. */
struct collect_job *collector_begin(struct collector *c, uint32_t pid, const struct runtime *runtime,
                                    const struct runtime_target *how);

enum collect_state collector_state(struct collector *c, const struct collect_job *job, struct err *why);

/* Has everything read that was written; `whole`: what is still being written, too. */
void collector_read(struct collector *c, bool whole);

/* Of the next whole reading it is left out. */
void collector_skip(struct collector *c, struct collect_job *job);

/* Waits until nothing is to be done any more, but no longer than so. */
void collector_wait(struct collector *c, uint64_t most_ns);

/* What a runtime made: with a type it is published as it is (struct runtime_sink). */
struct collected_file {
    char type[RUNTIME_PROFILE_TYPE_MAX]; /* "": none */
    struct buf bytes;
};

/* The oldest file that was brought, whose bytes are the caller's then. False: there is none. `lost`: so many since the
 * last call had no room. */
bool collector_take(struct collector *c, struct collect_job *job, struct collected_file *file, size_t *lost);

/* Lets go of a job: what still runs of it ends, and what it has brought is lost. */
void collector_end(struct collector *c, struct collect_job *job);

/* Ends all that runs, within some seconds; what is brought then can be taken. False: a conversation is held up. */
bool collector_stop(struct collector *c);

/* The same, and frees all; what a thread that is held up uses stays. */
void collector_free(struct collector *c);

#endif
