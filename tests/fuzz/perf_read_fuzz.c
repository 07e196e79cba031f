/* What perf script prints, of anybody: read with all of its events, and written. */
#include "encode/collapsed.h"
#include "encode/perf_read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str file = {(const char *)data, size};
    struct profile p = {0};
    struct collapsed_damage damage = {0};
    struct err err = {0};
    struct buf text;
    buf_init(&text, 64 * MAX_BYTES);
    struct sink sink = sink_of_buf(&text);
    bool ok = profile_init(&p, MAX_BYTES, &err) && perf_is(file) &&
              perf_read(&p, file, STR(""), size % 2 == 0, &damage, &err);
    if (ok) {
        (void)collapsed_write(&p, NULL, &sink, NULL);
    } else if (perf_is(file) && err.kind == ERR_NONE) {
        abort();
    }
    profile_release(&p);
    buf_release(&text);
    return 0;
}
