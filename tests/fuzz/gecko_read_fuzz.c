/* Profiles of the Firefox Profiler, of anybody: read, written again, read again; the total must not change. */
#include "encode/gecko.h"
#include "encode/gecko_read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20 };

static bool read_into(struct profile *p, const void *data, size_t size)
{
    struct err err = {0};
    bool ok = profile_init(p, MAX_BYTES, &err) && gecko_read(p, (struct str){data, size}, STR(""), &err);
    if (!ok && err.kind == ERR_NONE) {
        abort();
    }
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { EXACT_NS = 1 << 30 }; /* numbers of JSON are exact up to some size */
    struct profile p = {0}, again = {0};
    struct buf text;
    buf_init(&text, 64 * MAX_BYTES);
    struct sink sink = sink_of_buf(&text);
    if (read_into(&p, data, size) && p.dropped == 0 && gecko_write(&p, &sink, NULL)) {
        uint64_t sum = profile_sum(&p).cpu_ns;
        if (!read_into(&again, text.ptr, text.len) ||
            (again.dropped == 0 && sum < EXACT_NS && profile_sum(&again).cpu_ns != sum)) {
            abort();
        }
        profile_release(&again);
    }
    profile_release(&p);
    buf_release(&text);
    return 0;
}
