/* Collapsed stacks of anybody: read, written again, read again; the total must not change. */
#include "encode/collapsed.h"
#include "encode/collapsed_read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20 };

static bool read_into(struct profile *p, const void *data, size_t size)
{
    struct collapsed_damage damage;
    struct err err;
    return profile_init(p, MAX_BYTES, &err) &&
           collapsed_read(p, (struct str){data, size}, STR(""), &damage, &err);
}

static uint64_t counts_of(const struct profile *p)
{
    uint64_t period = collapsed_period(p);
    uint64_t sum = profile_sum(p).cpu_ns;
    return sum / period + (sum % period >= period - period / 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile p = {0}, again = {0};
    struct buf text;
    buf_init(&text, 64 * MAX_BYTES);
    struct sink sink = sink_of_buf(&text);
    if (read_into(&p, data, size) && p.dropped == 0 && collapsed_write(&p, NULL, &sink, NULL)) {
        if (!read_into(&again, text.ptr, text.len) ||
            (again.dropped == 0 && counts_of(&again) != counts_of(&p))) {
            abort();
        }
        profile_release(&again);
    }
    profile_release(&p);
    buf_release(&text);
    return 0;
}
