/*
 * Any bytes as a table of lines: the format (a byte), the first line (16 bits, little-endian), the table. Lines are
 * numbers of a file, and are the same for two bytes of one code unit from 3.10 on.
 */
#include "runtime/python/private.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 3, POSITIONS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES) {
        return 0;
    }
    enum python_lines format = (enum python_lines)(data[0] % (PYTHON_LOCATIONS + 1));
    uint32_t first = data[1] | (uint32_t)data[2] << 8;
    const unsigned char *table = data + HEAD_BYTES;
    uint32_t even = 0;
    for (int64_t at = -2; at < POSITIONS; at++) {
        uint32_t line = python_line(format, first, table, size - HEAD_BYTES, at);
        if (line > INT32_MAX || (at < 0 && line != first) ||
            (format == PYTHON_LOCATIONS && at > 0 && at % 2 != 0 && line != even)) {
            abort();
        }
        even = line;
    }
    return 0;
}
