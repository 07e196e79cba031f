#include "runtime/generated/perf_map.h"
#include "runtime/go/go.h"
#include "runtime/python/python.h"
#include "runtime/v8/v8.h"

const struct runtime *const runtimes[] = {
    &runtime_python,
    &runtime_go,
    &runtime_v8,
    &runtime_perf_map, /* the last one: it takes every name */
    NULL,
};
