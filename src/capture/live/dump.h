/*
 * dump: the stack of every thread of a process now, what each waits for, and who holds what (pillion dump).
 *
 * Concept. A run of the usual kind that ends as soon as each thread was seen once: after DUMP_MS, and
 * DUMP_THREAD_MS for each thread, at the latest. A thread that does not run (it sleeps, waits for a disk, is stopped)
 * is read by the place that the kernel tells, its runtime's stack woven in, and believed when it had not run meanwhile
 * (stacks/waits.h). For one that runs the first whole sample is awaited: by perf, by its runtime's reader, by a brief
 * stop, whatever there is. Nothing is written; nobody is stopped but by --brief-stops, nor sent a signal.
 *
 * What a thread waits for is told by its system call: a word, the descriptor and what that is, the futex. A mutex of
 * glibc or musl says who holds it, in its own memory: believed when what is read twice is the same, and the holder a
 * thread of that process. Threads that wait for each other in a circle are a deadlock (dump_circle.h).
 *
 * Call order: dump_new; the concern's moments, of the sampler; then the publisher has the profile taken, which
 * writes what was found.
 *
 * Limits: DUMP_THREADS_MAX threads. Threads that begin while the others are looked at are not seen.
 */
#ifndef CAPTURE_LIVE_DUMP_H
#define CAPTURE_LIVE_DUMP_H

#include "capture/collect/collecting.h"
#include "capture/concern.h"
#include "capture/shared.h"
#include "capture/stacks/waits.h"
#include "capture/window/whole_run.h"

enum {
    DUMP_MS = 500,
    DUMP_THREAD_MS = 4,
    DUMP_THREADS_MAX = 8192,
    DUMP_WAIT_MAX = 160,
    DUMP_COMMAND_MAX = 160,
    DUMP_NAME_MAX = 64,
};

struct dump_thread {
    uint32_t pid, tid;
    uint32_t inner;   /* its number in its own PID namespace */
    char state;       /* as in stat: R S D T Z …; 0: it has ended */
    bool is_seen;
    uint8_t tries;    /* looks that found no stack of its runtime */
    uint32_t thread;  /* of the profile: its name and labels */
    uint32_t node;    /* its stack; 0: not known */
    uint64_t locks[WAITS_LOCKS]; /* as in struct waits_found */
    uint64_t futex;   /* it waits at; 0: at none */
    uint32_t holder;  /* who has the lock: 1 + its place among its process's threads; 0: not known */
    uint32_t circle;  /* deadlock that it is in, from 1; 0: none */
    uint32_t expected; /* what its futex's word was when it began to wait */
    char wait[DUMP_WAIT_MAX]; /* what it waits for, in words; "": nothing is known */
};

/* A task of an event loop that waits. */
struct dump_task {
    uint64_t id, awaited_by; /* as in struct runtime_task */
    uint32_t node;           /* of its awaits; 0: not known */
    uint32_t thread;         /* of its loop: 1 + its place among its process's threads; 0: not known */
    bool is_shown;           /* scratch of who shows them */
    char name[DUMP_NAME_MAX];
};

struct dump_process {
    uint32_t pid;
    uint32_t process;                /* in the profile */
    size_t first, count;             /* of its threads */
    size_t first_task, tasks;
    size_t tasks_changed;            /* while they were read: they are left out */
    char command[DUMP_COMMAND_MAX];
    char why[ERR_TEXT_MAX];          /* stacks are missing */
};

/* All that is shown; threads of a process stand together. */
struct dump_found {
    VEC(struct dump_process) processes;
    VEC(struct dump_thread) threads;
    VEC(struct dump_task) tasks;     /* by process, too */
    uint32_t circles;
    uint64_t wall_ns;
    const char *mode;
};

/* How it is shown. */
struct dump_form {
    bool json;
    bool all_frames;
    size_t columns; /* 0: as wide as lines are */
    size_t rows;    /* of the screen; 0: everything is shown */
};

struct dump_request {
    struct dump_form form;
    struct buf out; /* what is to be shown; its owner gives it a maximum */
    bool any_stack; /* there is one in it */
};

struct dump;

extern const struct concern dump_concern;

/* Null when memory ends. All is borrowed. */
struct dump *dump_new(struct shared *shared, struct stacks *stacks, struct readers *readers, struct targets *targets,
                      struct dump_request *request);

/* Does not end before these have begun. */
void dump_await(struct dump *dump, const struct collecting *collecting);

/* Of the publisher's: has what was found written into the request. */
struct whole_run_viewer dump_viewer(struct dump *dump);

void dump_text(const struct dump_found *found, const struct profile *p, const struct dump_form *form, struct buf *out);
void dump_json(const struct dump_found *found, const struct profile *p, struct buf *out);

#endif
