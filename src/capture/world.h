/*
 * world: what capture asks of the system about the processes it follows.
 *
 * The caller of capture_run chooses who answers: the system itself (world_here), or, in the tests, a
 * recorder in front of it and a recording played back (tests/lab/recording.h). So one pipeline serves a
 * live run, the making of a recording and its replay without any right.
 *
 * Pids are those of our PID namespace. A file stays readable when its process has ended and when its
 * name is gone; the caller closes it.
 */
#ifndef CAPTURE_WORLD_H
#define CAPTURE_WORLD_H

#include "base/iface.h"

#include <stdint.h>

struct door;

enum { WORLD_SILENT_MAX = 200 }; /* bytes of a path that is told, cut to that */

struct world_file {
    struct memory_reader reader; /* addresses are offsets in the file */
    void *handle;
    bool may_stall;              /* its file system may not answer: then the reader refuses */
};

/* Names the file system that a process sees. */
struct world_root {
    uint64_t device, inode, mounts; /* of its root directory, and its mount namespace */
};

struct world_mapping {
    struct str path;        /* as maps or an MMAP2 record name it */
    uint64_t inode;
    uint64_t start, limit;  /* of the mapping */
};

struct world {
    /* Replaces `out` by /proc/PID[/task/TID]/NAME; of "cwd" by where it leads. */
    bool (*text)(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out,
                 struct err *err);
    /* The file a process has mapped under this name. */
    bool (*mapped)(void *context, uint32_t pid, const struct world_mapping *mapping,
                   struct world_file *out, struct err *err);
    /* Which root a process has; false when it cannot be told. */
    bool (*root_of)(void *context, uint32_t pid, struct world_root *out);
    /* Keeps the root of a process open. */
    bool (*open_root)(void *context, uint32_t pid, void **out);
    void (*close_root)(void *context, void *root);
    /* A file below a root; a null root is our own. */
    bool (*under)(void *context, void *root, const char *path, struct world_file *out);
    /* The process's perf map, which its owner wrote; false while there is none. */
    bool (*perf_map)(void *context, uint32_t pid, struct world_file *out);
    void (*close)(void *context, struct world_file *file);
    /* The memory of a process, for the sample taken at moment_ns. The reader is good until the next
     * call. */
    struct memory_reader (*memory)(void *context, uint32_t pid, uint64_t moment_ns);
    /* How many files did not answer so far, and which was the latest. May be null. */
    unsigned (*silent)(void *context, char path[static WORLD_SILENT_MAX]);
    struct str vdso;
    bool kernel_symbols; /* the kernel's symbols are those of this machine */
    void *context;
};

struct world world_here(void);

/* The same where file systems may not answer (os/door.h). The door is borrowed; null is the same as world_here. */
struct world world_behind(struct door *door);

/* Replaces `out` by a file as a process sees it. */
bool world_read(const struct world *world, uint32_t pid, const char *path, struct buf *out);

#endif
