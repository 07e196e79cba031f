/*
 * session_private: what the files of a session share.
 *
 *     session.c        the loop: windows, targets coming and going
 *     session_open.c   what is made before anything is followed
 *     session_rings.c  what rings and catchers hand over
 *     session_catch.c  whose samples are caught: runtimes, very deep stacks
 *     session_find.c   who is followed, and who of them is left out
 *     session_images.c which files are kept open
 *     session_left.c   who has no events for want of descriptors
 *     session_other.c  what is sampled besides CPU time
 *     session_budget.c what the profiler itself takes, and what is done without for it
 *     session_burst.c  programs whose threads end before they are sampled
 *     session_cpus.c   CPUs that come and go
 *     session_double.c threads that have events of two followers
 *     session_upload.c where windows go, and how long the end waits for them
 *     session_status.c the line on a terminal that tells how it goes
 */
#ifndef CAPTURE_SESSION_PRIVATE_H
#define CAPTURE_SESSION_PRIVATE_H

#include "capture/accounts.h"
#include "capture/budget.h"
#include "capture/choose.h"
#include "capture/left_out.h"
#include "capture/log.h"
#include "capture/offcpu.h"
#include "capture/observer.h"
#include "capture/others.h"
#include "capture/publisher.h"
#include "capture/readers.h"
#include "capture/scan.h"
#include "capture/stacks.h"
#include "capture/unseen.h"
#include "capture/upload/uploader.h"
#include "capture/waits.h"
#include "os/perf.h"
#include "sample/order.h"
#include "sample/record.h"

enum {
    ROUND_CAUGHT_MS = 100, /* what catchers hand over is named while its code is there */
};

struct session {
    const struct settings *settings;
    struct log log;
    struct unseen unseen;
    int signals;
    bool has_init;
    uint32_t command_pid;    /* 0: attached */
    bool end_told;           /* perf has just told that the command, or the only process, ended */
    bool command_seen_end;

    struct perf_access access;
    bool perf_on;
    struct perf perf;
    struct left_out left_out;
    struct record_format format; /* of its records */
    struct order order;
    const struct world *world;
    const struct observer *observer; /* null in the product */
    struct images images;
    struct targets targets;
    struct unwinder unwinder;
    bool reads_runtimes;
    struct readers readers;
    struct catch *catch; /* null: nothing to catch so far */
    struct stacks stacks;
    bool watches_waits;
    struct waits waits;
    struct others others;
    bool watches_off_cpu;
    struct offcpu offcpu;
    struct accounts accounts;
    struct choose choose;
    struct scan scan;        /* -a with perf; without, it is that of the accounts */
    struct publisher *publisher;
    struct uploader *uploader; /* null: windows are not uploaded */
    uint64_t finish_ns;        /* monotonic: when the end began */
    struct profile *profile;

    struct budget budget;
    uint64_t next_budget_ns;
    uint32_t first_stack_bytes;         /* that were copied before stacks became coarse */
    bool is_coarse;                     /* and are so now */
    uint64_t memory_bytes;              /* that may be resident */
    uint64_t next_shed_ns;              /* caches are not given back before */
    unsigned sheds;                     /* in this window */
    bool is_frozen;                     /* the profile takes no new stacks */
    bool closes_early;                  /* the window is to end as soon as it can */
    bool by_families;                   /* events are made anew piece by piece */
    bool resizes;                       /* not all copies have the size that follows from it yet */

    uint64_t next_sweep_ns;             /* of images … */
    uint64_t swept_unmapped;            /* … as targets.unmapped was at the last one … */
    uint32_t swept_since;               /* … and the first window that was not published yet */

    uint64_t first_ns;       /* monotonic: when the run began */
    uint64_t window_start_ns, window_start_wall_ns;
    uint64_t next_poll_ns, next_scan_ns, next_glance_ns, next_adapt_ns;
    uint64_t next_find_ns, next_discover_ns;
    uint64_t next_unfollowed_ns;
    uint64_t next_status_ns;
    bool any_unfollowed;     /* some target has been, so far */
    bool any_double;         /* some thread has events of two followers */
    bool any_burst;          /* some process is sampled in bursts … */
    bool in_slice;           /* … and is so now */
    bool runs_on;            /* some of its events are on although they were stopped … */
    uint64_t slice_end_ns;   /* … then */
    uint64_t slice_share;    /* one slice in as many is, as of the latest one; 0: none was */
    bool churns;             /* hundreds of tasks per second begin and end … */
    uint32_t tasks_born;     /* … so many since the last look */
    uint64_t next_churn_ns;
    uint64_t next_births_ns, next_slice_ns, after_slice_ns, slice_seed;
    uint64_t next_cpus_ns;
    unsigned absent_cpus;    /* that have rings and were off-line at the last look */
    uint64_t news_ns;        /* monotonic: when the number of targets changed last, … */
    size_t polled_targets;   /* … as it was then */
    uint64_t poll_pause_ns;  /* between two polls of /proc, at present */
    uint64_t lost_records;   /* of the window */
    uint64_t malformed, invisible, records, rounds;
    uint64_t windows, cpu_ns, unseen_ns; /* over the whole run */
    bool any_on_proc;        /* some target is not on perf */
    bool any_stack, any_cpu; /* over the whole run */
    bool any_fitted;         /* some process was not left out */
    bool finishing;
};

enum { SESSION_FIND_MS = 500 }; /* between two looks for new processes: each is found within one second */

/* Does the sample come from a second event of its thread? Then it is to be dropped. */
bool session_is_double(struct session *s, const struct record *sample);

/* Ends the events that such samples came from. */
void session_end_doubles(struct session *s);

/* A process's samples are of the usual kind, or in its bursts: of the other kind none is taken. Sets its weight. */
bool session_takes_sample(struct session *s, struct record *sample);

/* Notes the start of a thread. */
void session_note_birth(struct session *s, const struct record *fork);

/* Each round: finds out who is to be sampled in bursts, and begins and ends them; when the next is due. */
void session_burst(struct session *s, uint64_t now_ns);
uint64_t session_slice_due_ns(const struct session *s);

/* No thread of the process found descriptors for its events: it is counted from /proc until it is hot. */
void session_leave_unfollowed(struct session *s, struct target *target);

/* Once a second: whoever of those, or of single threads that were left out, is hot now gets events, in the place of
 * the coolest. */
void session_look_at_unfollowed(struct session *s, uint64_t now_ns);

/* Targets that are so at present. */
size_t session_count_unfollowed(struct session *s);

enum rung session_perf_rung(const struct session *s);

/* Takes a running process in, on the highest rung it allows. named: whatever the filters say. */
void session_adopt(struct session *s, uint32_t pid, bool named);

/* -a with perf: takes in what has begun. */
void session_find_processes(struct session *s, uint64_t now_ns);

/* Takes in what targets have started before. */
void session_adopt_children(struct session *s);

/* A record of a target may change who it is. After targets_take. */
void session_judge(struct session *s, const struct record *record);

/* Is the sample's process left out? Then the sample was counted, and is to be dropped. */
bool session_leaves_out(struct session *s, const struct record *sample);

/* The same of another event's sample, which counts nowhere. */
bool session_is_left_out(struct session *s, const struct record *record);

/* Does a process that a record says has ended live on, without events? Then it is counted from now on. */
bool session_goes_on(struct session *s, const struct record *record);

/* Says that a target took the right to be sampled away. */
void session_say_unreadable(struct session *s, const struct target *target);

/* Says that nothing fits, if so, and what there is. */
void session_say_unfit(struct session *s);

/* Before a window's books are closed, and after its targets were ended. */
void session_close_choice(struct session *s);
void session_begin_choice(struct session *s);

/* Opens perf as far as it is allowed, then all the rest. What perf refuses is a sentence, never the end of the
 * run; false: it cannot begin, and was said. */
void session_open_perf(struct session *s);
bool session_setup(struct session *s);

/* One round; false when nothing came. */
bool session_drain_round(struct session *s);

/* Takes and hands out all that is in the rings and with the catchers, whatever its place in time. */
void session_drain(struct session *s);

/* Other events than CPU time: asked for before anything is followed; their records; the window's ends. */
void session_open_others(struct session *s);
void session_prepare_off_cpu(struct session *s);
void session_say_others(struct session *s);
void session_drain_others(struct session *s);
void session_on_other(struct session *s, const void *ptr, size_t len);
void session_look_off_cpu(struct session *s, uint64_t now_ns);
void session_begin_others(struct session *s);
void session_count_others(struct session *s); /* before the window's last records are taken */
void session_end_others(struct session *s);

/* Room for a record to wait in the order of time; null, and one more lost record, when there is none. */
void *session_room(struct session *s, uint64_t time_ns, size_t bytes);

/* Finds the runtimes of targets that are new or have changed, and has their samples caught. */
void session_look_for_runtimes(struct session *s, uint64_t now_ns);

/* Has the stacks of programs that come near what a sample can copy read to their end. */
void session_catch_deep_stacks(struct session *s);

/* Tells catchers what may be read now, and frees what may be read no more. */
void session_publish_readers(struct session *s);

/* After events were replaced: what was started meanwhile has none. */
void session_follow_newborn(struct session *s);

/* Samples that catchers could not hand over since this was asked last. */
uint64_t session_lost_by_catchers(struct session *s);

/* How much memory may be resident: as asked for, and no more than a share of what the container has. */
uint64_t session_choose_memory(struct session *s);

/* Once what is followed is followed. */
void session_begin_budget(struct session *s);

/* Each round: looks at what was used once a second, and does without what it must. */
void session_keep_budget(struct session *s, uint64_t now_ns);

/* Ends the window's account, and notes in the profile what was done without. */
void session_close_budget(struct session *s);

/* How long a round takes that usually takes so long, when less is sampled than was asked for. */
uint64_t session_slower_round_ns(const struct session *s, uint64_t usual_ns, uint64_t most_ns);

/* Whether nothing is sampled until the window's end: then little else is looked at either. */
bool session_is_suspended(const struct session *s);

/* Between two rounds: releases the images that neither a process nor a profile needs any more. */
void session_release_images(struct session *s, uint64_t now_ns);

/* Starts the uploader, when it is wanted; after the command was let go. */
void session_begin_uploads(struct session *s);

/* After the publisher has ended: sends what is left, within the grace period. */
void session_end_uploads(struct session *s);

/* In words: a folder, back ends, or both. */
void session_destination(const struct session *s, char *out, size_t out_bytes);

/* Says when CPUs go and when others come. */
void session_look_at_cpus(struct session *s, uint64_t now_ns);

/* Each round, but no more than once a second: the status line, where there is one. */
void session_show_status(struct session *s, uint64_t now_ns);

/* Says why fewer stacks are proven than could be. */
void session_say_trouble(struct session *s);

#endif
