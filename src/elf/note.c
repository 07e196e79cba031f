#include <elf.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "elf/private.h"

static size_t padding(uint32_t bytes)
{
    return (4 - bytes % 4) % 4;
}

/* One note. Fields are padded to 4 also in 64-bit files, except in .note.gnu.property, whose
 * descriptor is a multiple of 8 anyway. */
static bool next_note(struct cursor *c, uint32_t *type, struct str *owner, struct str *value)
{
    uint32_t owner_bytes = cursor_u32(c), value_bytes = cursor_u32(c);
    *type = cursor_u32(c);
    *owner = (struct str){cursor_take(c, owner_bytes), owner_bytes};
    cursor_skip(c, padding(owner_bytes));
    *value = (struct str){cursor_take(c, value_bytes), value_bytes};
    bool good = !c->short_read;
    cursor_skip(c, padding(value_bytes)); /* may be cut off after the last one */
    return good;
}

static void scan_notes(struct elf *e, const void *ptr, size_t len)
{
    struct cursor c = cursor_of(ptr, len);
    uint32_t type;
    struct str owner, value;
    while (next_note(&c, &type, &owner, &value)) {
        if (type == NT_GNU_BUILD_ID && str_eq(owner, STR("GNU\0")) && value.len > 0 &&
            value.len <= ELF_BUILD_ID_MAX) {
            memcpy(e->build_id, value.ptr, value.len);
            e->build_id_bytes = (uint32_t)value.len;
            return;
        }
    }
}

void elf_take_note(struct elf *e, uint64_t offset, uint64_t bytes)
{
    if (e->build_id_bytes != 0 || bytes == 0 || bytes > ELF_NOTES_MAX_BYTES) {
        return;
    }
    void *notes = malloc(bytes);
    if (notes != NULL && elf_read(e, offset, notes, bytes, NULL)) {
        scan_notes(e, notes, bytes);
    }
    free(notes);
}

void elf_take_note_sections(struct elf *e)
{
    vec_each(&e->sections, s) {
        if (s->type == SHT_NOTE) {
            elf_take_note(e, s->offset, s->bytes);
        }
    }
}

void elf_build_id_text(const struct elf *e, char out[static 2 * ELF_BUILD_ID_MAX + 1])
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 0;
    for (uint32_t i = 0; i < e->build_id_bytes; i++) {
        out[len++] = digits[e->build_id[i] >> 4];
        out[len++] = digits[e->build_id[i] & 15];
    }
    out[len] = '\0';
}
