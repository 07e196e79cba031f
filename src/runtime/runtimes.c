#include "runtime/runtime.h"
#include "runtime/python/python.h"

const struct runtime *const runtimes[] = {
    &runtime_python,
    NULL,
};
