/* The functions at wanted addresses, of a table that is too large to be kept. It is read twice. The first reading
 * finds, for each wanted address, the last start at or below it, and the nearest places on either side where any symbol
 * begins or ends: between these all addresses have one answer. The second keeps what covers a wanted address or such a
 * start. */
#include "symbol/private.h"

#include <stdlib.h>

/* Of what lies above one wanted address, and not above the next. */
struct few_gap {
    uint32_t lowest, highest; /* places where a symbol begins or ends; lowest above highest: there are none */
    uint32_t start;           /* the last one where a symbol begins */
    bool has_start;
};

struct symbols_few {
    uint32_t *address; /* relative to the table's base, rising */
    size_t count;
    struct few_gap *gap; /* one more than addresses: the last is above all of them */
    uint32_t *point;     /* what the second reading keeps symbols of, rising; null: it is the first */
    size_t points;
};

struct symbols_few *symbols_few_begin(uint64_t base, const uint64_t *address, size_t count)
{
    struct symbols_few *few = calloc(1, sizeof *few);
    if (few == NULL) {
        return NULL;
    }
    few->address = calloc(count + 1, sizeof *few->address);
    few->gap = calloc(count + 1, sizeof *few->gap);
    if (few->address == NULL || few->gap == NULL) {
        symbols_few_free(few);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (address[i] >= base && address[i] - base <= UINT32_MAX) {
            few->address[few->count++] = (uint32_t)(address[i] - base);
        }
    }
    for (size_t i = 0; i <= few->count; i++) {
        few->gap[i].lowest = UINT32_MAX;
    }
    return few;
}

void symbols_few_free(struct symbols_few *few)
{
    if (few != NULL) {
        free(few->address);
        free(few->gap);
        free(few->point);
        free(few);
    }
}

/* The first of rising numbers that is not below this one. */
static size_t first_from(const uint32_t *at, size_t count, uint32_t number)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void note_place(struct few_gap *gap, uint32_t place)
{
    gap->lowest = place < gap->lowest ? place : gap->lowest;
    gap->highest = place > gap->highest ? place : gap->highest;
}

static void note(struct symbols_few *few, uint32_t start, uint32_t limit)
{
    size_t at = first_from(few->address, few->count, start);
    struct few_gap *gap = &few->gap[at];
    note_place(gap, start);
    gap->start = !gap->has_start || start > gap->start ? start : gap->start;
    gap->has_start = true;
    bool same = at == few->count || limit <= few->address[at]; /* most end before the next wanted address */
    note_place(same ? gap : &few->gap[first_from(few->address, few->count, limit)], limit);
}

bool symbols_few_takes(struct symbols_few *few, uint32_t start, uint64_t limit, bool sized)
{
    uint32_t end = limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX;
    if (few->point == NULL) {
        note(few, start, end);
        return false;
    }
    size_t at = first_from(few->point, few->points, start);
    return at < few->points && (few->point[at] == start || (sized && few->point[at] < end));
}

static int by_number(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

bool symbols_few_choose(struct symbols_few *few)
{
    few->point = calloc(2 * few->count + 1, sizeof *few->point);
    if (few->point == NULL) {
        return false;
    }
    for (size_t i = 0; i < few->count; i++) {
        few->point[few->points++] = few->address[i];
        if (few->gap[i].has_start) {
            few->point[few->points++] = few->gap[i].start;
        }
    }
    qsort(few->point, few->points, sizeof *few->point, by_number);
    return true;
}

bool symbols_few_keep(const struct symbols_few *few, struct symbols *s)
{
    uint32_t start = 0, limit = UINT32_MAX;
    for (size_t i = 0; i < few->count; i++) {
        struct symbols_span *span = vec_push(&s->known);
        if (span == NULL) {
            return false;
        }
        const struct few_gap *below = &few->gap[i];
        start = below->lowest <= below->highest ? below->highest : start;
        span->start = start;
    }
    for (size_t i = few->count; i-- > 0;) {
        const struct few_gap *above = &few->gap[i + 1];
        limit = above->lowest <= above->highest ? above->lowest : limit;
        s->known.at[i].limit = limit;
    }
    return true;
}

bool symbols_knows(const struct symbols *s, uint64_t address)
{
    size_t low = 0, high = s->known.len;
    uint64_t offset = address - s->base;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->known.at[middle].start <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return address >= s->base && low > 0 && offset < s->known.at[low - 1].limit;
}
