/*
 * delta_write: the difference as a file: samples first, then what they lead to.
 *
 * Call order. go_writer_open; go_writer_sample for each that is kept, go_writer_other for those that are not told
 * apart; go_writer_rest, which walks over the snapshot two or three times more and finishes the file;
 * go_writer_release, in every case. The snapshot and `out` are borrowed all the while. The first failure is final.
 *
 * Memory: 270 KB of the compressor's, some bits, and the largest field.
 */
#ifndef RUNTIME_GO_DELTA_WRITE_H
#define RUNTIME_GO_DELTA_WRITE_H

#include "runtime/go/delta/delta_snapshot.h"

struct go_writer {
    struct gzip gzip;
    struct sink packed, plain;
    struct buf field, message; /* being put together */
    struct go_snapshot *snapshot;
    struct go_bits locations, functions, texts; /* that are led to */
    bool has_other;
};

/* Null: err. */
struct go_writer *go_writer_open(struct go_snapshot *snapshot, struct buf *out, struct err *err);
void go_writer_release(struct go_writer *writer);

/* The sample as it stands in the snapshot, with other values. */
bool go_writer_sample(struct go_writer *writer, struct str message, const uint64_t *values, struct err *err);

/* One sample of the function "[other]". */
bool go_writer_other(struct go_writer *writer, const uint64_t *values, struct err *err);

/* duration_ns null: the snapshot's own. */
bool go_writer_rest(struct go_writer *writer, const int64_t *duration_ns, struct err *err);

#endif
