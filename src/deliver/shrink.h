/*
 * shrink: a delivery made smaller, for a service that takes less at a time.
 *
 * The lightest stacks go, and what they counted goes to a stack of the one frame "[dropped to
 * fit]": of collapsed stacks one for each process and thread name that lost some, so that the sums
 * of these stay what they were; of pprof one for all (pprof_cut.h); of OpenTelemetry's form one for
 * each profile in it (otlp_cut.h). All that the profile counts in sum stays as it was, in every
 * column. Times and header stay, too.
 *
 * Why not two deliveries: each of them would need a name in the spool, an attempt and a fate of its
 * own, and a service that takes no more than a few kilobytes would be flooded.
 *
 *     before it is sent: shrink_request, in the place of row->request
 *     after VERDICT_SMALLER: shrink, then shrink_request again
 *
 * Errors: ERR_LIMIT when nothing is left that could go, ERR_UNSUPPORTED for a format that cannot be
 * taken apart here.
 */
#ifndef DELIVER_SHRINK_H
#define DELIVER_SHRINK_H

#include "deliver/backend.h"

#define SHRINK_FRAME "[dropped to fit]"

/* Appends the delivery's profile to `out`, smaller: such that a request of from_bytes would have
 * about to_bytes. 0: half, where the service did not say what it takes. */
bool shrink(const struct delivery *delivery, size_t from_bytes, size_t to_bytes, struct buf *out,
            struct err *err);

/* Makes the request of a delivery. As long as it is larger than the row allows, the delivery is
 * made smaller: its profile then lies in `kept`, which the caller has initialised and which may
 * hold the delivery's profile already. */
bool shrink_request(const struct backend *row, struct backend_context *context,
                    struct delivery *delivery, struct buf *kept, struct http_request *out,
                    struct buf *text, struct err *err);

#endif
