/* Stacks of py-spy and austin, of anybody: read and written. */
#include "encode/collapsed.h"
#include "encode/python_read.h"

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
    bool ok = profile_init(&p, MAX_BYTES, &err) && python_stacks_are(file) &&
              python_stacks_read(&p, file, STR(""), &damage, &err);
    if (ok) {
        (void)collapsed_write(&p, NULL, &sink, NULL);
    } else if (python_stacks_are(file) && err.kind == ERR_NONE) {
        abort();
    }
    profile_release(&p);
    buf_release(&text);
    return 0;
}
