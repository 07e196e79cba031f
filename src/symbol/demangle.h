/*
 * demangle: names for people from names for linkers.
 *
 * C++ (Itanium ABI), Rust (legacy "_ZN…17h<hash>E" and v0 "_R"), D ("_D"), through libiberty. What
 * compilers append to a clone of a function is taken off, because it is the same function to a
 * reader: GCC's ".part.N .constprop.N .isra.N .cold .lto_priv.N", LLVM's ".llvm.N" and Rust's hash
 * "::h<16 hex>".
 *
 * Limits. Symbol names come from files that anybody may write, and a few bytes of mangled name can
 * stand for gigabytes of text or a very deep type: names above DEMANGLE_INPUT_MAX, results above
 * DEMANGLE_OUTPUT_MAX, and what libiberty's own recursion limit refuses, are left as they are.
 */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

#include "base/str.h"

enum {
    DEMANGLE_INPUT_MAX = 4096,
    DEMANGLE_OUTPUT_MAX = 8192,
    DEMANGLE_STACK_BYTES = 512 * 1024, /* a caller's free stack; musl's threads have 128 KiB */
};

/* Appends the readable form to `out` and returns true; false, with `out` as it was, when the name
 * is of no known scheme, beyond the limits, or its readable form is the name itself. */
bool demangle(struct str mangled, struct buf *out);

#endif
