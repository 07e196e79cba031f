/*
 * perf_map: code that some program generated and described in a perf map or jitdump (jit.h), whatever generated it.
 *
 * The last row of the registry: names that no other row reads stay as they are, and their frames native.
 */
#ifndef RUNTIME_GENERATED_PERF_MAP_H
#define RUNTIME_GENERATED_PERF_MAP_H

#include "runtime/runtime.h"

extern const struct runtime runtime_perf_map;

#endif
