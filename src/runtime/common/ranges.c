/* Ranges of functions by what they stand for to their runtime (ranges.h): collected in any order, cut where they
 * overlap, then searched by address. Names of functions are compared here as well: patterns with a star at
 * the end, and compilers' suffixes. */
#include "runtime/common/ranges.h"

#include <stdlib.h>

enum { FUNCTION_BYTES_MAX = 4 << 20 };

bool code_ranges_open(struct code_ranges *r, size_t max)
{
    *r = (struct code_ranges){.at = calloc(max, sizeof *r->at), .max = max};
    return r->at != NULL;
}

void code_ranges_release(struct code_ranges *r)
{
    free(r->at);
    *r = (struct code_ranges){0};
}

void code_ranges_add(struct code_ranges *r, uint64_t start, uint64_t limit, uint8_t native)
{
    if (r->count < r->max && start < limit && limit - start <= FUNCTION_BYTES_MAX) {
        r->at[r->count++] = (struct code_range){start, limit, native};
    }
}

static int by_start(const void *left, const void *right)
{
    const struct code_range *a = left, *b = right;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return (b->native == RUNTIME_NATIVE_LOOP) - (a->native == RUNTIME_NATIVE_LOOP);
}

/* Aliases and parts that reach into the next function: the first one keeps what both claim. */
static void set_in_order(struct code_ranges *r)
{
    size_t kept = 0;
    qsort(r->at, r->count, sizeof r->at[0], by_start);
    for (size_t i = 0; i < r->count; i++) {
        struct code_range range = r->at[i];
        uint64_t before = kept > 0 ? r->at[kept - 1].limit : 0;
        range.start = range.start > before ? range.start : before;
        if (range.start < range.limit) {
            r->at[kept++] = range;
        }
    }
    r->count = kept;
}

void code_ranges_close(struct code_ranges *r)
{
    set_in_order(r);
    void *smaller = realloc(r->at, (r->count + 1) * sizeof r->at[0]);
    r->at = smaller != NULL ? smaller : r->at;
}

enum runtime_native code_range_at(const struct code_ranges *r, uint64_t elf_address)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->at[middle].limit <= elf_address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool inside = low < r->count && elf_address >= r->at[low].start;
    return inside ? r->at[low].native : RUNTIME_NATIVE_PLAIN;
}

static bool fits(struct str name, const char *pattern)
{
    struct str want = str_of(pattern);
    if (str_ends(want, STR("*"))) {
        return str_starts(name, str_sub(want, 0, want.len - 1));
    }
    /* a compiler's suffix begins with a dot */
    return str_starts(name, want) && (name.len == want.len || name.ptr[want.len] == '.');
}

bool code_name_among(struct str name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fits(name, patterns[i])) {
            return true;
        }
    }
    return false;
}
