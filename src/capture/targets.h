/*
 * targets: the processes and threads that are followed, as the records tell of them.
 *
 * The table is fed in time order by perf's COMM, FORK, MMAP2 and EXIT records, or, for what ran
 * before us, from /proc (comm and maps). It answers two questions per sample: which thread of the
 * profile is this, and which mapping holds this address.
 *
 * A target whose process ended stays until targets_end_window, because its samples and its share of
 * the books belong to the window that is running. Profile ids cached here (process, thread, module)
 * are valid for one window: `window` counts them.
 *
 * Used by the sampler alone. Pointers to a target stay valid until targets_end_window; pointers to
 * mappings until the next change of that target's mappings.
 */
#ifndef CAPTURE_TARGETS_H
#define CAPTURE_TARGETS_H

#include "base/map.h"
#include "base/vec.h"
#include "capture/images.h"
#include "profile/profile.h"
#include "sample/record.h"

enum { COMM_MAX = 16 };

struct mapping {
    uint64_t start, limit, file_offset;
    uint64_t image;         /* images.h; IMAGE_NONE for anonymous memory */
    uint64_t bias;          /* runtime address - ELF address */
    uint32_t module;        /* in the profile of window `window` */
    uint32_t window;
};

/* CPU time as the kernel's books have it: utime and stime of /proc/PID/stat. */
struct cpu_times {
    uint64_t user_ns, system_ns;
    uint64_t children_ns; /* of children that ended and were waited for */
};

struct target {
    uint32_t pid;
    uint64_t start_ticks;    /* 0: not known yet */
    char name[COMM_MAX];
    VEC(struct mapping) maps; /* by start, not overlapping, executable ones only */
    bool maps_read;          /* from /proc, or complete because all records since exec were seen */
    uint64_t space;          /* names the mappings as they are now: changes with them, never 0 */
    uint32_t stack_bytes;    /* that its samples copy (dumps.h) */
    uint32_t stacks_seen, stacks_short; /* since that was set: unwound, and cut where the copy ends */
    uint32_t stacks_half;    /* of those seen: larger than half of the copy */
    uint32_t stack_changes;  /* of stack_bytes, so far */
    uint64_t generated;      /* image of the code it generates; IMAGE_NONE: not seen yet */
    uint64_t maps_retry_ns;  /* monotonic; not before this is /proc/PID/maps read again */
    uint64_t maps_wait_ns;   /* back-off of these retries */
    uint8_t rung;            /* enum rung */
    bool ended;
    uint64_t began_ns, ended_ns; /* monotonic, by FORK and EXIT records; 0 unknown */

    /* the books, see accounts.h */
    struct cpu_times before; /* at the beginning of the window */
    struct cpu_times last;   /* as read last */
    uint64_t sampled_ns;     /* weight of this window's samples */
    uint64_t glanced_at_ns;  /* monotonic: when `last` was read; 0 never */
    uint64_t since_glance_ns; /* weight of the samples taken later than that */
    uint64_t accounted_ns;   /* attributed from /proc in this window */
    uint64_t pending_user_ns, pending_system_ns; /* of it, not yet shared out among the threads */
    uint32_t idle_polls;     /* since it used CPU time last */
    uint64_t lifetime_ns;    /* its own and its children's that its parent's children_ns will hold */
    uint32_t parent_pid;
    uint64_t lost_children_ns; /* CPU of tracked children that ended, to be taken off children_ns */
    uint32_t threads_seen;
    uint32_t alive;          /* threads that live, by FORK and EXIT; 0: not counted (it ran before) */
    bool final_known;        /* the times in `last` are those of the window's end */

    uint32_t process;        /* in the profile of window `window` */
    uint32_t window;
};

struct target_thread {
    uint32_t tid, pid;
    char name[COMM_MAX];
    bool named;
    bool ended;
    uint64_t cpu_ns;         /* schedstat, as read last; for accounting from /proc */
    uint32_t thread;         /* in the profile of window `window` */
    uint32_t window;
};

struct targets {
    VEC(struct target *) all;
    struct map by_pid;       /* pid -> index into all */
    VEC(struct target_thread) threads;
    struct map by_tid;       /* tid -> index into threads */
    struct images *images;
    struct buf text;         /* scratch for /proc texts */
    uint32_t window;         /* of the running profile, from 1 */
    uint64_t spaces;         /* given out so far */
    uint32_t stack_bytes;    /* of a process that is new here */
    bool container_names;
};

void targets_init(struct targets *t, struct images *images, bool container_names);
void targets_release(struct targets *t);

/* Drops what ended and makes all cached profile ids invalid. */
void targets_end_window(struct targets *t);

struct target *targets_find(struct targets *t, uint32_t pid);

/* The target of a process that may be new here; null only when memory ends. A new one takes its name
 * from /proc. */
struct target *targets_get(struct targets *t, uint32_t pid);

struct target_thread *targets_thread(struct targets *t, uint32_t pid, uint32_t tid);

/* What records say. */
void targets_fork(struct targets *t, uint32_t pid, uint32_t tid, uint32_t parent_pid,
                  uint32_t parent_tid, uint64_t time_ns);
void targets_comm(struct targets *t, uint32_t pid, uint32_t tid, struct str name, bool exec);
void targets_exit(struct targets *t, uint32_t pid, uint32_t tid, uint64_t time_ns);

/* Reads the process's name again from /proc. */
void targets_rename(struct targets *t, struct target *target);

/* The same by record: MMAP, COMM, FORK, EXIT; others change nothing. */
void targets_take(struct targets *t, const struct record *record);

void targets_map(struct targets *t, struct target *target, const struct mapped_file *file);

/* Takes the mappings of a process that ran before us from /proc/PID/maps; false when it may not be
 * read or has none any more. Later ones come by records, so this is called after sampling began. */
bool targets_read_maps(struct targets *t, struct target *target);

/* The mapping that holds an address, or null. May read /proc/PID/maps (with back-off) when there is
 * none. */
struct mapping *targets_mapping(struct targets *t, struct target *target, uint64_t address,
                                uint64_t now_ns);

/* The same among the mappings that are known: for an address that may well be no code. */
struct mapping *targets_known_mapping(struct target *target, uint64_t address);

/* Ids in the running profile, made on first use in a window. */
uint32_t targets_process_id(struct targets *t, struct profile *p, struct target *target);
uint32_t targets_thread_id(struct targets *t, struct profile *p, struct target *target,
                           uint32_t tid);
uint32_t targets_module_id(struct targets *t, struct profile *p, struct mapping *mapping);

#endif
