/* How busy a machine or container is: parses /proc/stat, meminfo and the files of control groups, and
 * turns two readings into percentages of the time between them. Pure: os/usage reads the files.
 * A group's quota counts as 100 %. */
#include "target/usage.h"

/* Guests' times stand after, and are part of the first two. */
enum { STAT_TIMES = 8, STAT_IDLE = 3, STAT_IOWAIT = 4 };

/* The next word, blanks before it skipped; empty at the end. */
static struct str next_word(struct str *rest)
{
    struct str word = {NULL, 0};
    while (rest->len > 0 && word.len == 0) {
        word = str_cut(rest, ' ');
    }
    return word;
}

static bool is_processor(struct str name)
{
    uint64_t number;
    return str_starts(name, STR("cpu")) && str_u64(str_sub(name, 3, name.len), &number);
}

/* The times of "cpu  user nice system idle iowait irq softirq steal …". */
static bool take_times(struct str line, struct usage_machine *out)
{
    for (unsigned i = 0; i < STAT_TIMES; i++) {
        uint64_t ticks;
        if (!str_u64(next_word(&line), &ticks)) {
            return i > STAT_IDLE; /* what an old kernel does not tell is 0 */
        }
        out->all_ticks += ticks;
        out->busy_ticks += i == STAT_IDLE || i == STAT_IOWAIT ? 0 : ticks;
    }
    return true;
}

bool usage_of_stat(struct str text, struct usage_machine *out)
{
    struct str line = str_cut(&text, '\n');
    *out = (struct usage_machine){0};
    if (!str_eq(next_word(&line), STR("cpu")) || !take_times(line, out)) {
        return false;
    }
    for (;;) {
        line = str_cut(&text, '\n');
        if (!is_processor(next_word(&line))) {
            return true; /* the CPUs come first, lines without end after them */
        }
        out->processors++;
    }
}

bool usage_of_meminfo(struct str text, uint64_t *total_bytes, uint64_t *used_bytes)
{
    static const char *const names[] = {"MemTotal", "MemAvailable", "MemFree", "Buffers", "Cached"};
    uint64_t kb[5] = {0};
    bool known[5] = {false};
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n'), name = str_cut(&line, ':');
        struct str value = next_word(&line);
        for (unsigned i = 0; i < 5; i++) {
            if (!known[i] && str_eq(name, str_of(names[i]))) {
                known[i] = str_u64(value, &kb[i]);
            }
        }
    }
    uint64_t available = known[1] ? kb[1] : kb[2] + kb[3] + kb[4];
    if (kb[0] == 0 || kb[0] > UINT64_MAX / 1024 || !(known[1] || known[2])) {
        return false;
    }
    *total_bytes = kb[0] * 1024;
    *used_bytes = available < kb[0] ? (kb[0] - available) * 1024 : 0;
    return true;
}

bool usage_quota(struct str quota_us, struct str period_us, double *cores)
{
    uint64_t quota, period;
    if (!str_u64(str_trim(quota_us), &quota) || !str_u64(str_trim(period_us), &period) ||
        quota == 0 || period == 0) {
        return false; /* "max" and -1: there is none */
    }
    *cores = (double)quota / (double)period;
    return true;
}

bool usage_cpu_max(struct str text, double *cores)
{
    struct str period = str_cut(&text, '\n');
    struct str quota = str_cut(&period, ' ');
    return usage_quota(quota, period, cores);
}

bool usage_value(struct str text, struct str key, uint64_t *out)
{
    while (text.len > 0) {
        struct str value = str_cut(&text, '\n');
        if (str_eq(str_cut(&value, ' '), key)) {
            return str_u64(str_trim(value), out);
        }
    }
    return false;
}

bool usage_number(struct str text, uint64_t *out)
{
    uint64_t number;
    if (!str_u64(str_trim(text), &number) || number >= UINT64_C(1) << 60) {
        return false;
    }
    *out = number;
    return true;
}

static double at_most_100(double percent)
{
    return percent < 100 ? percent : 100;
}

double usage_cpu_percent(const struct usage *before, const struct usage *after)
{
    /* A quota that changed meanwhile leaves nothing to report. */
    if (before->there == 0 || after->there <= before->there || after->used < before->used ||
        before->cores < after->cores || before->cores > after->cores) {
        return -1;
    }
    double there = (double)(after->there - before->there) * (after->cores > 0 ? after->cores : 1);
    return at_most_100(100 * (double)(after->used - before->used) / there);
}

double usage_memory_percent(const struct usage *before, const struct usage *after)
{
    if (before->memory_there == 0 || after->memory_there == 0) {
        return -1;
    }
    double first = (double)before->memory_used / (double)before->memory_there;
    double last = (double)after->memory_used / (double)after->memory_there;
    return at_most_100(50 * (first + last));
}
