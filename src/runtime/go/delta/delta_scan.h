/*
 * delta_scan: the top-level fields of a packed protobuf message, one after the other, without unpacking the whole.
 *
 * Concept. A Go program's heap profile is some 1 MB packed and 5 to 10 MB plain; what is made of it is made by walking
 * over it several times. Each walk unpacks anew, through a window of 16 KB, and shows one field at a time.
 *
 * Call order. go_scan_new; per walk go_scan_start, then go_scan_next until it is false, then go_scan_is_sound;
 * go_scan_free, in every case. The message is borrowed all the while.
 *
 * Limits. A field that is wanted has at most GO_FIELD_MAX_BYTES (a sample of 100,000 addresses has half of it), others
 * are skipped whatever they have; all of a message at most GO_PLAIN_MAX_BYTES unpacked, more than 200,000 stacks
 * of 128 frames take. Groups (wire types 3 and 4) are refused.
 *
 * Errors: ERR_MALFORMED, ERR_LIMIT, ERR_MEMORY; the first one ends the walk.
 */
#ifndef RUNTIME_GO_DELTA_SCAN_H
#define RUNTIME_GO_DELTA_SCAN_H

#include "base/gzip.h"
#include "base/protobuf.h"

enum {
    GO_FIELD_MAX_BYTES = 1 << 20,
    GO_PLAIN_MAX_BYTES = 128 << 20,
    GO_SCAN_WINDOW_BYTES = 16 * 1024,
};

struct go_scan {
    struct gunzip gunzip;
    uint32_t wanted;    /* a bit per field number below 32 */
    size_t at, len;     /* of the window */
    size_t plain_bytes; /* unpacked in this walk */
    bool is_damaged;
    struct buf field; /* one that does not lie in the window as a whole */
    unsigned char window[GO_SCAN_WINDOW_BYTES];
};

/* Null: err. */
struct go_scan *go_scan_new(struct str message, struct err *err);
void go_scan_free(struct go_scan *scan);

/* From the first field again. `wanted` has bit N for field number N. */
void go_scan_start(struct go_scan *scan, uint32_t wanted);

/* The next wanted field, borrowed until the next call. False: there is none, or err. */
bool go_scan_next(struct go_scan *scan, struct protobuf_field *out, struct err *err);

/* Did the walk end at the message's end? */
static inline bool go_scan_is_sound(const struct go_scan *scan)
{
    return !scan->is_damaged;
}

#endif
