/*
 * shipment: a delivery on its way: the request that is made of it, which may have to become smaller.
 *
 * A window was encoded by its back end's rules when it ended, and is sent as it is. It is read back and encoded anew
 * where that is not so (a file of `pillion upload`; OpenTelemetry's form, which nothing reads back, so that pprof is
 * kept in its place), where the request is larger than the row allows, and where the service said so (413): then with
 * fewer stacks, the heaviest, and all sums as they were (encode/fit.h). It is always made of the delivery itself.
 *
 *     shipment_init(&s, row, &delivery, max_bytes)
 *     shipment_build(&s, &context, &err)      → s.request
 *     shipment_smaller(&s, &context, &err)    after VERDICT_SMALLER; then shipment_build again
 *     shipment_release(&s)
 *
 * Why not two deliveries: each of them would need a name in the spool, an attempt and a fate of its own, and a service
 * that takes no more than a few kilobytes would be flooded.
 *
 * Ownership: the delivery's texts must outlive the shipment. Memory: the request, and while it is encoded anew the
 * profile; each at most max_bytes.
 *
 * Errors: ERR_LIMIT when nothing is left that could go; ERR_UNSUPPORTED for a format that is not read.
 */
#ifndef CAPTURE_SHIPMENT_H
#define CAPTURE_SHIPMENT_H

#include "deliver/backend.h"
#include "profile/profile.h"

/* Of what most of the CPU time is; the texts are the profile's. */
struct delivery_subject shipment_subject(const struct profile *p);

/* Encodes a window as the back end's deliveries are kept: in the format that it wants, by its rules, unless that could
 * not be read back; else all of it as pprof. Behind it stands what a runtime made (profile/runtime_profile.h), of the
 * process shipment_runtime, as far as the service takes it. All lies in `out`, and the delivery is told where. */
bool shipment_encode(struct profile *p, const struct backend *row, struct buf *out, struct delivery *d,
                     struct err *err);

/* The process whose runtime's profiles go with the window; 0: none has any. */
uint32_t shipment_runtime(const struct profile *p);

/* Of another process what its runtime made, alone. False without an error: the service takes nothing of it. */
bool shipment_encode_runtime(const struct profile *p, uint32_t pid, const struct backend *row, struct buf *out,
                             struct delivery *d, struct err *err);

struct shipment {
    const struct backend *row;
    const struct delivery *given;
    struct delivery delivery;    /* as it is sent: the profiles may lie in `encoded` */
    struct buf encoded, text;    /* text: of the request */
    struct http_request request;
    double share;                /* of the bytes that all stacks would have; 1: all */
};

void shipment_init(struct shipment *s, const struct backend *row, const struct delivery *delivery, size_t max_bytes);
void shipment_release(struct shipment *s);

bool shipment_build(struct shipment *s, struct backend_context *context, struct err *err);

/* Half of what it was. */
bool shipment_smaller(struct shipment *s, struct backend_context *context, struct err *err);

#endif
