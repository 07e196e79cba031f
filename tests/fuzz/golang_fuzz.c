/* Any bytes as a Go program: its table opened, addresses looked up. */
#include "runtime/go/table/table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(struct go_table *table, uint64_t address)
{
    struct go_frames frames;
    if (go_table_lookup(table, address, &frames) &&
        (frames.count == 0 || frames.count > PROFILE_INLINES_MAX || address < frames.start ||
         address >= frames.limit || frames.at[frames.count - 1].name.len == 0)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf e;
    struct err err;
    if (!elf_open_bytes(&e, data, size, &err)) {
        return 0;
    }
    struct go_table *table = go_table_open(&e, &err);
    if (table != NULL) {
        for (uint64_t i = 0; i < 0x80; i += 4) { /* the functions of the seeds */
            look_up(table, e.text_start + i);
        }
        look_up(table, e.entry);
        look_up(table, e.text_limit - 1);
    }
    go_table_release(table);
    elf_release(&e);
    return 0;
}
