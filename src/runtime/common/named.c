/* Which functions of an interpreter's file are how it calls itself, by their names (ranges.h). Of a stripped file only
 * exported functions have names; the others are static ones: how the interpreter calls itself as well, and functions of
 * the language that are written in C, whose names the language's own frames have. */
#include "runtime/common/ranges.h"

enum { NAMED = 100 }; /* of a stripped file: plain, because it has a name */

struct naming {
    struct elf *elf;
    struct code_ranges *ranges;
    const struct code_plumbing *plumbing;
    bool is_stripped;
};

static bool take_function(void *context, const struct elf_symbol *symbol)
{
    struct naming *n = context;
    const struct code_plumbing *p = n->plumbing;
    struct str name;
    for (size_t i = 0; i < p->known_count; i++) {
        if (symbol->address == p->known[i].start) {
            return true; /* what calls the loop, which some versions export */
        }
    }
    bool is_plumbing = elf_name(n->elf, symbol->table, symbol->name, &name) &&
                       code_name_among(name, p->names, p->name_count);
    if (is_plumbing || n->is_stripped) {
        code_ranges_add(n->ranges, symbol->address, symbol->address + symbol->size,
                        is_plumbing ? RUNTIME_NATIVE_PLUMBING : NAMED);
    }
    return true;
}

void code_ranges_add_named(struct code_ranges *r, struct elf *elf, const struct code_plumbing *plumbing)
{
    struct naming n = {elf, r, plumbing, elf->tables[ELF_SYMTAB].count == 0};
    (void)elf_each_function(elf, n.is_stripped ? ELF_DYNSYM : ELF_SYMTAB, take_function, &n, NULL);
    r->has_names_only = n.is_stripped && r->count < r->max;
}

void code_ranges_add_with_cold(struct code_ranges *r, struct elf *elf, const struct runtime_code *code,
                               const struct code_range *range)
{
    enum { COLD_MAX = 8 };
    struct code_range cold[COLD_MAX];
    size_t count = code_find_cold(elf, code, range->start, range->limit, cold, COLD_MAX);
    code_ranges_add(r, range->start, range->limit, range->native);
    for (size_t i = 0; i < count; i++) {
        code_ranges_add(r, cold[i].start, cold[i].limit, range->native);
    }
}

enum runtime_native code_range_or_unnamed(const struct code_ranges *r, uint64_t elf_address)
{
    unsigned native = code_range_at(r, elf_address);
    if (native == RUNTIME_NATIVE_PLAIN && r->has_names_only) {
        return RUNTIME_NATIVE_PLUMBING;
    }
    return native == NAMED ? RUNTIME_NATIVE_PLAIN : (enum runtime_native)native;
}
