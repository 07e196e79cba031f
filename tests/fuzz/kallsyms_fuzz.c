/* Any bytes as /proc/kallsyms, in pieces whose length is the first byte. */
#include "symbol/symbols.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbols s;
    struct kallsyms k;
    struct err err;
    size_t step = size > 0 ? data[0] + 1u : 1;
    symbols_init(&s, 4096);
    kallsyms_init(&k, &s);
    for (size_t at = 1; at < size; at += step) {
        (void)kallsyms_feed(&k, data + at, size - at < step ? size - at : step, &err);
    }
    if (kallsyms_finish(&k, &err)) {
        for (size_t i = 0; i < s.table.len; i++) {
            struct symbol_hit hit;
            struct buf name;
            buf_init(&name, 2 * KALLSYMS_LINE_MAX);
            if (symbols_find(&s, s.base + s.table.at[i].start, &hit) &&
                !symbols_name(&s, NULL, &hit, &name)) {
                abort();
            }
            buf_release(&name);
        }
    } else if (symbols_bytes(&s) != 0) {
        abort();
    }
    symbols_release(&s);
    return 0;
}
