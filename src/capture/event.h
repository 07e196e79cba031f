/*
 * event: what else is sampled than CPU time, as people write it.
 *
 *     cycles                         one word
 *     hCMISS p=1000 l=misses         ddprof's words, key=value pairs with blanks or commas between
 *     hINST f=499; sMig              several, with semicolons between
 *
 * Keys, with their short form: event (e), period (p), frequency (f), label (l), value_scale (s),
 * mode (m, which can only be s: sums). A frequency is for hardware events, which have the CPU
 * clock's unless they are given one or a period; of software events each hundredth one is sampled,
 * and of rare ones each. The CPU clock itself runs in any case: "sCPU" is no further event, but may
 * set the clock's frequency.
 *
 * Pure. Errors are half sentences that continue the option's name (cli/value.h).
 *
 * Source of types and numbers: linux/perf_event.h; of ddprof's words: its documentation.
 */
#ifndef CAPTURE_EVENT_H
#define CAPTURE_EVENT_H

#include "base/err.h"
#include "base/str.h"

enum { EVENTS_MAX = 4, EVENT_LABEL_MAX = 32 };

struct event {
    const char *name;            /* perf's, static: "cache-misses" */
    char label[EVENT_LABEL_MAX]; /* of its sample type; the name unless given */
    uint32_t type;               /* PERF_TYPE_* */
    uint64_t config;
    uint64_t period;             /* 0: by frequency */
    uint32_t frequency_hz;       /* with no period; 0: the CPU clock's */
    double scale;                /* of the values that are written */
    bool in_kernel;              /* it happens in kernel code only */
};

struct event_list {
    struct event at[EVENTS_MAX];
    size_t count;
    uint32_t cpu_hz; /* that "sCPU" asked for; 0: nothing */
};

/* Adds the events of one text. On failure the list stays as it was. */
bool event_parse(struct str text, struct event_list *list, struct err *err);

#endif
