/* Any bytes as a symbol's name. Beside crashes this looks for names that take long (-timeout) or
 * leave the buffer changed when they are refused. */
#include "symbol/demangle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf out;
    buf_init(&out, 2 * DEMANGLE_OUTPUT_MAX);
    buf_text(&out, "before");
    bool good = demangle((struct str){(const char *)data, size}, &out);
    if (out.failed || memcmp(out.ptr, "before", 6) != 0 || (!good && out.len != 6) ||
        out.len > 6 + DEMANGLE_OUTPUT_MAX) {
        abort();
    }
    buf_release(&out);
    return 0;
}
