/*
 * fold: a profile's call tree as people read it.
 *
 * In the profile two addresses of one function are two frames; here they are one node. A fold is a
 * tree keyed by (parent, name, kind) with a self weight per node. The name of a function that is called
 * "f (a.py:12)" is "f (a.py)" here: where it begins differs from version to version of its file. Node 0
 * is the root ("all"); a child always has a larger index than its parent, so totals are one backward pass
 * (done already) and no recursion is ever needed.
 *
 * FOLD_BY_PROCESS puts two levels below the root: the process, named "comm (pid N)", or where the
 * profile does not know pids "comm (container)" or "comm", then, only where it differs from the
 * process's name, the thread's name. FOLD_BY_COMM puts the container name (only when not empty) and
 * the thread's comm, as collapsed files do. These extra levels have kind FOLD_KIND_PROCESS,
 * _THREAD, _CONTAINER. FOLD_TOGETHER has no such level: the stacks of all threads begin at the root.
 *
 * Where the profile keeps moments, a fold by process also tells at which node each sample ends, so that who writes
 * moments finds those of a node: 8 bytes per sample.
 *
 * Names are string ids of the profile. Inlined functions are nodes below the one they are inlined
 * into. Memory: 40 bytes per node and 4 per frame, and while fold_build runs 8 per node of the profile's tree (with
 * inlined functions 4 more, and 16 per function of a node) and 4 per sample, frame and string. The
 * fold borrows nothing but the ids. Time: one visit per (process or thread, node of the profile)
 * and a sort of every list of siblings.
 */
#ifndef PROFILE_FOLD_H
#define PROFILE_FOLD_H

#include "profile/profile.h"

enum fold_kind {
    FOLD_KIND_PROCESS = FRAME_KIND_COUNT, /* kinds below this are enum frame_kind */
    FOLD_KIND_THREAD,
    FOLD_KIND_CONTAINER,
};

enum fold_top { FOLD_BY_PROCESS, FOLD_BY_COMM, FOLD_TOGETHER };

struct fold_node {
    uint64_t self_ns;
    uint64_t total_ns; /* self and everything below */
    uint32_t parent;
    uint32_t name;         /* string id of the profile; 0 for the root */
    uint32_t first_child;  /* 0 none; heaviest first, ties by name */
    uint32_t next_sibling; /* 0 none */
    uint32_t process;      /* process id of a FOLD_KIND_PROCESS node, else 0 */
    uint8_t kind;          /* enum frame_kind or enum fold_kind */
};

/* Where a sample's time is. */
struct fold_place {
    uint32_t node, sample;
};

struct fold {
    VEC(struct fold_node) nodes;
    VEC(struct fold_place) places; /* by node, then sample; empty: by comm, or there are no moments */
    uint32_t *name_of; /* by frame of the profile: string id of its name here */
};

/* Frames must be named. Process names that need a pid, and names without their line, are added to the
 * profile's strings, hence it is not const; nothing else in it changes. */
bool fold_build(struct fold *fold, struct profile *p, enum fold_top top, struct err *err);
void fold_release(struct fold *fold);

#endif
