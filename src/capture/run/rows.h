/*
 * rows: the table of concerns (concern.h), walked.
 *
 * The same order at every moment; release goes the other way round, for what stands lower uses what stands above it.
 */
#ifndef CAPTURE_RUN_ROWS_H
#define CAPTURE_RUN_ROWS_H

#include "capture/concern.h"

#include <stddef.h>

enum { ROWS_MAX = 32 };

struct row {
    const struct concern *concern;
    void *state; /* null: it could not be made, and is passed over */
};

struct rows {
    struct row at[ROWS_MAX];
    size_t count;
};

void rows_setup(const struct rows *rows);

/* `rests`: those that do nothing while sampling is suspended are passed over. */
void rows_round(const struct rows *rows, uint64_t now_ns, bool rests);

void rows_window_begin(const struct rows *rows);
void rows_window_end(const struct rows *rows);

/* usual_ns, or less when a row is due before: a wait for what is past is 0. A row whose work nobody would do now says
 * that nothing is due: a wait that it shortened would be none, round after round, and a whole core. */
uint64_t rows_wait_ns(const struct rows *rows, uint64_t usual_ns, uint64_t now_ns);

void rows_release(struct rows *rows);

#endif
