/* The back ends: a row each, which its own file holds. */
#include "deliver/backend.h"

/* In the order of lists. */
#define BACKENDS(ROW) \
    ROW(studio)       \
    ROW(pyroscope)    \
    ROW(http)         \
    ROW(datadog)      \
    ROW(otlp)

#define DECLARE(name) extern const struct backend backend_##name;
BACKENDS(DECLARE)

#define POINT(name) &backend_##name,
const struct backend *const backends[] = {BACKENDS(POINT) NULL};
_Static_assert(sizeof backends / sizeof backends[0] <= BACKENDS_MAX + 1, "raise BACKENDS_MAX");
