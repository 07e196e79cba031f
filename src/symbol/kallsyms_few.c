/* Reads only those of the kernel's functions that stand at wanted addresses, KALLSYMS_FEW_MAX at most. The wanted
 * addresses divide the kernel into gaps; each gap keeps its highest function and the lowest start, so memory does not
 * grow with the number of lines. Reading ends once the kernel's own functions are above all that is wanted. */
#include "symbol/private.h"

#include <stdlib.h>

/* The functions that start above one address that is wanted, and not above the next. The highest of them is where
 * the next is in; the lowest is where the function before them ends. */
struct kallsyms_gap {
    uint64_t lowest, highest; /* 0: there is none */
    uint8_t binding;          /* of the one that names the highest */
    unsigned aliases;         /* of that address and binding, so far */
    struct buf name;
};

bool kallsyms_only(struct kallsyms *k, const uint64_t *address, size_t count)
{
    struct kallsyms_few *few = &k->few;
    *few = (struct kallsyms_few){.address = address, .count = count, .rising = true};
    few->gap = count <= KALLSYMS_FEW_MAX ? calloc(count + 1, sizeof *few->gap) : NULL;
    for (size_t i = 0; few->gap != NULL && i <= count; i++) {
        buf_init(&few->gap[i].name, KALLSYMS_LINE_MAX);
    }
    return few->gap != NULL;
}

/* The last gap is above all that is wanted. Lines come in the order of their addresses, almost all of them, so that
 * it most often is where it was. */
static size_t gap_of(struct kallsyms_few *few, uint64_t address)
{
    size_t low = 0, high = few->count, at = few->at;
    if ((at == 0 || few->address[at - 1] < address) &&
        (at == few->count || address <= few->address[at])) {
        return at;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (few->address[middle] < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return few->at = low;
}

/* Of aliases as many are asked as the whole table keeps: a function has one name in all windows of a run. */
static void name_highest(struct kallsyms_gap *gap, uint64_t address, uint8_t binding, struct str name)
{
    if (address != gap->highest ? address > gap->highest : binding > gap->binding) {
        gap->highest = address;
        gap->binding = binding;
        gap->aliases = 0;
    } else if (address != gap->highest || binding != gap->binding || gap->aliases == SYMBOLS_ALIASES_MAX) {
        return;
    }
    if (gap->aliases++ == 0 || symbols_prefers(name, buf_slice(&gap->name))) {
        buf_clear(&gap->name);
        buf_str(&gap->name, name);
    }
}

bool kallsyms_few_take(struct kallsyms *k, uint64_t address, uint8_t binding, struct str name)
{
    struct kallsyms_few *few = &k->few;
    struct kallsyms_gap *gap = &few->gap[gap_of(few, address)];
    few->first = few->first == 0 ? address : few->first;
    few->rising = few->rising && address >= few->last;
    few->last = address;
    gap->lowest = gap->lowest == 0 || address < gap->lowest ? address : gap->lowest;
    if (few->at == few->count) {
        /* the kernel itself is one piece in rising order; modules, in any order, are above or below all of it */
        few->over = few->rising && few->first <= few->address[0];
    } else {
        name_highest(gap, address, binding, name);
    }
    return !gap->name.failed;
}

bool kallsyms_few_finish(struct kallsyms *k)
{
    struct kallsyms_few *few = &k->few;
    bool good = true;
    for (size_t i = 0, next; good && i < few->count; i = next) {
        for (next = i + 1; next <= few->count && few->gap[next].lowest == 0; next++) {
        }
        uint64_t limit = next <= few->count ? few->gap[next].lowest : UINT64_MAX;
        const struct kallsyms_gap *gap = &few->gap[i];
        good = gap->highest == 0 ||
               kallsyms_keep(k, gap->highest, limit, gap->binding, buf_slice(&gap->name));
    }
    return good;
}

void kallsyms_few_release(struct kallsyms *k)
{
    struct kallsyms_few *few = &k->few;
    for (size_t i = 0; few->gap != NULL && i <= few->count; i++) {
        buf_release(&few->gap[i].name);
    }
    free(few->gap);
    few->gap = NULL;
}
