/* pprof of anybody: read, written again, read again; the total must not change. */
#include "encode/pprof.h"
#include "encode/pprof_read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20 };

static bool read_into(struct profile *p, const void *data, size_t size)
{
    struct err err;
    return profile_init(p, MAX_BYTES, &err) && pprof_read(p, (struct str){data, size}, STR(""), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile p = {0}, again = {0};
    struct buf bytes;
    buf_init(&bytes, 64 * MAX_BYTES);
    struct sink sink = sink_of_buf(&bytes);
    if (read_into(&p, data, size) && p.dropped == 0 && pprof_write_plain(&p, NULL, &sink, NULL)) {
        if (!read_into(&again, bytes.ptr, bytes.len) ||
            profile_sum(&again).cpu_ns != profile_sum(&p).cpu_ns) {
            abort();
        }
        profile_release(&again);
    }
    profile_release(&p);
    buf_release(&bytes);
    return 0;
}
