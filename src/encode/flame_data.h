/*
 * flame_data: the data block of the flame graph page (its format is described in flame.h).
 *
 * flame_tally walks the folds once: it numbers the distinct (name, kind) pairs, sums each one's own
 * and total time (recursion counted once), counts nodes and cuts what is deeper than
 * FLAME_DEPTH_MAX. The static part of the page is written from its sums, then flame_data_write
 * streams the folds through deflate and base64.
 *
 * Names are string ids of one profile: the second fold of a comparison must have been renamed into
 * the first one's ids.
 */
#ifndef ENCODE_FLAME_DATA_H
#define ENCODE_FLAME_DATA_H

#include "encode/flame_text.h"
#include "encode/flame_times.h"
#include "profile/fold.h"

enum { FLAME_LINE_SEVERAL = UINT32_MAX };

/* A line that a function executed, and its thousandths of the function's time: of a sample's several calls of one
 * function the innermost counts. */
struct flame_line {
    uint32_t line, share;
};

struct flame_entry {
    uint64_t self_ns, total_ns; /* first fold only, … */
    uint64_t was_self_ns;       /* … and of a comparison the second */
    uint32_t name;     /* string id */
    uint32_t other;    /* the next entry with the same name and another kind, 0 none */
    uint32_t place;    /* string id of its file or library, 0 unknown or several */
    uint32_t index;    /* its number in the file */
    uint32_t callees;  /* head of the list of names seen below it, 0 none */
    uint32_t open;     /* how often it is on the path of the walk */
    uint32_t first_line; /* 0 unknown; FLAME_LINE_SEVERAL: functions of that name begin at several */
    uint32_t lines;    /* where its line_count heaviest ones are, heaviest first */
    uint8_t line_count;
    uint8_t kind;      /* as in the file: enum frame_kind, FLAME_KIND_PROCESS … */
    bool placed;       /* `place` was decided */
};

struct flame_tally {
    const struct profile *profile;
    struct fold *folds[2];
    size_t fold_count;
    size_t node_count[2]; /* without the root */
    VEC(struct flame_entry) entries; /* element 0 is the root */
    VEC(struct flame_line) lines;
    uint32_t *entry_of;   /* per string: the first entry with that name */
    uint32_t truncated;   /* string id of "[truncated]" */
};

/* Takes over nothing: the folds stay the caller's. `p` is not const because of "[truncated]". */
bool flame_tally_init(struct flame_tally *tally, struct profile *p, struct fold *fold,
                      struct fold *base, struct err *err);
void flame_tally_release(struct flame_tally *tally);

/* What of fold `which` is time of the chosen entries' own: per entry the sum of it and of all below it (recursion
 * counted once) is added to `sums`. Both arrays are as long as the entries. */
bool flame_tally_part(struct flame_tally *tally, size_t which, const uint8_t *chosen, uint64_t *sums, struct err *err);

/* Remembers in which file or library names of this kind live; two answers make none. */
void flame_tally_place(struct flame_tally *tally, uint32_t name, enum frame_kind kind,
                       uint32_t place);

/* Finds out which lines functions of `p`, whose fold is the first, executed. */
bool flame_tally_lines(struct flame_tally *tally, const struct profile *p, struct err *err);

/* Bytes as a block: deflated, as base64 lines. */
bool flame_data_pack(struct page *page, struct str bytes);

/* The whole block as base64 lines. */
bool flame_data_write(struct flame_tally *tally, struct flame_times *times, struct str header, uint64_t unit_ns,
                      bool exact, struct page *page);

#endif
