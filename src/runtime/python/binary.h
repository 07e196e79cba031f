/*
 * binary: what the files of recognise share.
 */
#ifndef RUNTIME_PYTHON_BINARY_H
#define RUNTIME_PYTHON_BINARY_H

#include "runtime/python/private.h"

/* version.c: the release at the start of `text`: "3.9.18", "3.13.0rc1+", as PY_VERSION_HEX. `len`
 * is how many bytes it takes. 0: there is none. */
uint32_t python_version_of(struct str text, size_t *len);

/* ranges.c: fills binary->ranges from the file's symbols, and from its unwind tables where those
 * are all that is left of the loop's other part. */
void python_find_ranges(struct elf *elf, const struct runtime_code *code,
                        struct python_binary *binary);

/* plumbing.c: adds functions of a stripped file that only what hands them out tells. */
void python_add_nameless(struct elf *elf, const struct runtime_code *code,
                         struct python_binary *binary);

#endif
