/* compile_all: every page of an image's unwind rules at once, as far as the table's max_bytes go. */
#ifndef COMPILE_ALL_H
#define COMPILE_ALL_H

#include "unwind/private.h"

/* Without evicting what was just compiled. */
static inline void compile_load(struct unwind_table *table, const struct elf_load *load)
{
    bool analysed;
    uint64_t limit = load->address + load->file_bytes;
    uint64_t evicted = table->stats.evicted;
    uint64_t at = load->address;
    while (at < limit && table->stats.evicted == evicted) {
        (void)unwind_table_rule(table, at, &analysed);
        uint64_t next = at - at % UNWIND_PAGE_BYTES + UNWIND_PAGE_BYTES;
        at = next > at ? next : limit;
    }
}

static inline void compile_all(struct unwind_table *table)
{
    for (uint32_t i = 0; i < table->elf->load_count; i++) {
        if ((table->elf->loads[i].prot & 4) != 0) {
            compile_load(table, &table->elf->loads[i]);
        }
    }
    for (size_t i = 0; table->analyses && i < table->gaps.len; i++) {
        (void)unwind_table_gap_rule(table, table->gaps.at[i].start);
    }
}

#endif
