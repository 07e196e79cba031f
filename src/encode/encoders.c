/* The formats: a row each, which its own file holds. */
#include "encode/encode.h"

/* In the order of lists. */
#define ENCODERS(ROW) \
    ROW(col)          \
    ROW(html)         \
    ROW(pprof)        \
    ROW(speedscope)   \
    ROW(gecko)        \
    ROW(trace)        \
    ROW(otlp)

#define DECLARE(name) extern const struct encoder encoder_##name;
ENCODERS(DECLARE)

#define POINT(name) &encoder_##name,
const struct encoder *const encoders[] = {ENCODERS(POINT) NULL};
_Static_assert(sizeof encoders / sizeof encoders[0] <= ENCODERS_MAX + 1, "raise ENCODERS_MAX");
