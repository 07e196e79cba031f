/*
 * unseen: why CPU time of a window has no stack, in words: the gate that is closed, and what opens it.
 *
 * Whoever meets a refusal or a loss notes its sentence; the first of each cause is kept. A target that
 * refuses is asked again every half minute at least (readers.c, catching.c): what was not noted for a
 * minute is over, its process has ended or lets itself be read. At a window's end those that explain what is
 * missing there are put together. The text goes with the profile (meta.reason), so that the summary, the
 * .col header, the flame graph and the pprof say the same.
 *
 * A window lacks much when more than a twentieth of its CPU time has no stack, and that is more than a few
 * samples. Then there is always a reason.
 */
#ifndef CAPTURE_UNSEEN_H
#define CAPTURE_UNSEEN_H

#include "base/err.h"
#include "profile/profile.h"

enum unseen_cause {
    UNSEEN_PERF,    /* perf events are refused, to us or by a target */
    UNSEEN_KERNEL,  /* kernel code may not be sampled */
    UNSEEN_THREADS, /* descriptors ran out */
    UNSEEN_BUDGET,  /* nothing was sampled for a while, for --max-cpu; of one window */
    UNSEEN_RECORDS, /* records were lost; of one window */
    UNSEEN_COUNT,
};

enum { UNSEEN_PROCESSES = 16 };

/* A process whose memory, or maps, may not be read. */
struct unseen_process {
    uint32_t pid;         /* 0: none */
    char why[ERR_TEXT_MAX];
    uint64_t age_ns;      /* windows since it was noted last */
};

struct unseen {
    char why[UNSEEN_COUNT][ERR_TEXT_MAX]; /* "": nothing of the kind */
    struct unseen_process process[UNSEEN_PROCESSES];
};

/* Keeps the first sentence of a cause; "gate; remedy", without a full stop. */
void unseen_note(struct unseen *u, enum unseen_cause cause, const char *sentence);

/* The same of a process that refuses to be read: each has a sentence, while there is room. */
void unseen_note_process(struct unseen *u, uint32_t pid, const char *sentence);

/* After a window that was so long: forgets what was of it alone. */
void unseen_end_window(struct unseen *u, uint64_t window_ns);

bool unseen_is_much(const struct profile_totals *sum);

/* Appends the reason; nothing when nothing is refused and not much is missing. Of the processes that refuse, the one
 * that used most in this window is told. Returns the sentence in it that is not told as a warning where it is met, so
 * that it is to be told now; null: there is none. */
const char *unseen_describe(const struct unseen *u, const struct profile *p, const struct profile_totals *sum,
                            struct buf *out);

#endif
