/* The runtimes: a row each, which its own file holds. */
#include "runtime/runtime.h"

/* In the order in which a binary is shown to them. */
#define RUNTIMES(ROW) \
    ROW(python)       \
    ROW(go)           \
    ROW(v8)           \
    ROW(java)         \
    ROW(ruby)         \
    ROW(php)          \
    ROW(perl)         \
    ROW(perf_map) /* the last one: it takes every name */

#define DECLARE(name) extern const struct runtime runtime_##name;
RUNTIMES(DECLARE)

#define POINT(name) &runtime_##name,
const struct runtime *const runtimes[] = {RUNTIMES(POINT) NULL};
