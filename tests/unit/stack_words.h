/*
 * The stack of a thread that is made here, as it was at its sample: words from STACK on. For tests and fuzzing of rows
 * that resolve addresses.
 */
#ifndef TESTS_STACK_WORDS_H
#define TESTS_STACK_WORDS_H

#include "base/iface.h"

#define STACK UINT64_C(0x7ffe0000)
enum { STACK_WORDS = 64 };

static uint64_t words[STACK_WORDS];

static bool read_stack(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    uint64_t at = address - STACK;
    (void)context, (void)err;
    if (at >= sizeof words || len > sizeof words - at) {
        return false;
    }
    memcpy(out, (unsigned char *)words + at, len);
    return true;
}

static const struct memory_reader stack = {read_stack, NULL};

#endif
