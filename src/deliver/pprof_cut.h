/*
 * pprof_cut: a pprof file made smaller, or fit for a service, without being understood further than
 * that.
 *
 * The file is taken apart into samples and tables. Samples with the same stack and labels become
 * one; of those that are too many the lightest go, and all they counted, in every column, goes to
 * one sample "[dropped to fit]": the sums of the file stay what they were. Of the tables what is no
 * longer used goes, too; ids stay, and a text that is not used is empty, so nothing has to be
 * numbered anew.
 *
 * A sample's weight is the sum of its values. Labels can be taken off: services that make a series
 * of every set of labels drown in one per thread.
 *
 * Errors: ERR_MALFORMED for what is no pprof file or refers to what is not there; ERR_LIMIT when it
 * unpacks to more than PPROF_CUT_MAX_BYTES, or cannot be made as small as is asked for.
 *
 * Memory: the file unpacked, twice; 16 bytes and 8 per column for a sample, 32 for a location or
 * function.
 *
 * Format: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#ifndef DELIVER_PPROF_CUT_H
#define DELIVER_PPROF_CUT_H

#include "base/err.h"
#include "base/str.h"

enum { PPROF_CUT_MAX_BYTES = 64 * 1024 * 1024 };

struct pprof_cut_name {
    const char *from, *to;
};

struct pprof_cut_rules {
    const char *const *drop_labels; /* by key, null-terminated; null: none */
    bool plain_types;      /* "page-faults" becomes "page_faults" among the sample types */
    const struct pprof_cut_name *type_names; /* other names for sample types; from is null at the
                                              * end; null: none */
    size_t most_samples;   /* 0: any */
    size_t most_bytes;     /* unpacked; 0: any */
    unsigned permille;     /* of the bytes it has unpacked; 0: any */
};

struct pprof_cut_result {
    size_t plain_bytes;    /* unpacked, as written */
    size_t samples, merged, dropped;
};

/* Appends the file, compressed. */
bool pprof_cut(struct str file, const struct pprof_cut_rules *rules, struct buf *out,
               struct pprof_cut_result *result, struct err *err);

#endif
