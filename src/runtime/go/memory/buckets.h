/*
 * buckets: what the Go runtime counts by stack, one bucket after the other.
 *
 * buckets.c reads them, heap.c and contention.c tell them. A walk is from the newest to the oldest; it ends with an
 * error when the chain does: a bucket that is none, or more of them than there can be.
 */
#ifndef RUNTIME_GO_BUCKETS_H
#define RUNTIME_GO_BUCKETS_H

#include "runtime/go/memory/memory_private.h"

enum {
    GO_RECORD_MAX_BYTES = 128,
    GO_WINDOW_BYTES = 64 << 10, /* read at once */
};

struct go_bucket {
    uint64_t next, size, count; /* size: of the object, of a bucket of memory */
    uint64_t pcs[GO_DEPTH_MAX];
    unsigned char record[GO_RECORD_MAX_BYTES];
};

struct go_buckets {
    struct go_memory *m;
    uint64_t start; /* of what is at hand */
    size_t have;
    unsigned char bytes[GO_WINDOW_BYTES];
    struct go_bucket bucket;            /* the current one */
    uint64_t locations[GO_DEPTH_MAX];   /* room for whoever is called */
};

/* The address of the newest one of a type; 0: there is none. */
uint64_t go_buckets_first(struct go_memory *m, enum go_bucket_type type);

/* Calls `each` for the buckets of a type until it returns false. */
bool go_buckets_walk(struct go_buckets *r, enum go_bucket_type type,
                     bool (*each)(void *context, struct go_buckets *r), void *context, struct err *why);

#endif
