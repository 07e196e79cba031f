#include "target/cpulist.h"

/* "7" or "0-3", not below `least`. */
static bool parse_range(struct str text, uint64_t least, uint64_t *first, uint64_t *last)
{
    struct str rest = text;
    if (!str_u64(str_cut(&rest, '-'), first)) {
        return false;
    }
    *last = *first;
    bool has_dash = str_find(text, '-') < text.len;
    if (has_dash && !str_u64(rest, last)) {
        return false;
    }
    return *first >= least && *last >= *first && *last < CPU_COUNT_MAX;
}

bool cpulist_parse(struct str text, uint32_t *out, size_t max, size_t *count, struct err *err)
{
    struct str rest = str_trim(text);
    size_t used = 0;
    uint64_t least = 0;
    while (rest.len > 0) {
        uint64_t first, last;
        struct str range = str_cut(&rest, ',');
        if (!parse_range(range, least, &first, &last)) {
            return err_set(err, ERR_MALFORMED, 0, "list of CPUs: '%.*s' is not a range above %llu",
                           (int)(range.len < 32 ? range.len : 32), range.ptr,
                           (unsigned long long)least);
        }
        if (last - first >= max - used) {
            return err_set(err, ERR_LIMIT, 0, "list of CPUs: more than %zu CPUs", max);
        }
        for (uint64_t cpu = first; cpu <= last; cpu++) {
            out[used++] = (uint32_t)cpu;
        }
        least = last + 1;
    }
    *count = used;
    return true;
}
