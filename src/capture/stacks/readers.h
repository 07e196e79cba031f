/*
 * readers: the runtimes of the followed processes.
 *
 * Concept. Whether a file holds a runtime that can be read is asked once per image, when some process
 * has it mapped; where its tables are, once per process (runtime.h). A process gets a reader for each
 * runtime that it has: what catchers need to walk its stacks (catch.h), and what the sampler needs to name them.
 * Its readers are a list from target.reader, the oldest first (reader.next).
 * Where threads may be held (stops), every process without perf events has one, for its native stacks.
 * A process is checked again when its mappings change (a library may be loaded late, an exec ends
 * everything), and, when a runtime could not be attached to, a few times with growing pauses: it may be
 * starting. What cannot be read is logged once, with the reason. A process without a runtime whose native
 * stacks are larger than a sample can copy (target.deep) has a reader for the rest of them.
 *
 * Call order. readers_init; each round readers_refresh; when it returns true the set has changed, and
 * catch_publish(readers_table) must follow before readers_sweep; per sample readers_of, readers_native,
 * readers_frames; readers_end_window; readers_release.
 *
 * Used by the sampler alone. A reader lives until its process has ended or become another program, and
 * readers_sweep was called.
 */
#ifndef CAPTURE_READERS_H
#define CAPTURE_READERS_H

#include "capture/catch/catch.h"
#include "capture/log.h"
#include "capture/settings.h"
#include "capture/follow/targets.h"
#include "capture/unseen.h"
#include "profile/weave.h"

struct readers_binary { /* what an image is to the runtimes */
    uint64_t image;               /* that was asked about; IMAGE_NONE: none was */
    const struct runtime *runtime; /* null: none */
    void *binary;
    const struct runtime *unread; /* it is of this one, and cannot be read, … */
    char *why;                    /* … because; owned */
};

struct reader_tids {
    VEC(struct catch_tid) list; /* by tid */
};

enum { READERS_PER_PROCESS = WEAVE_RUNTIMES_MAX };

struct reader {
    struct reader *next;           /* of the same process */
    struct target *target;         /* null: it was dropped, and waits for readers_sweep */
    uint64_t drop_ns;              /* monotonic; 0: its process has not ended */
    uint32_t pid;
    uint64_t serial;
    uint64_t program;              /* of the target: what was found is of no other one */
    uint64_t image, bias;          /* of the binary that holds the runtime */
    const struct runtime *runtime; /* null: only native stacks are read, or what lies beyond deep ones */
    const void *binary;
    void *state, *names;
    struct remote remote;
    struct remote_caller caller;   /* of the sampler */
    struct memory_batch memory;
    struct map frames;             /* of the running window: what tells a frame -> frame of the profile */
    uint32_t window;
    struct reader_tids tids;       /* of a process in another PID namespace; else empty */
    bool is_inner;                 /* it is in one */
    uint64_t tids_ns;              /* monotonic: when they are listed again */
    uint32_t failed;               /* walks in a row that gave nothing */
    bool is_suspect;               /* so many that it is to be attached to anew */
    struct identity identity;      /* as whom its threads are held, if … */
    bool as_user;                  /* … not as ourselves */
    const struct world *world;     /* for files of its process */
};

/* Why a process that has a runtime has no reader. */
struct reader_refusal {
    uint32_t pid;
    uint64_t start_ticks;
    char why[ERR_TEXT_MAX];
};
enum { READERS_REFUSALS_MAX = 32 }; /* of more processes none is noted */

struct readers {
    const struct settings *settings;
    const struct runtime *const *runtimes; /* the registry; ends with null */
    struct targets *targets;
    struct images *images;
    struct log *log;
    struct unseen *unseen;         /* may be null */
    bool stops;                    /* threads of processes without perf events may be held */
    bool stops_useless;            /* they would not be, were it asked for (shared.h) */
    bool collects;                 /* somebody asks runtimes for profiles of their own */
    VEC(struct readers_binary) binaries; /* by images_place */
    VEC(struct readers_binary) orphans;  /* of images that are gone: some reader has them still */
    VEC(struct reader *) all;
    VEC(struct reader *) ended;    /* until readers_sweep */
    VEC(struct reader_tids) old_tids; /* until readers_sweep */
    VEC(struct catch_target) table;
    uint64_t serials;
    VEC(struct reader_refusal) refusals;
    struct err refused;            /* of the latest runtime that was found and cannot be read … */
    const struct runtime *refuser; /* … and it */
    uint64_t next_refresh_ns;      /* monotonic: when readers_refresh has something to do again by time alone */
    struct buf text;               /* scratch */
    VEC(struct runtime_map) maps;  /* scratch */
    VEC(uint32_t) tids;            /* scratch */
    VEC(struct runtime_frame) unnamed; /* scratch: asked for together … */
    VEC(struct runtime_name) found; /* … and their answers */
};

void readers_init(struct readers *r, const struct settings *settings, struct targets *targets,
                  struct log *log);

/* Catchers must have stopped. */
void readers_release(struct readers *r);

/* Checks targets that are new, have changed, or are due again. True: the table has changed. */
bool readers_refresh(struct readers *r, uint64_t now_ns);

/* What catchers may read: of processes that are read by a timer, or of those whose samples are caught. Valid until the
 * next call. */
const struct catch_target *readers_table(struct readers *r, bool timed, size_t *count);

/* One of the process's runtimes has stacks to be walked. */
bool readers_walk(const struct target *target);

/* A process's threads may not be held, as a warning, once for each `key`, and as a reason of what is missing. */
void readers_tell_unstoppable(struct readers *r, const struct target *target, const char *key, const char *why);

/* Frees what has ended. */
void readers_sweep(struct readers *r);

/* After images_sweep: forgets what the images that are gone were to the runtimes. */
void readers_forget_images(struct readers *r);

/* The reader of the target that gave this serial; null when it is no more, or its program. */
struct reader *readers_of(struct readers *r, const struct target *target, uint64_t serial);

/* What a native frame is to this reader's runtime. */
enum runtime_native readers_native(const struct reader *reader, uint64_t image,
                                   uint64_t elf_address);

/* The frames of the profile that these stand for; 0 where the profile is full. */
void readers_frames(struct readers *r, struct reader *reader, struct profile *p,
                    const struct runtime_frame *frames, size_t count, uint32_t *out);

/* Notes how a walk ended. A process whose walks all fail is attached to anew. */
void readers_walked(struct readers *r, struct reader *reader, enum runtime_end end);

/* Notes in the profile which runtimes its processes have, or why they cannot be read, and drops the readers of
 * those that ended: catch_publish must follow. Before targets_end_window. */
void readers_end_window(struct readers *r, struct profile *p);

#endif
