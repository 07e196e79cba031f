/* content: the bytes of a section as they stand in the file, bounded before memory is asked for. */
#include <elf.h>

#include "elf/private.h"

enum { CONTENT_CHUNK_BYTES = 32 * 1024 };

/* In pieces: a section that claims more than the file has costs no more than the file. */
static bool copy_content(const struct elf *e, const struct elf_section *section, struct buf *out, struct err *err)
{
    for (uint64_t done = 0; done < section->bytes;) {
        uint64_t left = section->bytes - done;
        size_t part = left < CONTENT_CHUNK_BYTES ? (size_t)left : CONTENT_CHUNK_BYTES;
        char *room = buf_room(out, part);
        if (room == NULL) {
            return err_set(err, ERR_MEMORY, 0, "no memory for a section's contents");
        }
        if (!elf_read(e, section->offset + done, room, part, err)) {
            return false;
        }
        out->len += part;
        done += part;
    }
    return true;
}

bool elf_section_read(const struct elf *e, const struct elf_section *section, struct buf *out, struct err *err)
{
    size_t before = out->len;
    if (section->type == SHT_NOBITS || section->type == SHT_NULL || section->compressed) {
        return err_set(err, ERR_UNSUPPORTED, 0, "the section's contents are not in this file, or compressed");
    }
    if (section->bytes > out->max - out->len) {
        return err_set(err, ERR_LIMIT, 0, "section has %llu bytes; at most %zu are read",
                       (unsigned long long)section->bytes, out->max - out->len);
    }
    if (!copy_content(e, section, out, err)) {
        out->len = before;
        out->failed = false;
        return false;
    }
    return true;
}
