/* The version of Go that a program was built by, from what the linker leaves in it for `go version`. */
#include "base/cursor.h"
#include "runtime/go/go.h"

#include <string.h>

enum { HEAD_BYTES = 32, FLAGS_AT = 15, TEXT_IS_HERE = 2, READ_BYTES = 128 };

/* Since Go 1.18 the text stands behind the head; before, pointers lead to it, which are not followed. */
bool go_version(struct elf *elf, struct buf *out)
{
    static const char magic[] = "\xff Go buildinf:";
    unsigned char bytes[READ_BYTES];
    const struct elf_section *s = elf_section(elf, ".go.buildinfo");
    if (s == NULL || s->bytes <= HEAD_BYTES) {
        return false;
    }
    size_t have = s->bytes < READ_BYTES ? (size_t)s->bytes : READ_BYTES;
    if (!elf_read(elf, s->offset, bytes, have, NULL) || memcmp(bytes, magic, sizeof magic - 1) != 0 ||
        (bytes[FLAGS_AT] & TEXT_IS_HERE) == 0) {
        return false;
    }
    struct cursor c = cursor_of(bytes + HEAD_BYTES, have - HEAD_BYTES);
    size_t len = cursor_u8(&c); /* a number of seven bits a byte: no version has 128 */
    const void *text = cursor_take(&c, len);
    struct str version = text == NULL ? STR("") : (struct str){text, len}, name = str_cut(&version, ' ');
    if (!str_starts(name, STR("go")) || name.len <= 2) {
        return false;
    }
    buf_text(out, "go ");
    buf_str(out, str_sub(name, 2, name.len));
    return true;
}
