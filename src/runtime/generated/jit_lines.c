#include "runtime/generated/jit_private.h"

/* An entry is three numbers as LEB128, the first two as differences to the entry before, zigzag:
 * offset, line, and the length of the file's name plus one, which then follows, or 0 for the file of
 * the entry before. Entries come in the order of the dump, which is nearly that of the offsets. */

static void add_number(struct buf *out, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) {
        buf_byte(out, (char)(0x80 | (number & 0x7f)));
    }
    buf_byte(out, (char)number);
}

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t number)
{
    return number >> 1 ^ (number & 1 ? UINT64_MAX : 0);
}

void jit_lines_clear(struct jit_lines *lines)
{
    buf_clear(&lines->bytes);
    lines->offset = lines->line = 0;
}

void jit_lines_add(struct jit_lines *lines, uint64_t offset, uint32_t line,
                   const struct str *file)
{
    size_t before = lines->bytes.len;
    add_number(&lines->bytes, zigzag(offset - lines->offset));
    add_number(&lines->bytes, zigzag(line - lines->line));
    add_number(&lines->bytes, file != NULL ? file->len + 1 : 0);
    if (file != NULL) {
        buf_str(&lines->bytes, *file);
    }
    if (lines->bytes.failed) {
        lines->bytes.len = before; /* the lines up to here remain */
        return;
    }
    lines->offset = offset;
    lines->line = line;
}

bool jit_lines_find(struct str bytes, uint64_t offset, uint32_t *line, struct str *file)
{
    struct cursor c = cursor_of(bytes.ptr, bytes.len);
    struct str file_here = STR("");
    uint64_t offset_here = 0, line_here = 0, nearest = 0;
    bool found = false;
    while (c.len > 0 && !c.short_read) {
        offset_here += unzigzag(cursor_uleb(&c));
        line_here += unzigzag(cursor_uleb(&c));
        uint64_t file_len = cursor_uleb(&c);
        if (file_len > 0) {
            file_here = (struct str){cursor_take(&c, file_len - 1), file_len - 1};
        }
        if (!c.short_read && offset_here <= offset && (!found || offset_here >= nearest)) {
            *line = (uint32_t)line_here;
            *file = file_here;
            nearest = offset_here;
            found = true;
        }
    }
    return found;
}
