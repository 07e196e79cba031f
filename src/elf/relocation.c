/* Relocations that fill the global offset table: which slot belongs to which function. */
#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "elf/private.h"

enum {
    RELOCATIONS_PER_READ = 256,
    AARCH64_IRELATIVE = 1032, /* AArch64 psABI; musl's elf.h has no name for it */
};

/* Some machines of elf.h count their types alike, so the machine decides first. */
static enum elf_relocation_kind kind_of(enum elf_machine machine, uint32_t type)
{
    static const struct {
        uint32_t jump_slot, glob_dat, irelative;
    } types[] = {
        [ELF_X86_64] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE},
        [ELF_AARCH64] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, AARCH64_IRELATIVE},
        [ELF_I386] = {R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE},
    };
    if (type == types[machine].jump_slot || type == types[machine].glob_dat) {
        return ELF_RELOCATION_FUNCTION;
    }
    return type == types[machine].irelative ? ELF_RELOCATION_RESOLVED : ELF_RELOCATION_OTHER;
}

static size_t relocation_bytes(const struct elf *e, bool has_addend)
{
    if (e->is_32bit) {
        return has_addend ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel);
    }
    return has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
}

static struct elf_relocation take_relocation(const struct elf *e, struct cursor *c, bool has_addend)
{
    struct elf_relocation r = {0};
    if (e->is_32bit) {
        r.slot = cursor_u32(c);
        uint32_t info = cursor_u32(c);
        r.symbol = ELF32_R_SYM(info);
        r.kind = kind_of(e->machine, ELF32_R_TYPE(info));
        r.addend = has_addend ? cursor_u32(c) : 0;
        return r;
    }
    r.slot = cursor_u64(c);
    uint64_t info = cursor_u64(c);
    r.symbol = (uint32_t)ELF64_R_SYM(info);
    r.kind = kind_of(e->machine, (uint32_t)ELF64_R_TYPE(info));
    r.addend = has_addend ? cursor_u64(c) : 0;
    return r;
}

/* Calls `each` with `count` relocations of `chunk`; *index counts them. */
static bool give_chunk(const struct elf *e, struct cursor *chunk, bool has_addend, size_t count,
                       uint64_t *index,
                       bool (*each)(void *context, const struct elf_relocation *relocation),
                       void *context)
{
    for (size_t i = 0; i < count; i++) {
        struct elf_relocation r = take_relocation(e, chunk, has_addend);
        r.index = (uint32_t)(*index)++;
        if (!each(context, &r)) {
            return false;
        }
    }
    return true;
}

bool elf_each_relocation(struct elf *e, const struct elf_section *section,
                         bool (*each)(void *context, const struct elf_relocation *relocation),
                         void *context, struct err *err)
{
    if ((section->type != SHT_RELA && section->type != SHT_REL) || section->compressed) {
        return true;
    }
    bool has_addend = section->type == SHT_RELA, good = true, more = true;
    size_t bytes = relocation_bytes(e, has_addend);
    uint64_t count = section->bytes / bytes, skipped = elf_relative_count(e, section);
    skipped = skipped < count ? skipped : count;
    count = count - skipped < ELF_RELOCATIONS_MAX ? count : skipped + ELF_RELOCATIONS_MAX;
    unsigned char *chunk = malloc(RELOCATIONS_PER_READ * bytes);
    if (chunk == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory to read relocations");
    }
    for (uint64_t done = skipped; good && more && done < count;) {
        size_t now = count - done < RELOCATIONS_PER_READ ? (size_t)(count - done)
                                                         : RELOCATIONS_PER_READ;
        good = elf_read(e, section->offset + done * bytes, chunk, now * bytes, err);
        struct cursor c = cursor_of(chunk, good ? now * bytes : 0);
        more = good && give_chunk(e, &c, has_addend, now, &done, each, context);
    }
    free(chunk);
    return good;
}
