/*
 * targets: the processes and threads that are followed, as the records tell of them.
 *
 * The table is fed in time order by perf's COMM, FORK, MMAP2 and EXIT records, or, for what ran
 * before us, from /proc (comm and maps). It answers two questions per sample: which thread of the
 * profile is this, and which mapping holds this address.
 *
 * A target whose process ended stays until targets_end_window, because its samples and its CPU time
 * belong to the window that is running; targets_set_aside takes it out of the list of those that
 * live. Of thousands of short processes per minute only what accounting needs is
 * kept: the one that was never sampled is dropped earlier (targets_drop), a thread with its end.
 * Profile ids cached here (process, thread, module) are valid for one window: `window` counts them.
 *
 * Used by the sampler alone. Pointers to a target stay valid until targets_end_window or targets_drop;
 * pointers to mappings until the next change of that target's mappings.
 */
#ifndef CAPTURE_FOLLOW_TARGETS_H
#define CAPTURE_FOLLOW_TARGETS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/follow/images.h"
#include "capture/follow/maps_pace.h"
#include "profile/profile.h"
#include "sample/record.h"

enum { COMM_MAX = 16 };

struct naming_settings;
struct reader;
struct runtime;

struct mapping {
    uint64_t start, limit, file_offset;
    uint64_t image;         /* images.h; IMAGE_NONE for anonymous memory */
    uint64_t bias;          /* runtime address - ELF address */
    uint32_t module;        /* in the profile of window `window` */
    uint32_t window;
};

/* CPU time as the kernel accounts it: utime and stime of /proc/PID/stat. */
struct cpu_times {
    uint64_t user_ns, system_ns;
    uint64_t children_ns; /* of children that ended and were waited for */
};

/* Copies of its stacks that come with its samples. Written by stack_copy.c, and counted by stacks.c. */
struct target_copies {
    uint32_t bytes;      /* that its samples copy */
    uint32_t seen, cut;  /* since that was set: unwound, and cut where the copy ends, … */
    uint32_t gaps;       /* … and below a page that was never touched, where the kernel's copy ends */
    uint32_t half;       /* of those seen: needed more than half of the copy */
    uint32_t changes;    /* of `bytes`, so far */
    uint32_t most;       /* bytes that the largest stack so far needed, as far as it was copied */
};

/* Its runtime, and whether its samples are caught. Written by readers.c, catching.c and stops.c. */
struct target_runtime {
    uint64_t space;      /* the `space` in which a runtime was searched for */
    uint64_t again_ns;   /* monotonic: when it is searched for again; 0: when `space` changes */
    uint64_t since_ns;   /* monotonic: the first search in vain; 0: none was */
    const struct runtime *collects; /* that it has, and that is asked for a profile of its own; null: none */
    struct reader *reader; /* of its runtime's stacks; null: it has none that can be read */
    uint64_t followed_ns; /* monotonic: when it got events of its own; 0: with those it inherited */
    uint64_t timed_ns;   /* monotonic: until then it is read by a timer, although perf could sample it; 0: it is not */
    bool caught;         /* its samples go to the catchers (catch.h) */
    bool refused;        /* they cannot */
    bool deep;           /* caught because its stacks are larger than a sample can copy, … */
    bool gaps;           /* … or copies of them end early */
    bool stops;          /* its threads are held by brief stops, for it has no perf events, … */
    uint32_t stack_bytes; /* … this much of their stacks is read … */
    uint64_t stops_again_ns; /* monotonic: … and not before this: somebody traces it; 0: now */
    uint32_t asked, asked_window; /* how often it was asked in this window what a thread is called */
};

/* Reading /proc/PID/maps again. Written by targets.c and maps_pace.c. */
struct target_rereading {
    bool has_all;        /* its mappings are those of /proc, or all records since its exec were seen */
    struct maps_pace pace; /* where no record tells of mappings */
    bool was_hidden;     /* the last reading was refused, and nothing explained it */
    uint64_t retry_ns;   /* monotonic; not before this is it read again */
    uint64_t wait_ns;    /* back-off of these retries */
};

/* What it runs. Written by applications.c. */
struct target_application {
    char *text;          /* application.h; null: no rule fits, or not known */
    uint8_t readings;    /* how often its arguments were read since its exec; a child's count with its parent's */
};

/* It has no events for want of descriptors: CAPTURE_PROC until it is hot. Written by unsampled.c. */
struct target_unsampled {
    bool is;
    uint64_t cpu_ns, asked_ns; /* when it was asked last; 0: not yet */
};

/* What a process that ended may have used beyond what is known of it: parts in the order in which they are believed. */
enum tail_part { TAIL_AS_BEFORE, TAIL_ALONE, TAIL_AT_MOST, TAIL_PARTS };

struct tail {
    uint64_t ns[TAIL_PARTS];
};

static inline void tail_add(struct tail *sum, const struct tail *tail)
{
    for (unsigned i = 0; i < TAIL_PARTS; i++) {
        sum->ns[i] += tail->ns[i];
    }
}

static inline uint64_t tail_sum_ns(const struct tail *tail)
{
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < TAIL_PARTS; i++) {
        sum_ns += tail->ns[i];
    }
    return sum_ns;
}

/* A process that ended without a last reading. */
struct target_tail {
    uint32_t row;            /* its thread in the profile */
    uint64_t most_ns;        /* that it may have used since the reading before */
};

enum { TARGET_TAILS = 8 };

/* What its times hold of children that ended, without perf. Written by accounting_children.c. */
struct target_children {
    uint64_t waited_ns;      /* by which its children_ns has grown, not yet settled */
    uint64_t zombies_ns;     /* CPU of children that ended and nobody waited for: it is not in waited_ns, … */
    uint64_t gone_ns, gone_before_ns; /* … of those that are gone, to be taken off it: it is in it by the next reading,
                              * or never (SIGCHLD is ignored), … */
    uint64_t cut_ns;         /* … or later, if it is less than the ticks that children_ns is cut to, … */
    uint64_t on_perf_ns;     /* … and of those on perf, of which nobody knows when they are waited for */
    uint32_t window, tail_count;
    struct target_tail tails[TARGET_TAILS]; /* of that window; the last one stands for all later ones, too */
};

/* The time while a child of its own lived that ended before it: it will have waited for it. Written by
 * targets_records.c and accounting.c. */
struct target_waited {
    uint32_t children;       /* that live, … */
    uint32_t begun;          /* … and that began since its times were read */
    uint64_t since_ns;       /* monotonic: the first of them began */
    uint64_t ns;
};

/* What events of its own counted in this window, without its children's (os/perf.h). Written by trees.c. */
struct target_own {
    uint64_t ns;
    bool is_counted, is_partial; /* for some of its threads */
};

/* Its CPU accounting, see accounting.h. */
struct target_account {
    struct cpu_times before; /* at the beginning of the window */
    struct cpu_times last;   /* as read last */
    uint64_t read_ns;        /* monotonic: when `last` was read; 0 never */
    uint64_t sampled_ns;     /* weight of this window's samples */
    uint64_t since_read_ns;  /* weight of the samples taken later than `last` */
    uint64_t ran_permille;   /* CPU time of all its threads between the last two readings, of the time between */
    uint64_t attributed_ns;  /* from /proc in this window */
    uint64_t settled_ns;     /* of it, by its threads' own clocks, without a stack (CAPTURE_RUNTIME) */
    uint64_t pending_user_ns, pending_system_ns; /* of it, not yet shared out among the threads */
    uint32_t idle_polls;     /* since it used CPU time last */
    uint32_t skipped_polls;  /* how often it was not read since `clock_ns` */
    uint64_t clock_ns;       /* its CPU clock when it was read last */
    uint64_t lifetime_ns;    /* its own and its children's that its parent's children_ns will hold */
    struct target_children children;
    struct target_waited waited;
    struct target_own own;
    uint64_t unread_ns;      /* between its last reading and its end */
    bool ends;               /* its end was seen at this poll */
    bool left;               /* it was on perf, has ended, and whoever has its times knows what it used */
    uint64_t folded_known_ns; /* of dropped ones of its name, see accounting_ended.c */
    struct tail folded_tail;
    bool folded;             /* it stands for such */
    uint64_t renamed_ns;       /* of this window, already told without a stack, under an earlier name */
    uint64_t carried_ns;     /* used in earlier windows, and not yet shown */
    uint64_t joined_ns;      /* weight of perf's samples in the window in which its runtime's took their place, … */
    uint32_t joined_window;  /* … which is this one; 0: none yet */
    bool final_known;        /* the times in `last` are those of the window's end, or of its own */
};

/* Sampled in bursts. Written by bursts.c. */
struct target_bursts {
    bool on, refused;
    uint32_t threads_born;   /* since the last check, … */
    uint32_t checks;         /* … of which so many spoke for the other way to sample it */
    uint64_t cpu_ns, plain_before_ns; /* as they were then */
    uint64_t plain_ns;       /* weight of all samples of the usual kind so far */
    uint32_t samples;        /* of this window */
};

/* Whether it is profiled, see selection.h. Written by selection.c. */
struct target_filter {
    bool evaluated;
    bool excluded;           /* by the filters, as it is now */
    bool exe_unknown;        /* its executable could not be read: the next file that it maps is that */
    bool skipped;            /* excluded, for the whole window so far */
    uint64_t of_age_ns;      /* monotonic: before this it is too young; 0: it never is */
    uint64_t excluded_ns;    /* weight of this window's samples that were dropped */
};

struct target {
    uint32_t pid;
    uint64_t start_ticks;    /* 0: not known yet */
    uint32_t owner;          /* of the pid: how many others had it before in this window */
    char name[COMM_MAX];
    bool named;              /* the command itself, or a pid that was given: whatever the filters say */
    uint8_t capture_mode;    /* enum capture_mode */
    bool ended;
    uint64_t began_ns, ended_ns; /* monotonic, by FORK and EXIT records; 0 unknown */
    uint32_t parent_pid;     /* who waits for it: another one when its parent has ended */
    uint32_t forked_by;      /* whose events it inherited; 0: nobody's, as far as we know */
    uint64_t tree;           /* names those that descend from one another, as long as any of them is known */
    uint32_t threads_seen;   /* that lived when its times were read last, and that began since; … */
    uint32_t threads_ended;  /* … that ended since */
    uint32_t alive;          /* threads that live, by FORK and EXIT; 0: not counted (it ran before) */
    VEC(struct mapping) maps; /* by start, not overlapping, executable ones only */
    uint64_t space;          /* names the mappings as they are now: changes with them, never 0 */
    uint64_t program;        /* names the program that it runs: changes with each exec that is seen */
    uint64_t generated;      /* image of the code it generates; IMAGE_NONE: not seen yet */
    struct target_rereading reread;
    struct target_copies copy;
    struct target_runtime runtime;
    struct target_unsampled unsampled;
    struct target_account account;
    struct target_bursts bursts;
    struct target_filter filter;
    struct target_application application;
    uint32_t process;        /* in the profile of window `window` */
    uint32_t window;
    uint32_t threads_shown;  /* its threads with a row in the profile */
};

struct target_thread {
    uint32_t tid, pid;
    char name[COMM_MAX];
    bool named;
    uint64_t born_ns;        /* monotonic: its start, by a FORK record; 0: none told of it */
    uint64_t cpu_ns;         /* schedstat, as read last; for accounting from /proc */
    uint64_t event, event_before; /* the first of the follower's that its samples come from, and came from before
                                   * (duplicates.c); 0: none */
    uint32_t thread;         /* in the profile of window `window` */
    uint32_t window;
    struct str told;         /* how its process's runtime calls it; empty: not known */
    uint8_t asked;           /* how often that was asked; at most TARGET_NAME_TRIES times */
};

enum { TARGET_NAME_TRIES = 3 }; /* a thread may run before it has a name */

/* What a process's runtime calls a thread. Notes in thread->asked that it was asked. */
struct thread_namer {
    bool (*name)(void *context, struct target *target, struct target_thread *thread, struct buf *out);
    void *context;
};

struct targets {
    VEC(struct target *) all;   /* but those set aside; older ones first */
    VEC(struct target *) aside; /* they have ended */
    struct map by_pid;       /* pid -> target, of both */
    struct map gone;         /* scratch of targets_drop */
    VEC(struct target_thread) threads;
    struct map by_tid;       /* tid -> index into threads */
    struct images *images;
    struct buf text;         /* scratch for /proc texts */
    struct buf path;         /* and for a name of theirs that is not as it stands there */
    uint32_t window;         /* of the running profile, from 1 */
    uint64_t spaces, trees;  /* given out so far */
    uint64_t unmapped;       /* how often mappings went away: their images may be of no use any more */
    uint32_t stack_bytes;    /* of a process that is new here */
    uint64_t min_duration_ns; /* what a target starts is excluded while it is younger than this */
    bool container_names;
    const struct naming_settings *naming; /* how processes are told apart; null: not by what they run */
    struct thread_namer namer; /* null: nobody knows */
    struct arena told;       /* the names that it told */
    bool any_on_proc;        /* some target has been in CAPTURE_PROC or CAPTURE_RUNTIME so far */
};

void targets_init(struct targets *t, struct images *images, bool container_names);
void targets_release(struct targets *t);

/* The one place where a target's capture mode changes. */
void targets_set_mode(struct targets *t, struct target *target, enum capture_mode mode);

/* Drops what ended and makes all cached profile ids invalid. */
void targets_end_window(struct targets *t);

/* Takes those that ended out of `all`; targets_find still finds them. */
void targets_set_aside(struct targets *t);

/* Puts them back, behind the others. */
void targets_recall(struct targets *t);

/* Drops those set aside for which `is_done` says so. Who was started by one of them counts as started by
 * the one before it: the events that it inherits are the same, and so is the process whose
 * accounting ends up with its time. */
void targets_drop(struct targets *t, bool (*is_done)(void *context, struct target *target),
                  void *context);

struct target *targets_find(struct targets *t, uint32_t pid);

/* May this be the process that /proc says began then, or is that the next owner of its pid? */
bool targets_may_be(const struct target *target, uint64_t start_ticks);

/* Whose events it inherited when it was started; null: nobody's that is known. Its parent of now may be
 * another. */
struct target *targets_source(struct targets *t, const struct target *target);

/* The target of a process that may be new here; null only when memory ends. A new one takes its name
 * from /proc. */
struct target *targets_get(struct targets *t, uint32_t pid);

/* The same for a process that is known to run now: a target of this pid that has ended was another one. */
struct target *targets_begin(struct targets *t, uint32_t pid);

/* Is it excluded at this moment? */
static inline bool targets_is_excluded(const struct target *target, uint64_t time_ns)
{
    return !target->named && (target->filter.excluded || time_ns < target->filter.of_age_ns);
}

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

/* Marks the images of all that is mapped (images_sweep). */
void targets_mark_images(const struct targets *t);

/* Ids in the running profile, made on first use in a window. */
uint32_t targets_process_id(struct targets *t, struct profile *p, struct target *target);
uint32_t targets_thread_id(struct targets *t, struct profile *p, struct target *target,
                           uint32_t tid);
uint32_t targets_module_id(struct targets *t, struct profile *p, struct mapping *mapping);

#endif
