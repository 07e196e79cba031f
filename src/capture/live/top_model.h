/*
 * top_model: what `pillion top` shows: CPU time by function, process, thread and language, of the last seconds and
 * since the start.
 *
 * Concept. A row is one of these (enum top_table) with its own time (it was the leaf) and its total time (it was on the
 * stack, once per stack however often it recurs). Each window is added by top_add; the last windows are kept, as the
 * rows they touched, until `span_ns` is covered without them. top_refresh makes what is shown of it: while the view is
 * paused nobody calls it, and nothing that was added meanwhile is lost.
 *
 * Sums. In each table the own times are all CPU time that was seen or accounted for, [lost] and its like included. What
 * finds no room goes to the table's row "(others)", so that stays true. A line's row is below its function.
 *
 * Only. top_only names a process's, thread's or language's row: from then on functions are counted for its samples
 * alone, too, in rows below it.
 *
 * Limits. TOP_ROWS_MAX rows, TOP_TEXT_BYTES of names, each TOP_NAME_MAX bytes at most. Names are foreign bytes: whoever
 * shows them escapes them.
 *
 * Ownership: one thread at a time; the profile is read only and borrowed for the call.
 */
#ifndef CAPTURE_LIVE_TOP_MODEL_H
#define CAPTURE_LIVE_TOP_MODEL_H

#include "profile/profile.h"

enum {
    TOP_ROWS_MAX = 8192,
    TOP_TEXT_BYTES = 1 << 20,
    TOP_NAME_MAX = 480,
    TOP_SLOTS = 32, /* windows that are kept at most */
};

enum top_table {
    TOP_FUNCTIONS,
    TOP_PROCESSES,
    TOP_THREADS,
    TOP_LANGUAGES,
    TOP_VIEWS,
    TOP_LINES = TOP_VIEWS, /* of a function: its parent is the function's row */
    TOP_TABLES,
};

struct top_time {
    uint64_t own_ns, total_ns;
};

struct top_row {
    struct str name, file;
    struct top_time recent, since; /* as shown: after top_refresh */
    struct top_time sum, now;      /* since the start; of the window that is being added */
    uint32_t parent;               /* of a line: its function; of a thread: its process; of a function: see "Only" */
    uint32_t line;                 /* a function's first, or a line itself; 0: not known */
    uint32_t met;                  /* in which sample last */
    uint8_t table;                 /* enum top_table */
    uint8_t kind;                  /* enum frame_kind, of functions and languages */
};

/* Of a span of time. */
struct top_facts {
    uint64_t length_ns, cpu_ns, not_seen_ns, samples, own_cpu_ns;
};

struct top_part {
    uint32_t row;
    struct top_time time;
};

struct top_slot {
    struct top_facts facts;
    uint32_t only; /* functions of which were counted, too */
    VEC(struct top_part) parts;
};

struct top_model {
    uint64_t span_ns; /* that "recent" means */
    VEC(struct top_row) rows; /* 0: none; then "(others)" of each view */
    struct intern ids;
    struct arena text;
    struct top_slot slots[TOP_SLOTS];
    size_t first, count; /* of the slots */
    struct top_facts recent, since; /* as shown */
    struct top_facts sum;
    uint32_t only;    /* 0: all */
    uint64_t only_ns; /* CPU time since that was chosen */
    uint64_t only_recent_ns, only_since_ns; /* as shown */
    uint64_t own_rss_bytes;
    size_t processes; /* that used CPU time in the last window */
    uint32_t samples_met; /* so far: numbers them */
    double hz;        /* that is sampled at; 0: not known */
    VEC(uint32_t) touched; /* scratch: rows of the window that is being added */
    uint32_t *of_frame;    /* scratch: the row of each of its frames, and that below `only` */
    size_t frames;         /* half of their number */
};

bool top_init(struct top_model *m, uint64_t span_ns);
void top_release(struct top_model *m);

/* A window whose frames are named. What there is no memory for is missing in it. */
void top_add(struct top_model *m, const struct profile *p);

void top_refresh(struct top_model *m);

/* 0: no more. */
void top_only(struct top_model *m, uint32_t row);

/* What a row's times are shares of. */
uint64_t top_recent_ns(const struct top_model *m, const struct top_row *row);
uint64_t top_since_ns(const struct top_model *m, const struct top_row *row);

/* What rows are sorted by, the largest first; names ascending. */
enum top_sort { TOP_BY_OWN, TOP_BY_TOTAL, TOP_BY_OWN_SINCE, TOP_BY_TOTAL_SINCE, TOP_BY_NAME, TOP_SORTS };

struct top_entry {
    uint64_t key;
    uint32_t row;
};

struct top_list {
    VEC(struct top_entry) at;
};

/* The rows of a table that used any time and have `search` (any case; empty: all) in their name. Of TOP_LINES and
 * TOP_FUNCTIONS those below `parent`. */
void top_list_rows(const struct top_model *m, enum top_table table, uint32_t parent, enum top_sort sort,
                   struct str search, struct top_list *out);

/* 0 … 100 */
double top_percent(uint64_t part_ns, uint64_t whole_ns);

#endif
