/* What of an open file stands where: the bias of a mapping, the offset of an address. */
#include "elf/elf.h"
#include "elf/private.h"

/* Does the segment, in whole pages as the kernel maps it, hold this offset? */
static bool load_holds(const struct elf_load *load, uint64_t offset, uint64_t page_size)
{
    uint64_t first = load->offset - load->offset % page_size;
    return load->file_bytes > 0 && offset >= first && offset < load->offset + load->file_bytes;
}

bool elf_bias(const struct elf *e, uint64_t map_start, uint64_t map_file_offset,
              uint64_t page_size, uint64_t *bias)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < e->load_count; i++) {
            const struct elf_load *load = &e->loads[i];
            bool executable = (load->prot & ELF_PROT_EXEC) != 0;
            if (executable == (pass == 0) && load_holds(load, map_file_offset, page_size)) {
                *bias = map_start - (load->address + (map_file_offset - load->offset));
                return true;
            }
        }
    }
    return false;
}

bool elf_offset_of(const struct elf *e, uint64_t address, uint64_t *offset)
{
    for (uint32_t i = 0; i < e->load_count; i++) {
        const struct elf_load *load = &e->loads[i];
        if (address >= load->address && address - load->address < load->file_bytes) {
            *offset = load->offset + (address - load->address);
            return true;
        }
    }
    return false;
}
