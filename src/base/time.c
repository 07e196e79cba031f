#include "base/time.h"

#include <stdio.h>

struct civil {
    unsigned year, month, day, hour, minute, second;
};

/* Days to a date of the proleptic Gregorian calendar: eras of 400 years beginning on 1 March. */
static struct civil civil_of(uint64_t seconds)
{
    uint64_t days = seconds / 86400 + 719468;
    unsigned rest = (unsigned)(seconds % 86400);
    uint64_t era = days / 146097;
    unsigned day_of_era = (unsigned)(days % 146097);
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted = (5 * day_of_year + 2) / 153;
    unsigned month = shifted < 10 ? shifted + 3 : shifted - 9;
    return (struct civil){
        .year = (unsigned)(era * 400) + year_of_era + (month <= 2),
        .month = month,
        .day = day_of_year - (153 * shifted + 2) / 5 + 1,
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
    };
}

void time_iso_seconds(uint64_t wall_ns, char out[static TIME_TEXT_MAX])
{
    struct civil c = civil_of(wall_ns / NS_PER_S);
    snprintf(out, TIME_TEXT_MAX, "%04u-%02u-%02uT%02u:%02u:%02u", c.year % 10000, c.month % 100,
             c.day % 100, c.hour % 100, c.minute % 100, c.second % 100);
}

void time_rfc3339(uint64_t wall_ns, char out[static TIME_TEXT_MAX])
{
    char seconds[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, seconds);
    snprintf(out, TIME_TEXT_MAX, "%.19s.%03uZ", seconds,
             (unsigned)(wall_ns / NS_PER_MS % 1000));
}
