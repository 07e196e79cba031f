/*
 * value: what a profile's weights are, for the forms that say it.
 *
 * They are CPU time in nanoseconds, unless one of the other sample types of a file was asked for (pprof_read):
 * then meta.value is its name, and meta.unit "nanoseconds" or what is counted. A count is kept where nanoseconds are,
 * as a plain number, with a period of 1.
 */
#ifndef ENCODE_VALUE_H
#define ENCODE_VALUE_H

#include "profile/profile.h"

#define VALUE_TIME_UNIT "nanoseconds"

/* Not CPU time. */
static inline bool value_is_other(const struct profile *p)
{
    return p->meta.value != 0;
}

/* No time at all. */
static inline bool value_is_counted(const struct profile *p)
{
    return value_is_other(p) && !str_eq(profile_text(p, p->meta.unit), STR(VALUE_TIME_UNIT));
}

/* Of memory, shown as "1.23 MB". */
static inline bool value_is_bytes(const struct profile *p)
{
    return value_is_other(p) && str_eq(profile_text(p, p->meta.unit), STR("bytes"));
}

/* "CPU time", "off_cpu": foreign bytes. */
static inline struct str value_name(const struct profile *p)
{
    return value_is_other(p) ? profile_text(p, p->meta.value) : STR("CPU time");
}

/* What stands behind a number of them: "page-faults", "bytes". */
static inline struct str value_noun(const struct profile *p)
{
    struct str unit = profile_text(p, p->meta.unit);
    return unit.len == 0 || str_eq(unit, STR("count")) ? value_name(p) : unit;
}

#endif
