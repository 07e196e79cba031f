/*
 * otlp_cut: a profile of OpenTelemetry's protocol, release 1.10, made smaller.
 *
 * The lightest samples go, and what they counted goes to one sample "[dropped to fit]" of the same
 * profile: every profile's sum stays what it was. A sample's weight is its share of all that is
 * counted of its type, so that seconds do not displace page faults. Of the tables what nobody
 * refers to any more goes, and the rest is numbered anew, as the format wants it.
 *
 * Errors: ERR_MALFORMED for what is no such profile, or refers to what is not there; ERR_LIMIT when
 * it cannot be made as small as is asked for.
 *
 * Memory: the request twice; 32 bytes for a sample, 21 for a row.
 */
#ifndef DELIVER_OTLP_CUT_H
#define DELIVER_OTLP_CUT_H

#include "base/err.h"
#include "base/str.h"

/* Appends the request with at most most_bytes. */
bool otlp_cut(struct str request, size_t most_bytes, struct buf *out, struct err *err);

#endif
