/*
 * time: units and the two spellings of a moment.
 *
 * Times are uint64_t nanoseconds; the name of a variable says which clock (mono_ns, wall_ns) or
 * that it is a length (…_ns, cpu_ns).
 */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

static inline uint64_t time_earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

enum { TIME_TEXT_MAX = 32 };

/* "2026-11-20T10:31:04", UTC without zone: as gProfiler has it. */
void time_iso_seconds(uint64_t wall_ns, char out[static TIME_TEXT_MAX]);

/* "2026-11-20T10:31:04.123Z": RFC 3339, for logs. */
void time_rfc3339(uint64_t wall_ns, char out[static TIME_TEXT_MAX]);

#endif
